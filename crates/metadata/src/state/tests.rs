//! The rules of the commands, and the saved form.

use super::*;
use bytes::Bytes;
use ombak_ring::{Ring, RingSize, RingVersion};
use ombak_types::{Bucket, NodeId, PropMap};
use proptest::prelude::*;
use serde_json::{Value, json};

const LINEAGE: u64 = 77;
const A: NodeId = NodeId::new(1);
const B: NodeId = NodeId::new(2);
const C: NodeId = NodeId::new(3);

fn size() -> RingSize {
    RingSize::new(8).unwrap()
}

fn member(node: NodeId) -> NewMember {
    let number = node.get();
    NewMember {
        node,
        name: format!("n{number}@h"),
        peer_address: format!("h:{number}"),
        log: RaftId::new(100 + number),
        boot: 1,
    }
}

fn founded() -> Metadata {
    let mut state = Metadata::default();
    let ring = Ring::of_one_node(A, size(), RingVersion::first(LINEAGE));
    let lineage = Lineage { id: LINEAGE, forced_from: None };
    state.apply(1, Command::Found { lineage, member: member(A), ring }).unwrap();
    state
}

fn map(value: Value) -> PropMap {
    value.as_object().cloned().unwrap()
}

fn put_type(name: &'static str, expected: Option<u64>, active: bool) -> Command {
    let name = TypeName(Bytes::from_static(name.as_bytes()));
    Command::PutType { name, expected, active, overrides: map(json!({"n_val": 5})) }
}

