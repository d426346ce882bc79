//! The commands and refusals that version 1 did not have.

use super::*;
use ombak_fixtures::{FrozenMessages, check_file};

/// With what is no text.
const KEY: &[u8] = b"100% \xc3\xa4\x01";
/// With what has to be escaped.
const SOURCE: &str = "function(v) {\n\treturn [\"\u{e9}\\\"];\n}\n";

#[test]
fn commands_and_refusals_have_the_bytes_of_version_2() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "commands");
    let (_, ring) = two();
    let goal = NewGoal { removed: vec![C], ns: [1, 3].into(), ..goal(&ring) };
    let locations = vec![(A, location("Gestell \u{e4}")), (B, location("rack 2"))];
    let located = NewGoal { locations: locations.clone(), ..goal.clone() };
    let (expected, statuses) = (RingVersion::first(LINEAGE), vec![(B, MemberStatus::Valid)]);
    let commit = Command::CommitRing { expected, staged: 300, ring, statuses, locations };
    let functions = vec![("f".into(), SOURCE.into())];
    let records = Vec::new();
    let take_over = Command::TakeOver { types: Vec::new(), buckets: Vec::new(), functions, records };
    let taken = TakenRecord { namespace: "users".into(), key: KEY.into(), value: SOURCE.into() };
    let (types, buckets, functions) = (Vec::new(), Vec::new(), Vec::new());
    let take_over_records = Command::TakeOver { types, buckets, functions, records: vec![taken] };
    let bucket = BucketName { r#type: "default".into(), name: "b".into() };
    let overrides = Some(map(json!({"precommit": [{"name": "My.f"}]})));
    let set_hook = Command::PutBucket { bucket, expected: None, type_expected: None, overrides };
    let with_functions = Command::WithFunctions { named: vec!["My.f".into()], command: Box::new(set_hook) };
    for (name, command) in [
        ("set_goal", Command::SetGoal(goal)),
        ("take_step", step(300, 7, Step::Begin)),
        ("set_goal/locations", Command::SetGoal(located)),
        ("commit_ring/locations", commit),
        ("put_function", put_function("My.f", Some(300), Some(SOURCE))),
        ("put_function/new", put_function("f", None, Some(SOURCE))),
        ("put_function/none", put_function("f", Some(300), None)),
        ("take_over/functions", take_over),
        ("delete_unnamed", Command::DeleteUnnamed { name: "My.f".into(), expected: 300 }),
        ("with_functions", with_functions),
        ("put_record", put_record("users", KEY, Some(300), Some(SOURCE))),
        ("put_record/new", put_record("functions", b"f", None, Some(SOURCE))),
        ("put_record/none", put_record("users", KEY, Some(300), None)),
        ("take_over/records", take_over_records),
    ] {
        frozen.check(name, &command, |m| serde_json::to_vec(m).unwrap(), |b| serde_json::from_slice(b));
    }
    frozen.end();
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "refusals");
    for (name, refusal) in [("no_goal", Refusal::NoGoal("a reason".into())), ("ring_changes", Refusal::RingChanges)] {
        frozen.check(name, &refusal, |m| serde_json::to_vec(m).unwrap(), |b| serde_json::from_slice(b));
    }
    frozen.end();
}

#[test]
fn a_saved_state_with_locations_has_the_bytes_of_version_2() {
    let (mut state, ring) = two();
    let locations = vec![(A, location("Gestell \u{e4}"))];
    state.apply(4, Command::SetGoal(NewGoal { locations, ..goal(&ring) })).unwrap();
    state.apply(5, step(6, 1, Step::Begin)).unwrap();
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 2, "state.json", &state.to_bytes().unwrap());
    assert_eq!(Metadata::from_bytes(&frozen), Ok(state));
}

#[test]
fn a_saved_state_with_functions_has_the_bytes_of_version_2() {
    let (mut state, ring) = two();
    let locations = vec![(A, location("Gestell \u{e4}"))];
    state.apply(4, Command::SetGoal(NewGoal { locations, ..goal(&ring) })).unwrap();
    for (index, name) in [(5, "f"), (6, "My.f"), (7, "gone")] {
        state.apply(index, put_function(name, None, Some(SOURCE))).unwrap();
    }
    state.apply(8, put_function("gone", Some(7), None)).unwrap();
    let name = "state-with-functions.json";
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 2, name, &state.to_bytes().unwrap());
    assert_eq!(Metadata::from_bytes(&frozen), Ok(state));
}

#[test]
fn a_saved_state_with_records_has_the_bytes_of_version_2() {
    let mut state = founded();
    state.apply(2, put_function("f", None, Some(SOURCE))).unwrap();
    state.apply(3, put_record("users", KEY, None, Some("{\"name\":\"u\"}"))).unwrap();
    state.apply(4, put_record("gone", b"g", None, Some(""))).unwrap();
    state.apply(5, put_record("gone", b"g", Some(4), None)).unwrap();
    let name = "state-with-records.json";
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 2, name, &state.to_bytes().unwrap());
    assert_eq!(Metadata::from_bytes(&frozen), Ok(state));
}
