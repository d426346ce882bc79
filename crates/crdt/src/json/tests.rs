//! Recorded exchanges of a Riak KV 3.2.3 node (http/452 to http/510), as requests and answers. The
//! actor in contexts is another one here, the counts are the same.

use super::*;
use crate::testing::actor;
use crate::{Precision, State};
use serde_json::{Value as JsonValue, json};

/// What a node does with requests, one after the other.
struct Node(State);

impl Node {
    fn new(kind: DataType) -> Self {
        Self(State::new(kind, Precision::DEFAULT))
    }

    /// Posts a request, and returns the text of an error.
    fn post(&mut self, body: JsonValue) -> Result<(), String> {
        let (request, context) = request_from_json(self.0.kind(), body.into(), 1).map_err(|bad| bad.to_string())?;
        let delta = self.0.delta(&request, &actor(0), context.as_ref()).map_err(|refusal| refusal.to_string())?;
        self.0.merge_delta(&delta).unwrap();
        Ok(())
    }

    /// The value, and the count in the context.
    fn get(&self) -> (JsonValue, Option<u64>) {
        let mut answer = value_to_json(&self.0.value(), self.0.context()).into_value();
        assert_eq!(answer["type"], self.0.kind().name());
        let context = answer.as_object_mut().unwrap().shift_remove("context");
        let clock = context.map(|context| read_context(&context.into()).unwrap());
        (answer["value"].take(), clock.map(|clock| clock.count_of(&actor(0))))
    }

    /// A context that a client got when the actor had made so many events.
    fn context(count: u64) -> String {
        STANDARD.encode([&crate::Dot::new(actor(0), count)].into_iter().collect::<Clock>().to_context())
    }
}