fn put_bucket(bucket: &Bucket, expected: Option<u64>, type_expected: Option<u64>, n_val: Option<u32>) -> Command {
    let bucket = BucketName { r#type: bucket.bucket_type.clone(), name: bucket.name.clone() };
    Command::PutBucket { bucket, expected, type_expected, overrides: n_val.map(|n| map(json!({"n_val": n}))) }
}

/// Applies a command that must be refused, and checks that it changes nothing.
fn refused(state: &mut Metadata, command: Command) -> Refusal {
    let before = state.clone();
    let refusal = state.apply(1_000_000, command).unwrap_err();
    assert_eq!(*state, before);
    refusal
}

#[test]
fn nothing_happens_before_the_founding_and_it_happens_once() {
    assert_eq!(refused(&mut Metadata::default(), Command::AddMember(member(B))), Refusal::NotFounded);
    let mut state = founded();
    let lineage = Lineage { id: LINEAGE, forced_from: None };
    let ring = Ring::of_one_node(A, size(), RingVersion::first(LINEAGE));
    let again = Command::Found { lineage: lineage.clone(), member: member(A), ring };
    assert_eq!(refused(&mut state, again), Refusal::AlreadyFounded);
    let foreign = Ring::of_one_node(B, size(), RingVersion::first(LINEAGE));
    let command = Command::Found { lineage: lineage.clone(), member: member(A), ring: foreign };
    assert_eq!(refused(&mut Metadata::default(), command), Refusal::CannotOwn(B));
    let ring = Ring::of_one_node(A, size(), RingVersion::first(LINEAGE + 1));
    let command = Command::Found { lineage, member: member(A), ring };
    assert!(matches!(refused(&mut Metadata::default(), command), Refusal::NotNextRing(_)));
}

#[test]
fn a_node_joins_once_and_never_again_after_it_was_removed() {
    let mut state = founded();
    state.apply(2, Command::AddMember(member(B))).unwrap();
    assert_eq!(state.members()[&B].status, MemberStatus::Joining);
    assert_eq!(refused(&mut state, Command::AddMember(member(B))), Refusal::AlreadyMember(B));
    let twin = NewMember { name: "n2@h".into(), ..member(C) };
    assert_eq!(refused(&mut state, Command::AddMember(twin)), Refusal::NameTaken(B));
    let clone = NewMember { log: member(B).log, ..member(C) };
    assert_eq!(refused(&mut state, Command::AddMember(clone.clone())), Refusal::LogUsed(member(B).log));
    assert_eq!(refused(&mut state, Command::RemoveMember { node: A }), Refusal::OwnsPartitions(A));
    state.apply(3, Command::RemoveMember { node: B }).unwrap();
    assert_eq!(refused(&mut state, Command::RemoveMember { node: B }), Refusal::NoSuchMember(B));
    let again = NewMember { log: RaftId::new(9), ..member(B) };
    assert_eq!(refused(&mut state, Command::AddMember(again)), Refusal::WasRemoved(B));
    assert_eq!(refused(&mut state, Command::AddMember(clone)), Refusal::LogUsed(member(B).log));
}

#[test]
fn an_older_directory_is_recognised_and_takes_part_under_a_new_log() {
    let mut state = founded();
    let start = |boot, log| Command::Started(NewMember { boot, log: RaftId::new(log), ..member(A) });
    state.apply(2, start(5, 101)).unwrap();
    // The leader may have lost the answer, and the node tells it again.
    state.apply(3, start(5, 101)).unwrap();
    assert_eq!(refused(&mut state, start(4, 101)), Refusal::Restored { known_boot: 5 });
    assert_eq!(refused(&mut state, start(6, 999)), Refusal::Restored { known_boot: 5 });
    let replace = |old, new| Command::ReplaceLog { node: A, old: RaftId::new(old), new: RaftId::new(new), boot: 4 };
    assert_eq!(refused(&mut state, replace(999, 200)), Refusal::Changed);
    assert_eq!(refused(&mut state, replace(101, 101)), Refusal::LogUsed(RaftId::new(101)));
    state.apply(4, replace(101, 200)).unwrap();
    assert_eq!((state.members()[&A].log, state.members()[&A].boot), (RaftId::new(200), 5));
    assert_eq!(refused(&mut state, replace(200, 101)), Refusal::LogUsed(RaftId::new(101)), "never again");
    assert_eq!(refused(&mut state, start(6, 101)), Refusal::Restored { known_boot: 5 });
    state.apply(5, start(6, 200)).unwrap();
}

#[test]
fn a_ring_follows_the_present_one_and_belongs_to_members() {
    let mut state = founded();
    state.apply(2, Command::AddMember(member(B))).unwrap();
    state.apply(3, Command::Stage { expected: 0, changes: json!({"join": B}) }).unwrap();
    assert_eq!(refused(&mut state, Command::Stage { expected: 0, changes: json!(1) }), Refusal::Changed);
    let first = RingVersion::first(LINEAGE);
    let ring = |owner, version| Ring::from_owners(&[A, owner, A, owner, A, owner, A, owner], version).unwrap();
    let commit = |expected, staged, ring, statuses: &[_]| Command::CommitRing {
        expected,
        staged,
        ring,
        statuses: statuses.to_vec(),
    };
    let valid = [(B, MemberStatus::Valid)];
    assert_eq!(refused(&mut state, commit(first, 0, ring(B, first.next()), &valid)), Refusal::Changed);
    assert_eq!(refused(&mut state, commit(first.next(), 3, ring(B, first.next().next()), &valid)), Refusal::Changed);
    assert_eq!(refused(&mut state, commit(first, 3, ring(B, first), &valid)), Refusal::NotNextRing(first));
    assert_eq!(refused(&mut state, commit(first, 3, ring(B, first.next()), &[])), Refusal::CannotOwn(B), "joining");
    assert_eq!(refused(&mut state, commit(first, 3, ring(C, first.next()), &valid)), Refusal::CannotOwn(C));
    state.apply(4, commit(first, 3, ring(B, first.next()), &valid)).unwrap();
    assert_eq!((state.members()[&B].status, state.staged().0.is_null()), (MemberStatus::Valid, true));
    assert_eq!(state.ring().unwrap().version(), first.next());
    let leave = Command::SetStatus { node: B, expected: MemberStatus::Joining, status: MemberStatus::Leaving };
    assert_eq!(refused(&mut state, leave), Refusal::WrongStatus(MemberStatus::Valid));
}

#[test]
fn a_type_is_created_first_then_activated_and_stays_active() {
    let mut state = founded();
    assert_eq!(refused(&mut state, put_type("t", None, true)), Refusal::NoType);
    state.apply(2, put_type("t", None, false)).unwrap();
    assert_eq!(refused(&mut state, put_type("t", None, false)), Refusal::Changed, "another node created it first");
    state.apply(3, put_type("t", Some(2), false)).unwrap();
    let bucket = Bucket::typed("t", "b");
    assert_eq!(refused(&mut state, put_bucket(&bucket, None, Some(3), Some(2))), Refusal::NoType);
    state.apply(4, put_type("t", Some(3), true)).unwrap();
    assert_eq!(refused(&mut state, put_type("t", Some(3), true)), Refusal::Changed);
    assert_eq!(refused(&mut state, put_type("t", Some(4), false)), Refusal::TypeActive);
    assert_eq!(refused(&mut state, put_type("default", None, true)), Refusal::TypeActive);

    state.apply(5, put_bucket(&bucket, None, Some(4), Some(2))).unwrap();
    assert_eq!(refused(&mut state, put_bucket(&bucket, None, Some(4), Some(1))), Refusal::Changed);
    assert_eq!(refused(&mut state, put_bucket(&bucket, Some(5), Some(3), Some(1))), Refusal::Changed, "other type");
    state.apply(6, put_bucket(&bucket, Some(5), Some(4), None)).unwrap();
    assert!(state.buckets().is_empty());
    state.apply(7, put_bucket(&Bucket::untyped("b"), None, None, Some(2))).unwrap();
}

/// A state with every part filled.
fn full(buckets: u32) -> Metadata {
    let mut state = founded();
    state.apply(2, Command::AddMember(member(B))).unwrap();
    state.apply(3, Command::AddMember(member(C))).unwrap();
    state.apply(4, Command::RemoveMember { node: C }).unwrap();
    state.apply(5, Command::Stage { expected: 0, changes: json!({"leave": B}) }).unwrap();
    state.apply(6, put_type("100%\u{1}", None, false)).unwrap();
    for (index, number) in (7..).zip(0..buckets) {
        let bucket = Bucket::untyped(format!("bucket \u{e9} {number}"));
        state.apply(index, put_bucket(&bucket, None, None, Some(2))).unwrap();
    }
    state
}

#[test]
fn a_saved_state_is_the_same_state_and_a_later_format_is_named() {
    let state = full(20);
    let bytes = state.to_bytes().unwrap();
    assert_eq!(Metadata::from_bytes(&bytes), Ok(state));
    let later = String::from_utf8(bytes.clone()).unwrap().replacen("\"format\":1", "\"format\":2", 1);
    assert_eq!(Metadata::from_bytes(later.as_bytes()), Err(BadSavedMetadata::Format(2)));
    for length in 0..bytes.len() {
        assert!(matches!(Metadata::from_bytes(&bytes[..length]), Err(BadSavedMetadata::Damaged(_))));
    }
}

/// Format 1 of state and commands. A released version wrote such bytes.
#[test]
fn format_1_stays_readable() {
    let bytes = include_bytes!("../../tests/fixtures/format-1/state.json");
    assert_eq!(Metadata::from_bytes(bytes), Ok(full(2)));
    assert_eq!(full(2).to_bytes().unwrap(), bytes);
    let commands = include_str!("../../tests/fixtures/format-1/commands.json");
    let commands: Vec<Command> = serde_json::from_str(commands).unwrap();
    let mut state = Metadata::default();
    for (index, command) in (1..).zip(commands) {
        state.apply(index, command).unwrap();
    }
    assert_eq!((state.members().len(), state.buckets().len(), state.types().len()), (1, 1, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two replicas, one of which is saved and read again in between, stay equal, and a command
    /// that is sent twice has no second effect unless it changes nothing.
    #[test]
    fn replicas_stay_equal(
        commands in prop::collection::vec((0..6u8, 0..4u64, prop::option::of(0..20u64), any::<bool>()), 1..40),
        saved_at in 0..40usize,
    ) {
        let (mut one, mut other) = (founded(), founded());
        for (number, (kind, node, version, flag)) in commands.into_iter().enumerate() {
            let node = NodeId::new(node);
            let bucket = Bucket::untyped(format!("b{node}"));
            let command = match kind {
                0 => Command::AddMember(member(node)),
                1 => Command::RemoveMember { node },
                2 => Command::Started(NewMember { boot: version.unwrap_or(1), ..member(node) }),
                3 => Command::Stage { expected: version.unwrap_or(0), changes: json!(flag) },
                4 => put_type("t", version, flag),
                _ => put_bucket(&bucket, version, None, flag.then_some(2)),
            };
            let index = number as u64 + 2;
            prop_assert_eq!(one.apply(index, command.clone()), other.apply(index, command));
            if number == saved_at {
                other = Metadata::from_bytes(&other.to_bytes().unwrap()).unwrap();
            }
            prop_assert_eq!(&one, &other);
        }
    }
}
