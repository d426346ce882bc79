//! Tests of key filters: what Riak's documentation and its own tests say of each.

use super::*;
use crate::term::from_json;
use proptest::prelude::*;
use serde_json::{Value, json};

fn filter(steps: &Value) -> Result<KeyFilter, BadFilter> {
    KeyFilter::parse(&from_json(&steps.clone().into()))
}

const fn never() -> bool {
    false
}

fn takes(steps: &Value, key: &str) -> bool {
    filter(steps).unwrap().takes(key.as_bytes(), &never).unwrap()
}

#[test]
fn each_filter_takes_and_leaves() {
    for (steps, taken, left) in [
        (json!([["starts_with", "12-20"]]), "12-20-2010", "11-20-2010"),
        (json!([["ends_with", "2010"]]), "12-20-2010", "12-20-2011"),
        (json!([["eq", "a"]]), "a", "b"),
        (json!([["neq", "a"]]), "b", "a"),
        (json!([["matches", "johnm.*"]]), "johnm@basho.com", "earl@basho.com"),
        (json!([["set_member", "a", "b"]]), "b", "c"),
        (json!([["set_member", ["a", "b"]]]), "b", "c"),
        (json!([["similar_to", "basho", 1]]), "baysho", "baysho!"),
        (json!([["between", "b", "d"]]), "d", "e"),
        (json!([["between", "b", "d", false]]), "c", "d"),
        (json!([["greater_than", "b"]]), "c", "b"),
        (json!([["greater_than_eq", "b"]]), "b", "a"),
        (json!([["less_than", "b"]]), "a", "b"),
        (json!([["less_than_eq", "b"]]), "b", "c"),
        (json!([["string_to_int"], ["greater_than", 9]]), "10", "9"),
        (json!([["string_to_int"], ["int_to_string"], ["eq", "10"]]), "+10", "11"),
        (json!([["string_to_float"], ["less_than", 1]]), "0.5", "1.5"),
        (json!([["string_to_float"], ["float_to_string"], ["eq", "1.50000000000000000000e+00"]]), "1.5", "1.25"),
        (json!([["to_upper"], ["eq", "ABC"]]), "aBc", "abd"),
        (json!([["to_lower"], ["similar_to", "basho", 3]]), "BAYSHO", "lolcaTS"),
        (json!([["tokenize", "-", 3], ["string_to_int"], ["between", 2009, 2010]]), "12-20-2009", "12-20-2011"),
        (json!([["tokenize", "/-", 2], ["eq", "b"]]), "a/-b-c", "a-c"),
        (json!([["tokenize", "-", 4], ["eq", "x"]]), "a-b-c-x", "a-b-c"),
        (json!([["urldecode"], ["eq", "a b/c"]]), "a+b%2fc", "a%20b"),
        (json!([["and", [["to_lower"], ["starts_with", "hello"]], [["ends_with", "dolly"]]]]), "Hello dolly", "dolly"),
        (json!([["or", [["starts_with", "hello"]], [["starts_with", "cloned"]]]]), "cloned sheep", "sheep"),
        (json!([["not", [["ends_with", "2010"]]]]), "12-20-2013", "12-20-2010"),
        (json!([["and", [["starts_with", "o"]], [["ends_with", "1"]]]]), "o01", "o02"),
    ] {
        assert!(takes(&steps, taken), "{steps} takes {taken}");
        assert!(!takes(&steps, left), "{steps} leaves {left}");
    }
    assert!(takes(&json!([]), "anything"));
}

#[test]
fn filters_that_do_not_exist_are_refused_by_name() {
    let refused = |steps: Value| filter(&steps).unwrap_err().0;
    assert_eq!(refused(json!([["zork", "o0"]])), Term::binary(b"zork"));
    assert_eq!(refused(json!([["starts_with", "a"], ["zork"]])), Term::binary(b"zork"));
    // Riak knows the name and has no such filter.
    assert_eq!(refused(json!([["sounds_like", "x"]])), Term::binary(b"sounds_like"));
    for steps in [
        json!([["to_upper"]]),
        json!([["starts_with"]]),
        json!([["between", 1]]),
        json!([["between", 1, 2, 3]]),
        json!([["matches", "("]]),
        json!([["matches", "(a)\\1"]]),
        json!([["matches", "((a{900}){900}){900}"]]),
        json!([["tokenize", "-", 0], ["eq", "a"]]),
        json!([["similar_to", "x", -1]]),
        json!([["similar_to", "x".repeat(1025), 1]]),
        json!([["not"]]),
        json!([["and", "x"]]),
        json!(["eq"]),
        json!([[]]),
        json!({"a": 1}),
        json!("eq"),
    ] {
        assert!(filter(&steps).is_err(), "{steps}");
    }
}