#[test]
fn counters() {
    let mut node = Node::new(DataType::Counter);
    for body in [json!({"increment": 5}), json!(7), json!({"decrement": 2}), json!({"increment": 1})] {
        node.post(body).unwrap();
    }
    assert_eq!(node.get(), (json!(11), None));
    for body in [json!("increment"), json!("decrement"), json!(-3)] {
        node.post(body).unwrap();
    }
    assert_eq!(node.get(), (json!(8), None));
    let refused = node.post(json!({"increment": 1.5})).unwrap_err();
    assert_eq!(refused, r#"Invalid operation on datatype 'counter': {"increment":1.5}"#);
    for body in
        [json!({"zork": 1}), json!({"increment": 1, "decrement": 1}), json!(null), json!({"decrement": i64::MIN})]
    {
        assert!(node.post(body).is_err());
    }
}

#[test]
fn sets() {
    let mut node = Node::new(DataType::Set);
    node.post(json!({"add": "a"})).unwrap();
    node.post(json!({"add_all": ["b", "c", "d"]})).unwrap();
    assert_eq!(node.get(), (json!(["a", "b", "c", "d"]), Some(4)));
    node.post(json!({"remove": "a"})).unwrap();
    node.post(json!({"remove": "a", "context": Node::context(4)})).unwrap();
    node.post(json!({"remove_all": ["b"], "add": "z", "context": Node::context(4)})).unwrap();
    assert_eq!(node.get(), (json!(["c", "d", "z"]), Some(5)));
    assert_eq!(node.post(json!({"remove": "zork"})).unwrap_err(), r#"{precondition,{not_present,<<"zork">>}}"#);
    node.post(json!({"remove": "zork", "context": Node::context(4)})).unwrap();
    assert!(node.post(json!({"remove": "c", "context": "zork"})).unwrap_err().starts_with("Invalid context"));
    node.post(json!({"add": "y"})).unwrap();
    assert_eq!(node.get(), (json!(["c", "d", "y", "z"]), Some(6)));
    let mut new = Node::new(DataType::Set);
    assert_eq!(new.post(json!({"remove": "x"})).unwrap_err(), r#"{precondition,{not_present,<<"x">>}}"#);
    let refused = |body| Node::new(DataType::Set).post(body).unwrap_err();
    assert_eq!(refused(json!({"add": 1})), r#"Invalid operation on datatype 'set': {"add":1}"#);
    assert_eq!(refused(json!({"increment": 1})), r#"Invalid operation on datatype 'set': {"increment":1}"#);
    let nested = json!({"update": [{"add": "n"}, {"update": {"add_all": ["m"]}}, {"remove": "n"}]});
    new.post(nested).unwrap();
    assert_eq!(new.get().0, json!(["m"]));
    assert_eq!(
        refused(json!({"update": [{"add_all": [1]}]})),
        r#"Invalid operation on datatype 'set': {"update":[{"add_all":[1]}]}"#
    );
}

#[test]
fn maps() {
    let mut node = Node::new(DataType::Map);
    node.post(json!({"update": {
        "name_register": "Bob", "visits_counter": 3, "tags_set": {"add_all": ["x", "y"]}, "on_flag": "enable",
        "sub_map": {"update": {"r_register": "deep"}},
    }}))
    .unwrap();
    let all = json!({"name_register": "Bob", "on_flag": true, "sub_map": {"r_register": "deep"},
        "tags_set": ["x", "y"], "visits_counter": 3});
    assert_eq!(node.get(), (all, Some(1)));
    node.post(json!({"remove": ["name_register"]})).unwrap();
    let seen = Node::context(1);
    node.post(json!({"remove": ["name_register"], "update": {"on_flag": "disable"}, "context": seen})).unwrap();
    let left =
        json!({"on_flag": false, "sub_map": {"r_register": "deep"}, "tags_set": ["x", "y"], "visits_counter": 3});
    assert_eq!(node.get(), (left, Some(3)));
    node.post(json!({"update": {"tags_set": {"remove": "x"}}, "context": seen})).unwrap();
    assert_eq!(node.post(json!({"update": {"zork": "x"}})).unwrap_err(), "Invalid map field name 'zork'");
    let refused = node.post(json!({"update": {"visits_counter": "x"}})).unwrap_err();
    assert_eq!(refused, r#"Invalid operation on datatype 'counter': "x""#);
    node.post(json!({"remove": ["zz_register"], "context": seen})).unwrap();
    let left = json!({"on_flag": false, "sub_map": {"r_register": "deep"}, "tags_set": ["y"], "visits_counter": 3});
    assert_eq!(node.get(), (left, Some(5)));
    let refused = Node::new(DataType::Map).post(json!({"add": ["a_register", "c_counter"]})).unwrap_err();
    assert_eq!(refused, r#"Invalid operation on datatype 'map': "add""#);
    node.post(json!({"remove": "on_flag", "context": seen})).unwrap();
    node.post(json!({"update": {"visits_counter": {"increment": 2}}})).unwrap();
    let left = json!({"on_flag": false, "sub_map": {"r_register": "deep"}, "tags_set": ["y"], "visits_counter": 5});
    assert_eq!(node.get(), (left, Some(7)));
}

#[test]
fn hyperloglogs_and_sets_that_grow() {
    for (kind, value) in [(DataType::Hll, json!(3)), (DataType::Gset, json!(["a", "b", "c"]))] {
        let mut node = Node::new(kind);
        node.post(json!({"add": "a"})).unwrap();
        node.post(json!({"add_all": ["b", "c"]})).unwrap();
        assert_eq!(node.get(), (value, None));
        let refused = node.post(json!({"remove": "a"})).unwrap_err();
        assert_eq!(refused, format!(r#"Invalid operation on datatype '{}': {{"remove":"a"}}"#, kind.name()));
    }
}

#[test]
fn field_names_end_with_their_types() {
    let refused =
        |name: &str| request_from_json(DataType::Map, json!({"remove": name}).into(), 1).unwrap_err().to_string();
    for name in ["", "counter", "a_hll", "a_gset", "a_counters", "a_Counter"] {
        assert_eq!(refused(name), format!("Invalid map field name '{name}'"));
    }
    let (request, _) = request_from_json(DataType::Map, json!({"remove": ["a_b_set", "_flag"]}).into(), 1).unwrap();
    let removal = |name: &'static str, kind| crate::MapOp::Remove(Field::new(name, kind));
    assert_eq!(request, Request::Map(vec![removal("a_b", FieldType::Set), removal("", FieldType::Flag)]));
}

#[test]
fn a_sum_has_all_its_digits() {
    for (sum, digits) in [
        (i128::from(i64::MIN), "-9223372036854775808"),
        (i128::from(i64::MIN) - 1, "-9223372036854775809"),
        (i128::from(u64::MAX) + 1, "18446744073709551616"),
        (1 << 80, "1208925819614629174706176"),
    ] {
        let counter = value_to_json(&Value::Counter(sum), None).to_string();
        assert_eq!(counter, format!(r#"{{"type":"counter","value":{digits}}}"#));
        let inner = FieldValue::Map(vec![(Field::new("n", FieldType::Counter), FieldValue::Counter(sum))]);
        let map = value_to_json(&Value::Map(vec![(Field::new("m", FieldType::Map), inner)]), None).to_string();
        assert_eq!(map, format!(r#"{{"type":"map","value":{{"m_map":{{"n_counter":{digits}}}}}}}"#));
    }
}

/// Riak applies all members of an `update`, and takes the first of the others.
#[test]
fn members_of_one_name_mean_what_they_mean_to_riak() {
    let read = |kind, json: &str| request_from_json(kind, Json::read(json.as_bytes()).unwrap(), 1).unwrap().0;
    let counter = || Field::new("n", FieldType::Counter);
    let add = |amount| crate::MapOp::Update(counter(), crate::FieldOp::Counter(amount));
    let map = read(DataType::Map, r#"{"update":{"n_counter":1,"n_counter":2},"update":{"n_counter":4}}"#);
    assert_eq!(map, Request::Map(vec![add(1), add(2)]));
    let adds = |members: &[&'static str]| members.iter().map(|name| crate::SetOp::Add(Bytes::from(*name))).collect();
    assert_eq!(read(DataType::Set, r#"{"add":"a","add":"b"}"#), Request::Set(adds(&["a", "b"])));
}
