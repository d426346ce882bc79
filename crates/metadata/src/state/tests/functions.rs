//! Registered functions.

use super::*;

#[test]
fn a_function_changes_only_from_the_version_that_its_sender_saw() {
    let mut state = founded();
    assert!(!state.has_had_functions());
    state.apply(2, put_function("f", None, Some("one"))).unwrap();
    let record = |state: &Metadata| state.functions().get("f").map(|r| (r.source.to_string(), r.version));
    assert_eq!(record(&state), Some(("one".into(), 2)));
    assert_eq!(refused(&mut state, put_function("f", None, Some("two"))), Refusal::Changed, "another was faster");
    assert_eq!(refused(&mut state, put_function("f", Some(1), None)), Refusal::Changed);
    assert_eq!(refused(&mut state, put_function("g", Some(2), None)), Refusal::Changed);
    state.apply(3, put_function("f", Some(2), Some("two"))).unwrap();
    assert_eq!(record(&state), Some(("two".into(), 3)));
    assert_eq!(refused(&mut state, put_function("f", Some(2), None)), Refusal::Changed, "it was replaced");
    state.apply(4, put_function("f", Some(3), None)).unwrap();
    assert_eq!(record(&state), None);
    assert_eq!(refused(&mut state, put_function("f", Some(3), None)), Refusal::Changed, "it was deleted");
}

#[test]
fn what_changed_is_found_without_looking_at_the_rest() {
    let mut old = founded();
    old.apply(2, put_function("stays", None, Some("s"))).unwrap();
    old.apply(3, put_function("goes", None, Some("g"))).unwrap();
    old.apply(4, put_function("changes", None, Some("one"))).unwrap();
    let mut new = old.clone();
    new.apply(5, put_function("goes", Some(3), None)).unwrap();
    new.apply(6, put_function("changes", Some(4), Some("two"))).unwrap();
    new.apply(7, put_function("comes", None, Some("c"))).unwrap();
    let record = |source: &str, version| Some(FunctionRecord { source: source.into(), version });
    let expected = [("changes", record("two", 6)), ("comes", record("c", 7)), ("goes", None)];
    let expected = expected.map(|(name, record)| ChangedRecord::Function(name.into(), record));
    assert_eq!(changed_records(&old, &new), expected);
}

#[test]
fn functions_are_saved_and_a_state_that_had_some_keeps_its_format() {
    let format = |state: &Metadata| {
        let saved: Value = serde_json::from_slice(&state.to_bytes().unwrap()).unwrap();
        saved["format"].as_u64()
    };
    let mut state = founded();
    assert_eq!(format(&state), Some(1));
    state.apply(2, put_function("f", None, Some("s"))).unwrap();
    assert_eq!((Metadata::from_bytes(&state.to_bytes().unwrap()), format(&state)), (Ok(state.clone()), Some(4)));
    state.apply(3, put_function("f", Some(2), None)).unwrap();
    assert!(state.functions().is_empty() && state.has_had_functions());
    assert_eq!((Metadata::from_bytes(&state.to_bytes().unwrap()), format(&state)), (Ok(state.clone()), Some(4)));
}
