//! The records of namespaces.

use super::*;

fn value(state: &Metadata, namespace: &str, key: &[u8]) -> Option<(String, u64)> {
    state.record(namespace, key).map(|record| (record.value.to_string(), record.version))
}

fn format_of(state: &Metadata) -> u64 {
    let bytes = state.to_bytes().unwrap();
    assert_eq!(Metadata::from_bytes(&bytes).as_ref(), Ok(state));
    serde_json::from_slice::<Value>(&bytes).unwrap()["format"].as_u64().unwrap()
}

#[test]
fn a_record_changes_only_from_the_version_that_its_sender_saw() {
    let mut state = founded();
    state.apply(2, put_record("users", b"u", None, Some("one"))).unwrap();
    assert_eq!(value(&state, "users", b"u"), Some(("one".into(), 2)));
    let before = state.clone();
    for late in [
        put_record("users", b"u", None, Some("two")),
        put_record("users", b"u", Some(1), Some("two")),
        put_record("users", b"u", Some(1), None),
        put_record("users", b"other", Some(2), None),
        put_record("others", b"u", Some(2), Some("two")),
    ] {
        assert_eq!(refused(&mut state, late), Refusal::Changed);
        assert_eq!(state, before);
    }
    state.apply(3, put_record("users", b"u", Some(2), Some("two"))).unwrap();
    assert_eq!(value(&state, "users", b"u"), Some(("two".into(), 3)));
    state.apply(4, put_record("users", b"u", Some(3), None)).unwrap();
    assert_eq!(value(&state, "users", b"u"), None);
    assert!(state.has_had_records("users") && !state.has_had_records("others"));
}

#[test]
fn the_same_key_in_two_namespaces_is_two_records() {
    let mut state = founded();
    state.apply(2, put_record("users", b"k", None, Some("user"))).unwrap();
    state.apply(3, put_record("grants", b"k", None, Some("grant"))).unwrap();
    let keys = |namespace: &str| state.records_of(namespace).map(|records| records.keys().cloned().collect());
    assert_eq!(keys("users"), Some(vec![Bytes::from("k")]));
    assert_eq!(keys("schemas"), None);
    assert_eq!(value(&state, "grants", b"k"), Some(("grant".into(), 3)));
}

#[test]
fn changes_are_found_in_each_namespace() {
    let mut old = founded();
    old.apply(2, put_record("a", b"stays", None, Some("s"))).unwrap();
    old.apply(3, put_record("b", b"goes", None, Some("g"))).unwrap();
    let mut new = old.clone();
    new.apply(4, put_record("a", b"comes", None, Some("c"))).unwrap();
    new.apply(5, put_record("b", b"goes", Some(3), None)).unwrap();
    new.apply(6, put_record("c", b"first", None, Some("f"))).unwrap();
    let record = |value: &str, version| Some(OpenRecord { value: value.into(), version });
    let changed = |namespace: &str, key: &'static str, record| {
        ChangedRecord::Open(RecordName { namespace: namespace.into(), key: key.into() }, record)
    };
    let forth =
        [changed("a", "comes", record("c", 4)), changed("b", "goes", None), changed("c", "first", record("f", 6))];
    assert_eq!(changed_records(&old, &new), forth);
    let back = [changed("a", "comes", None), changed("b", "goes", record("g", 3)), changed("c", "first", None)];
    assert_eq!(changed_records(&new, &old), back);
}

/// A member without open records reads snapshots until one of the commands is used that it lacks.
/// From then on it says which format it lacks, also when the last record is gone.
#[test]
fn the_saved_form_is_one_that_earlier_versions_know_until_their_commands_do_not_suffice() {
    let mut state = founded();
    state.apply(2, put_function("f", None, Some("s"))).unwrap();
    assert!(!state.has_used_open_records());
    assert_eq!(format_of(&state), 4);
    let mut taken = state.clone();
    state.apply(3, put_record(FUNCTIONS, b"f", Some(2), None)).unwrap();
    assert!(state.has_used_open_records());
    assert_eq!(format_of(&state), 5);
    let records = vec![TakenRecord { namespace: "users".into(), key: "u".into(), value: "v".into() }];
    let (types, buckets, functions) = (Vec::new(), Vec::new(), Vec::new());
    taken.apply(3, Command::TakeOver { types, buckets, functions, records }).unwrap();
    assert_eq!(format_of(&taken), 5);
}

/// The log has the command nevertheless, and a node that joins reads the log.
#[test]
fn a_refused_command_counts_as_one_that_earlier_versions_lack() {
    let mut state = founded();
    state.apply(2, put_function("f", None, Some("s"))).unwrap();
    let before = state.clone();
    assert_eq!(state.apply(3, put_record(FUNCTIONS, b"f", Some(1), None)), Err(Refusal::Changed));
    assert!(state.has_used_open_records());
    assert_eq!(format_of(&state), 5);
    assert!(changed_records(&before, &state).is_empty());
    assert_eq!(refused(&mut state, put_record("users", b"u", Some(1), None)), Refusal::Changed);
}

/// The log of a cluster may have entries of both kinds: they were written before and after its last
/// member was upgraded.
#[test]
fn both_commands_change_the_same_functions() {
    let mut state = founded();
    state.apply(2, put_function("f", None, Some("one"))).unwrap();
    state.apply(3, put_record(FUNCTIONS, b"f", Some(2), Some("two"))).unwrap();
    assert_eq!(refused(&mut state, put_function("f", Some(2), Some("three"))), Refusal::Changed);
    state.apply(4, put_function("f", Some(3), Some("three"))).unwrap();
    assert_eq!(value(&state, FUNCTIONS, b"f"), Some(("three".into(), 4)));
    state.apply(5, put_record(FUNCTIONS, b"g", None, Some("s"))).unwrap();
    let hook = Command::PutBucket {
        bucket: BucketName { r#type: "default".into(), name: "b".into() },
        expected: None,
        type_expected: None,
        overrides: Some(map(json!({"precommit": [{"name": "g"}]}))),
    };
    let command = Box::new(hook);
    state.apply(6, Command::WithFunctions { named: vec!["g".into()], command }).unwrap();
    assert_eq!(refused(&mut state, Command::DeleteUnnamed { name: "g".into(), expected: 5 }), Refusal::Changed);
}
