//! Registered functions.

use super::*;

#[test]
fn a_function_changes_only_from_the_version_that_its_sender_saw() {
    let mut state = founded();
    assert!(!state.has_had_records(FUNCTIONS));
    state.apply(2, put_function("f", None, Some("one"))).unwrap();
    let record = |state: &Metadata| state.record(FUNCTIONS, b"f").map(|r| (r.value.to_string(), r.version));
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
    let record = |source: &str, version| Some(OpenRecord { value: source.into(), version });
    let expected = [("changes", record("two", 6)), ("comes", record("c", 7)), ("goes", None)];
    let name = |name: &'static str| RecordName { namespace: FUNCTIONS.into(), key: name.into() };
    let expected = expected.map(|(key, record)| ChangedRecord::Open(name(key), record));
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
    assert!(has_none(&state) && state.has_had_records(FUNCTIONS));
    assert_eq!((Metadata::from_bytes(&state.to_bytes().unwrap()), format(&state)), (Ok(state.clone()), Some(4)));
}

fn has_none(state: &Metadata) -> bool {
    state.records_of(FUNCTIONS).is_none_or(|functions| functions.is_empty())
}

fn with_hook(hook: &Value) -> Command {
    let bucket = BucketName { r#type: "default".into(), name: "b".into() };
    let overrides = Some(map(json!({ "postcommit": [hook] })));
    Command::PutBucket { bucket, expected: None, type_expected: None, overrides }
}

fn delete_unnamed(name: &str, expected: u64) -> Command {
    Command::DeleteUnnamed { name: name.into(), expected }
}

fn with_functions(named: &[&str], command: Command) -> Command {
    Command::WithFunctions { named: named.iter().map(|name| (*name).into()).collect(), command: Box::new(command) }
}

#[test]
fn of_a_hook_and_the_deletion_of_its_function_the_first_in_the_log_takes_effect() {
    let mut registered = founded();
    registered.apply(2, put_function("f", None, Some("s"))).unwrap();
    let hook = || with_functions(&["f"], with_hook(&json!({"name": "f"})));

    let mut state = registered.clone();
    state.apply(3, hook()).unwrap();
    assert_eq!(refused(&mut state, delete_unnamed("f", 2)), Refusal::Changed);
    assert!(state.record(FUNCTIONS, b"f").is_some());
    state.apply(4, put_function("f", Some(2), None)).unwrap();
    assert!(has_none(&state), "a forced deletion does not look at hooks");

    let mut state = registered.clone();
    state.apply(3, delete_unnamed("f", 2)).unwrap();
    assert_eq!(refused(&mut state, hook()), Refusal::Changed);
    assert!(state.buckets().is_empty());
    state.apply(4, with_hook(&json!({"name": "inAFile"}))).unwrap();
    assert_eq!(state.buckets().len(), 1, "a hook may name what was never registered");
}

#[test]
fn hooks_of_types_and_buckets_count_and_only_by_name() {
    let mut state = founded();
    state.apply(2, put_function("f", None, Some("s"))).unwrap();
    for hook in [json!({"mod": "f", "fun": "f"}), json!({"name": "g"}), json!("f")] {
        let mut state = state.clone();
        state.apply(3, with_hook(&hook)).unwrap();
        assert_eq!(state.apply(4, delete_unnamed("f", 2)), Ok(()), "{hook}");
    }
    let overrides = map(json!({"precommit": [{"name": "g"}, {"name": "f"}]}));
    let of_type = Command::PutType { name: TypeName("t".into()), expected: None, active: false, overrides };
    state.apply(3, of_type).unwrap();
    assert_eq!(refused(&mut state, delete_unnamed("f", 2)), Refusal::Changed);
    assert_eq!(refused(&mut state, delete_unnamed("g", 2)), Refusal::Changed, "it is not registered");
}

#[test]
fn a_hook_is_set_while_its_bucket_alone_is_closed() {
    let mut state = founded();
    state.apply(2, put_function("f", None, Some("s"))).unwrap();
    let bucket = |name: &'static str| BucketName { r#type: "default".into(), name: name.into() };
    let set = || Box::new(with_functions(&["f"], with_hook(&json!({"name": "f"}))));
    state.apply(3, Command::ClosePart { part: ClosedPart::Bucket(bucket("other")) }).unwrap();
    assert_eq!(refused(&mut state, Command::WhileClosed { closing: 3, command: set() }), Refusal::WritesOpen);
    state.apply(4, Command::OpenWrites { closing: 3 }).unwrap();
    state.apply(5, Command::ClosePart { part: ClosedPart::Bucket(bucket("b")) }).unwrap();
    state.apply(6, Command::WhileClosed { closing: 5, command: set() }).unwrap();
    assert_eq!(state.buckets().len(), 1);
}
