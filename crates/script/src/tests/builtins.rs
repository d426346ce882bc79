//! The functions that Riak 2.x has built in.

use super::*;
use serde_json::{Value, json};

fn map(name: &str, object: &Value, arg: &Value) -> Result<Vec<Value>, ScriptError> {
    named(name).map(&object.to_string(), "null", &arg.to_string()).map(|result| values_in(&result))
}

fn reduce(name: &str, values: &Value, arg: &Value) -> Value {
    Value::Array(values_in(&named(name).reduce(&values.to_string(), &arg.to_string()).unwrap()))
}

fn object(data: &Value) -> Value {
    json!({ "bucket": "b", "key": "k", "values": [{ "metadata": {}, "data": data }] })
}

#[test]
fn map_functions_give_values() {
    let found = object(&json!(r#"{"a":1,"b":"x"}"#));
    assert_eq!(map("Riak.mapValues", &found, &Value::Null).unwrap(), [json!(r#"{"a":1,"b":"x"}"#)]);
    assert_eq!(map("Riak.mapValuesJson", &found, &Value::Null).unwrap(), [json!({"a": 1, "b": "x"})]);
    assert_eq!(map("Riak.mapValues", &object(&json!(["p", "q"])), &Value::Null).unwrap(), [json!("p"), json!("q")]);
    assert_eq!(map("Riak.mapByFields", &found, &json!({"a": 1})).unwrap(), [json!({"a": 1, "b": "x"})]);
    // The comparison is JavaScript's `!=`, as in Riak.
    assert_eq!(map("Riak.mapByFields", &found, &json!({"a": "1"})).unwrap().len(), 1);
    assert!(map("Riak.mapByFields", &found, &json!({"a": 2})).unwrap().is_empty());
    let error = map("Riak.mapValuesJson", &object(&json!("no JSON")), &Value::Null).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Exception);
    assert!(error.message.starts_with("SyntaxError: "), "{error}");
}

#[test]
fn map_functions_pass_on_what_was_not_found() {
    let missing = json!({ "not_found": { "bucket": "b", "key": "k", "keydata": "undefined" } });
    assert_eq!(map("Riak.mapValues", &missing, &Value::Null).unwrap(), std::slice::from_ref(&missing));
    assert_eq!(map("Riak.mapValuesJson", &missing, &Value::Null).unwrap(), std::slice::from_ref(&missing));
    assert!(map("Riak.mapByFields", &missing, &json!({})).unwrap().is_empty());
    assert_eq!(
        reduce("Riak.filterNotFound", &json!([1, missing, null, "x", {"a": 1}]), &Value::Null),
        json!([
            1, null, "x", {"a": 1}
        ])
    );
    assert_eq!(reduce("Riak.reduceSum", &json!([missing, 2, 3]), &Value::Null), json!([5]));
}

#[test]
fn reduce_functions_sum_compare_and_sort() {
    let numbers = json!([10, 9, 1, 100]);
    assert_eq!(reduce("Riak.reduceSum", &numbers, &Value::Null), json!([120]));
    assert_eq!(reduce("Riak.reduceSum", &json!([]), &Value::Null), json!([0]));
    assert_eq!(reduce("Riak.reduceMin", &numbers, &Value::Null), json!([1]));
    assert_eq!(reduce("Riak.reduceMax", &numbers, &Value::Null), json!([100]));
    assert_eq!(reduce("Riak.reduceMin", &json!([]), &Value::Null), json!([]));
    assert_eq!(reduce("Riak.reduceMax", &json!([]), &Value::Null), json!([]));
    assert_eq!(reduce("Riak.reduceNumericSort", &numbers, &Value::Null), json!([1, 9, 10, 100]));
    // Without a comparison, values are sorted by their texts.
    assert_eq!(reduce("Riak.reduceSort", &numbers, &Value::Null), json!([1, 10, 100, 9]));
    let descending = json!("function(a, b) { return b - a; }");
    assert_eq!(reduce("Riak.reduceSort", &numbers, &descending), json!([100, 10, 9, 1]));
    assert_eq!(reduce("Riak.reduceSort", &numbers, &json!("no JavaScript (")), json!([1, 10, 100, 9]));
}

#[test]
fn reduce_functions_cut() {
    let values = json!([1, 2, 3, 4, 5]);
    assert_eq!(reduce("Riak.reduceLimit", &values, &json!(3)), json!([1, 2]), "one fewer, as in Riak");
    assert_eq!(reduce("Riak.reduceSlice", &values, &json!([1, 3])), json!([2, 3]));
    assert_eq!(reduce("Riak.reduceSlice", &values, &json!([1, 9])), values);
}

#[test]
fn class_names_are_those_of_constructors() {
    let name = |value: &str| result_of(&format!("function() {{ return [Riak.getClassName({value})]; }}"));
    assert_eq!(name("[]"), r#"["Array"]"#);
    assert_eq!(name("'x'"), r#"["String"]"#);
    assert_eq!(name("{}"), r#"["Object"]"#);
    assert_eq!(name("null"), "[null]");
}

#[test]
fn all_twelve_names_and_no_other_are_known() {
    for name in [
        "getClassName",
        "filterNotFound",
        "mapValues",
        "mapValuesJson",
        "mapByFields",
        "reduceSum",
        "reduceMin",
        "reduceMax",
        "reduceSort",
        "reduceNumericSort",
        "reduceLimit",
        "reduceSlice",
    ] {
        drop(named(&format!("Riak.{name}")));
    }
    for unknown in ["Riak.zork", "Riak", "zork", "Riak.mapValues.zork.zork", "if", "Math.PI"] {
        let opened = Session::open(Program::named(unknown).unwrap(), limits(), clock());
        assert_eq!(opened.err().map(|error| error.kind), Some(ErrorKind::UnknownFunction), "{unknown}");
    }
    for bad in ["", "Riak.", "a b", "f()", "a;b", "é"] {
        assert_eq!(Program::named(bad).unwrap_err().kind, ErrorKind::UnknownFunction, "{bad}");
    }
}