#[test]
fn filters_are_bounded() {
    let nested = (0..DEPTH).fold(json!([["eq", "a"]]), |inner, _| json!([["not", inner]]));
    assert!(filter(&nested).is_err());
    let wide = Value::Array(vec![json!(["eq", "a"]); 1001]);
    assert!(filter(&wide).is_err());
}

const DEPTH: usize = 17;

/// The end of a job, or of the node, does not wait for the longest key.
/// The size of a compiled expression bounds the time for a key.
#[test]
fn a_regular_expression_that_would_be_slow_is_refused() {
    let matches = |count: u32| filter(&json!([["matches", format!("(?s)[ab]*a[ab]{{{count}}}c")]]));
    assert!(matches(500).is_ok());
    assert!(matches(5_000).is_err());
    let words: Vec<_> = (0..300).map(|number| format!("word-{number}")).collect();
    assert!(takes(&json!([["matches", words.join("|")]]), "a word-299"));
}

#[test]
fn the_work_with_a_key_ends_when_nobody_waits_for_it() {
    let similar = json!(["similar_to", "x".repeat(1024), 70_000]);
    let mut many = vec![json!("and")];
    many.resize(900, json!([["matches", "y*"]]));
    for (steps, looks_max) in [(json!([similar]), 10), (json!([many]), 10)] {
        let looks = std::cell::Cell::new(0);
        let is_over = || {
            looks.set(looks.get() + 1);
            looks.get() == looks_max
        };
        let filter = filter(&steps).unwrap();
        assert_eq!(filter.takes(&[b'y'; 65_536], &is_over), Err(Over), "{steps}");
        assert_eq!(looks.get(), looks_max, "{steps}");
    }
}

#[test]
fn a_key_that_a_step_cannot_work_on_is_not_taken() {
    let unfit = [
        (json!([["string_to_int"], ["neq", 1]]), "x"),
        (json!([["string_to_float"], ["neq", 1]]), "1"),
        (json!([["int_to_string"], ["neq", "2"]]), "1"),
        (json!([["float_to_string"], ["neq", "2"]]), "1"),
        (json!([["string_to_int"], ["matches", "1"]]), "1"),
    ];
    for (steps, key) in unfit {
        assert!(!takes(&steps, key), "{steps}");
        assert!(!takes(&json!([["not", steps]]), key), "not {steps}");
        assert!(!takes(&json!([["or", steps, [["starts_with", ""]]]]), key), "{steps} or any key");
    }
    // `or` ends with the first filter that the key passes, and `and` with the first one that it
    // does not pass.
    let number = json!([["string_to_int"], ["eq", 1]]);
    assert!(takes(&json!([["or", [["starts_with", "x"]], number]]), "x"));
    assert!(!takes(&json!([["and", [["starts_with", "1"]], number]]), "x"));
}

fn plain_distance(a: &[u8], b: &[u8]) -> usize {
    match (a, b) {
        ([], rest) | (rest, []) => rest.len(),
        ([x, a_rest @ ..], [y, b_rest @ ..]) => {
            let replaced = plain_distance(a_rest, b_rest) + usize::from(x != y);
            replaced.min(plain_distance(a_rest, b) + 1).min(plain_distance(a, b_rest) + 1)
        }
    }
}

proptest! {
    #[test]
    fn distances_are_levenshteins(a in "[ab]{0,6}", b in "[ab]{0,6}", distance_max in 0_usize..7) {
        let expected = plain_distance(a.as_bytes(), b.as_bytes());
        let found = super::distance::distance(a.as_bytes(), b.as_bytes(), distance_max, &never);
        prop_assert_eq!(found, Ok((expected <= distance_max).then_some(expected)));
    }

    #[test]
    fn logic_is_logic(key in "[a-c]{0,3}", x in "[a-c]", y in "[a-c]") {
        let (starts, ends) = (key.starts_with(&x), key.ends_with(&y));
        let parts = [json!([["starts_with", x]]), json!([["ends_with", y]])];
        prop_assert_eq!(takes(&json!([["and", parts[0], parts[1]]]), &key), starts && ends);
        prop_assert_eq!(takes(&json!([["or", parts[0], parts[1]]]), &key), starts || ends);
        prop_assert_eq!(takes(&json!([["not", parts[0]]]), &key), !starts);
    }

    /// No filter and no key makes the parser or a filter panic.
    #[test]
    fn anything_is_a_filter_or_refused(
        name in prop::sample::select(vec![
            "int_to_string", "string_to_int", "float_to_string", "string_to_float", "to_upper", "tokenize",
            "urldecode", "eq", "between", "matches", "set_member", "similar_to", "starts_with", "ends_with",
        ]),
        args in prop::collection::vec(prop_oneof![any::<i64>().prop_map(Value::from), ".{0,5}".prop_map(Value::from)], 0..4),
        key in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut step = vec![json!(name)];
        step.extend(args);
        let steps = json!([step, ["neq", "x"]]);
        if let Ok(filter) = filter(&steps) {
            let _ = filter.takes(&key, &never);
        }
    }
}
