//! The commands of version 1. Entries of the log hold them, so nodes of that version must read what
//! is written, and what they wrote must keep its meaning.

use super::*;
use ombak_fixtures::{FrozenMessages, check_file, variants_in};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;

fn milestone() -> Option<Milestone> {
    Some(Milestone { number: 300, token: 0x0102_0304_0506_0708 })
}

fn ring() -> Ring {
    Ring::from_owners(&[A, B, C, A, B, C, A, B], RingVersion { lineage: LINEAGE, number: 2 }).unwrap()
}

fn name(name: &'static str) -> TypeName {
    TypeName(Bytes::from_static(name.as_bytes()))
}

fn bucket() -> BucketName {
    BucketName { r#type: "a type".into(), name: "100% \u{e9}\u{1}".into() }
}

fn props() -> PropMap {
    map(json!({"n_val": 5, "allow_mult": true}))
}

fn commands() -> Vec<(&'static str, Command)> {
    let forced = ForcedFrom { parent: 76, fork_index: 300, survivors: vec![A, B] };
    let member = NewMember { milestone: milestone(), ..member(B) };
    let taken = TakenType { active: true, overrides: props() };
    let statuses = vec![
        (A, MemberStatus::Joining),
        (B, MemberStatus::Valid),
        (C, MemberStatus::Leaving),
        (NodeId::new(4), MemberStatus::Exiting),
        (NodeId::new(5), MemberStatus::Down),
    ];
    let version = RingVersion { lineage: LINEAGE, number: 1 };
    let lineage = Lineage { id: LINEAGE, forced_from: Some(forced) };
    let open = Command::OpenWrites { closing: 300 };
    let put_type = Command::PutType { name: name("t"), expected: Some(300), active: true, overrides: props() };
    let put_bucket = |overrides: Option<PropMap>, version: Option<u64>| Command::PutBucket {
        bucket: bucket(),
        expected: version,
        type_expected: version,
        overrides,
    };
    let locations = Vec::new();
    let commit = Command::CommitRing { expected: version, staged: 300, ring: ring(), statuses, locations };
    vec![
        ("found", Command::Found { lineage, member: super::member(A), ring: ring() }),
        ("add_member", Command::AddMember(member.clone())),
        ("started", Command::Started(super::member(B))),
        ("passed", Command::Passed { member: member.clone(), follows: milestone() }),
        ("passed/first", Command::Passed { member, follows: None }),
        ("replace_log", Command::ReplaceLog { node: A, old: RaftId::new(300), new: RaftId::new(301), boot: 302 }),
        ("set_status", Command::SetStatus { node: A, expected: MemberStatus::Joining, status: MemberStatus::Leaving }),
        ("remove_member", Command::RemoveMember { node: A }),
        ("withdraw_member", Command::WithdrawMember { node: A }),
        ("stage", Command::Stage { expected: 300, changes: json!({"any": "document"}) }),
        ("commit_ring", commit),
        ("put_type", put_type.clone()),
        ("put_type/new", Command::PutType { name: name("t"), expected: None, active: false, overrides: props() }),
        ("put_bucket", put_bucket(Some(props()), Some(300))),
        ("put_bucket/none", put_bucket(None, None)),
        (
            "take_over",
            Command::TakeOver {
                types: vec![(name("t"), taken)],
                buckets: vec![(bucket(), props())],
                functions: Vec::new(),
                records: Vec::new(),
            },
        ),
        ("close_writes", Command::CloseWrites),
        ("close_part/type", Command::ClosePart { part: ClosedPart::Type(name("t")) }),
        ("close_part/bucket", Command::ClosePart { part: ClosedPart::Bucket(bucket()) }),
        ("open_writes", open),
        ("while_closed", Command::WhileClosed { closing: 300, command: Box::new(put_type) }),
    ]
}

fn refusals() -> Vec<(&'static str, Refusal)> {
    vec![
        ("already_founded", Refusal::AlreadyFounded),
        ("not_founded", Refusal::NotFounded),
        ("changed", Refusal::Changed),
        ("no_such_member", Refusal::NoSuchMember(A)),
        ("already_member", Refusal::AlreadyMember(A)),
        ("was_removed", Refusal::WasRemoved(A)),
        ("name_taken", Refusal::NameTaken(A)),
        ("log_used", Refusal::LogUsed(RaftId::new(300))),
        ("restored", Refusal::Restored { known_boot: 300 }),
        ("other_milestone", Refusal::OtherMilestone { recorded: milestone() }),
        ("nobody_stays", Refusal::NobodyStays),
        ("wrong_status", Refusal::WrongStatus(MemberStatus::Down)),
        ("owns_partitions", Refusal::OwnsPartitions(A)),
        ("cannot_own", Refusal::CannotOwn(A)),
        ("not_next_ring", Refusal::NotNextRing(RingVersion { lineage: 7, number: 300 })),
        ("no_type", Refusal::NoType),
        ("type_active", Refusal::TypeActive),
        ("writes_closed", Refusal::WritesClosed),
        ("writes_open", Refusal::WritesOpen),
    ]
}

/// Each message has its frozen bytes, and each variant is frozen in some version.
fn check<T: Debug + Serialize + DeserializeOwned>(file: &str, messages: &[(&str, T)]) {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 1, file);
    for (name, message) in messages {
        frozen.check(name, message, |m| serde_json::to_vec(m).unwrap(), |b| serde_json::from_slice(b));
    }
    frozen.end();
    let later = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, file);
    let variant = |name: &str| name.split('/').next().unwrap().to_owned();
    let names = messages.iter().map(|(name, _)| variant(name));
    let names: BTreeSet<String> = names.chain(later.names().map(variant)).collect();
    let error = serde_json::from_str::<T>(r#"{"no such variant": 0}"#).unwrap_err().to_string();
    assert_eq!(names, variants_in(&error).into_iter().collect(), "{file}: a variant is not frozen");
}

#[test]
fn commands_and_refusals_have_the_bytes_of_version_1() {
    check("commands", &commands());
    check("refusals", &refusals());
}

#[test]
fn a_saved_state_has_the_bytes_of_version_1() {
    let mut state = full(2);
    state
        .apply(20, Command::Passed { member: NewMember { milestone: milestone(), ..member(B) }, follows: None })
        .unwrap();
    state.apply(21, Command::ClosePart { part: ClosedPart::Bucket(bucket()) }).unwrap();
    let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 1, "state.json", &state.to_bytes().unwrap());
    assert_eq!(Metadata::from_bytes(&frozen), Ok(state));
}
