//! Tests of the object as JavaScript sees it.

use super::*;
use ombak_types::Bucket;
use ombak_types::object::{IndexEntry, Link};
use ombak_types::time::UnixMicros;
use proptest::prelude::*;
use serde_json::{Value, json};

fn input() -> Input {
    Input::new(Bucket::typed("t", "b"), Bytes::from_static(b"k"))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn full() -> Object {
    let mut sibling = Sibling::new("{\"a\":1}");
    sibling.meta = SiblingMeta {
        content_type: Some(bytes("application/json")),
        charset: Some(bytes("utf-8")),
        vtag: Some(bytes("2yj60EGAswQLQzzUrSM4Py")),
        last_modified: Some(UnixMicros::from_secs(1_795_209_089)),
        links: vec![Link { bucket: bytes("b"), key: bytes("k2"), tag: bytes("tag") }],
        indexes: vec![
            IndexEntry::parse(b"test_bin", b"one").unwrap(),
            IndexEntry::parse(b"test_bin", b"two").unwrap(),
            IndexEntry::parse(b"test2_int", b"4").unwrap(),
        ],
        user_meta: vec![(bytes("X-Riak-Meta-Foo"), bytes("bar"))],
        ..SiblingMeta::default()
    };
    Object::new(sibling)
}

fn shown(object: &Object) -> Value {
    serde_json::from_str(&object_to_json(&input(), object).unwrap()).unwrap()
}

#[test]
fn an_object_has_riaks_form() {
    let json = shown(&full());
    assert_eq!(json["bucket_type"], "t");
    assert_eq!(json["bucket"], "b");
    assert_eq!(json["key"], "k");
    assert!(json["vclock"].is_string());
    assert_eq!(json["values"][0]["data"], "{\"a\":1}");
    assert_eq!(
        json["values"][0]["metadata"],
        json!({
            "X-Riak-VTag": "2yj60EGAswQLQzzUrSM4Py",
            "content-type": "application/json",
            "charset": "utf-8",
            "X-Riak-Last-Modified": "Fri, 20 Nov 2026 21:11:29 GMT",
            "Links": [["b", "k2", "tag"]],
            "index": { "test_bin": ["one", "two"], "test2_int": 4 },
            "X-Riak-Meta": { "X-Riak-Meta-Foo": "bar" },
        })
    );
    let names: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(names, ["bucket_type", "bucket", "key", "vclock", "values"]);
}

#[test]
fn what_functions_look_into_is_always_there() {
    let json = shown(&Object::new(Sibling::new("x")));
    assert_eq!(json["values"][0]["metadata"], json!({ "Links": [], "index": {}, "X-Riak-Meta": {} }));
    let tombstone = shown(&Object::new(Sibling::tombstone()));
    assert_eq!(tombstone["values"][0]["metadata"]["X-Riak-Deleted"], "true");
}

#[test]
fn values_that_are_no_text_have_no_json() {
    assert_eq!(object_to_json(&input(), &Object::new(Sibling::new(&b"\xff"[..]))), Err(NotJson::BadUtf8));
    let mut stored = Sibling::new(ombak_types::etf::encode(&Term::string(&[1, 2])));
    stored.meta.val_encoding = VAL_ENCODING_TERM;
    assert_eq!(shown(&Object::new(stored))["values"][0]["data"], json!([1, 2]));
}

#[test]
fn a_map_function_sees_the_key_of_a_value_that_is_no_text() {
    let mut object = Object::new(Sibling::new(&b"\xff\x00"[..]));
    object.siblings.push(Sibling::new("text"));
    object.siblings[0].meta.user_meta = vec![(bytes("X-Riak-Meta-A"), Bytes::from_static(b"a\xff"))];
    let odd = Input { key: Bytes::from_static(b"k\xff"), ..input() };
    let json: Value = serde_json::from_str(&object_to_readable_json(&odd, &object).unwrap()).unwrap();
    assert_eq!((&json["bucket"], &json["key"]), (&json!("b"), &json!("k\u{fffd}")));
    assert_eq!((&json["values"][0]["data"], &json["values"][1]["data"]), (&Value::Null, &json!("text")));
    assert_eq!(json["values"][0]["metadata"]["X-Riak-Meta"]["X-Riak-Meta-A"], "a\u{fffd}");
    let plain = full();
    assert_eq!(object_to_readable_json(&input(), &plain), object_to_json(&input(), &plain), "a text is unchanged");
}

#[test]
fn a_missing_object_has_riaks_form() {
    let untyped = Input { bucket: Bucket::untyped("b"), ..input() };
    let json = crate::to_json(&not_found_term(&untyped)).unwrap();
    assert_eq!(json, r#"{"not_found":{"bucket":"b","key":"k","keydata":"undefined"}}"#);
    assert!(crate::to_json(&not_found_term(&input())).unwrap().contains(r#""bucket_type":"t""#));
}

#[test]
fn a_hook_may_change_values_and_metadata() {
    let mut put = full();
    put.siblings[0].meta.expires_secs = Some(7);
    assert_eq!(object_from_json(&input(), &put, &shown(&put)).unwrap(), put, "unchanged");
    let mut json = shown(&put);
    json["values"][0]["data"] = json!("new");
    json["values"][0]["metadata"]["content-type"] = json!("text/plain");
    json["values"][0]["metadata"]["index"] = json!({ "a_int": [1, "2"] });
    json["values"][0]["metadata"]["Links"] = json!([]);
    json["values"][0]["metadata"]["X-Riak-Meta"] = json!([]);
    let changed = object_from_json(&input(), &put, &json).unwrap();
    let sibling = &changed.siblings[0];
    assert_eq!((&sibling.value[..], sibling.meta.content_type.as_deref()), (&b"new"[..], Some(&b"text/plain"[..])));
    assert_eq!(sibling.meta.indexes.len(), 2);
    assert!(sibling.meta.links.is_empty() && sibling.meta.user_meta.is_empty());
    assert_eq!(sibling.meta.expires_secs, Some(7), "what JSON does not show stays");
    assert_eq!(changed.clock, put.clock);
}

/// JavaScript has 53 bits for a number.
#[test]
fn a_hook_keeps_the_digits_of_index_entries_that_it_does_not_change() {
    let entry = |digits: &str| IndexEntry::parse(b"n_int", digits.as_bytes()).unwrap();
    let mut put = full();
    put.siblings[0].meta.indexes =
        vec![entry("9007199254740992"), entry("9007199254740993"), entry("123456789012345678901234567890")];
    let mut json = shown(&put);
    let from_javascript = "[9007199254740992,9007199254740992,1.2345678901234568e+29]";
    json["values"][0]["metadata"]["index"]["n_int"] = serde_json::from_str(from_javascript).unwrap();
    assert_eq!(object_from_json(&input(), &put, &json).unwrap(), put);
    json["values"][0]["metadata"]["index"] = json!({ "n_int": [1e20, 7, 1.5] });
    assert!(object_from_json(&input(), &put, &json).is_err(), "1.5 is no integer");
    json["values"][0]["metadata"]["index"] = json!({ "n_int": [1e20, 7] });
    let changed = object_from_json(&input(), &put, &json).unwrap();
    assert_eq!(changed.siblings[0].meta.indexes, [entry("100000000000000000000"), entry("7")]);
}

#[test]
fn what_is_no_object_is_refused() {
    let put = full();
    let mut cases = vec![json!(null), json!([]), json!({}), json!({ "values": [] }), json!({ "values": [{}] })];
    for (path, value) in [
        ("/key", json!("other")),
        ("/bucket", json!(1)),
        ("/bucket_type", json!("default")),
        ("/values/0/metadata", json!(1)),
        ("/values/0/metadata/Links", json!([["a", "b"]])),
        ("/values/0/metadata/Links", json!({})),
        ("/values/0/metadata/index", json!({ "a_int": "x" })),
        ("/values/0/metadata/index", json!({ "a_zork": "x" })),
        ("/values/0/metadata/index", json!({ "a_bin": 1 })),
        ("/values/0/metadata/X-Riak-Meta", json!({ "a": 1 })),
        ("/values/0/metadata/content-type", json!(1)),
    ] {
        let mut json = shown(&put);
        *json.pointer_mut(path).unwrap() = value;
        cases.push(json);
    }
    for json in cases {
        assert!(object_from_json(&input(), &put, &json).is_err(), "{json}");
    }
}

proptest! {
    #[test]
    fn what_a_hook_does_not_change_comes_back(
        value in ".{0,20}",
        links in prop::collection::vec((".{0,3}", ".{0,3}", ".{0,3}"), 0..3),
        ints in prop::collection::btree_set(any::<i64>(), 0..3),
        meta in prop::collection::btree_map("[a-z]{1,3}", ".{0,3}", 0..3),
    ) {
        let mut sibling = Sibling::new(value);
        let link = |(bucket, key, tag): (String, String, String)| {
            Link { bucket: bytes(&bucket), key: bytes(&key), tag: bytes(&tag) }
        };
        sibling.meta.links = links.into_iter().map(link).collect();
        sibling.meta.indexes =
            ints.iter().map(|n| IndexEntry::parse(b"n_int", n.to_string().as_bytes()).unwrap()).collect();
        sibling.meta.user_meta = meta.iter().map(|(name, value)| (bytes(name), bytes(value))).collect();
        let put = Object::new(sibling);
        prop_assert_eq!(object_from_json(&input(), &put, &shown(&put)).unwrap(), put);
    }
}
