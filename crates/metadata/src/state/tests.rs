//! The rules of the commands, and the saved form.

mod functions;
mod locations;
mod open_records;
mod ring_changes;
mod version_1;
mod version_2;

use super::*;
use bytes::Bytes;
use ombak_node_files::Milestone;
use ombak_ring::placement::{Step, StepOf};
use ombak_ring::{Location, Ring, RingSize, RingVersion};
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
        milestone: None,
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

fn location(name: &str) -> Location {
    name.parse().unwrap()
}

fn put_type(name: &'static str, expected: Option<u64>, active: bool) -> Command {
    let name = TypeName(Bytes::from_static(name.as_bytes()));
    Command::PutType { name, expected, active, overrides: map(json!({"n_val": 5})) }
}

fn put_bucket(bucket: &Bucket, expected: Option<u64>, type_expected: Option<u64>, n_val: Option<u32>) -> Command {
    let bucket = BucketName { r#type: bucket.bucket_type.clone(), name: bucket.name.clone() };
    Command::PutBucket { bucket, expected, type_expected, overrides: n_val.map(|n| map(json!({"n_val": n}))) }
}

fn put_function(name: &str, expected: Option<u64>, source: Option<&str>) -> Command {
    Command::PutFunction { name: name.into(), expected, source: source.map(Into::into) }
}

fn put_record(namespace: &str, key: &[u8], expected: Option<u64>, value: Option<&str>) -> Command {
    let key = Bytes::copy_from_slice(key);
    Command::PutRecord { namespace: namespace.into(), key, expected, value: value.map(Into::into) }
}

fn step(home: u32, seen: u64, step: Step) -> Command {
    Command::TakeStep { steps: vec![StepOf { home, seen, step }] }
}

/// A cluster of `A` and `B`, with the stage at version 3, and a ring for both.
fn two() -> (Metadata, Ring) {
    let mut state = founded();
    state.apply(2, Command::AddMember(member(B))).unwrap();
    state.apply(3, Command::Stage { expected: 0, changes: json!({"join": B}) }).unwrap();
    let owners = [A, A, A, A, A, A, B, B];
    (state, Ring::from_owners(&owners, RingVersion::first(LINEAGE).next()).unwrap())
}

fn goal(ring: &Ring) -> NewGoal {
    NewGoal {
        expected: RingVersion::first(LINEAGE),
        staged: 3,
        ring: ring.clone(),
        statuses: vec![(B, MemberStatus::Valid)],
        removed: Vec::new(),
        ns: [1].into(),
        locations: Vec::new(),
    }
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
fn a_node_that_did_not_join_after_all_may_join_again_with_another_log() {
    let mut state = founded();
    state.apply(2, Command::AddMember(member(B))).unwrap();
    assert_eq!(refused(&mut state, Command::WithdrawMember { node: A }), Refusal::WrongStatus(MemberStatus::Valid));
    state.apply(3, Command::WithdrawMember { node: B }).unwrap();
    assert_eq!(refused(&mut state, Command::WithdrawMember { node: B }), Refusal::NoSuchMember(B));
    assert_eq!(refused(&mut state, Command::AddMember(member(B))), Refusal::LogUsed(member(B).log));
    let again = NewMember { log: RaftId::new(9), ..member(B) };
    state.apply(4, Command::AddMember(again)).unwrap();
    assert_eq!(state.members()[&B].status, MemberStatus::Joining);
}

#[test]
fn what_needs_a_closed_cluster_takes_effect_while_it_is_closed_or_not_at_all() {
    let mut state = founded();
    let bucket = Bucket::untyped("b");
    let while_closed = |closing, expected| Command::WhileClosed {
        closing,
        command: Box::new(put_bucket(&bucket, expected, None, Some(5))),
    };
    assert_eq!(refused(&mut state, while_closed(2, None)), Refusal::WritesOpen);
    state.apply(2, Command::CloseWrites).unwrap();
    assert_eq!(state.closing(), Some(2));
    assert_eq!(refused(&mut state, Command::CloseWrites), Refusal::WritesClosed);
    let saved = Metadata::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(saved.closing(), Some(2), "a node that starts again is closed, too");
    // A member opens the cluster because the node that closed it does not go on.
    state.apply(3, Command::OpenWrites { closing: 2 }).unwrap();
    assert_eq!(refused(&mut state, while_closed(2, None)), Refusal::WritesOpen, "too late");
    assert_eq!(refused(&mut state, Command::OpenWrites { closing: 2 }), Refusal::WritesOpen);
    state.apply(4, Command::CloseWrites).unwrap();
    assert_eq!(refused(&mut state, while_closed(2, None)), Refusal::WritesOpen, "that was another closing");
    assert_eq!(refused(&mut state, while_closed(4, Some(1))), Refusal::Changed);
    assert_eq!(state.closing(), Some(4), "a refused change does not open the cluster");
    state.apply(5, while_closed(4, None)).unwrap();
    assert_eq!((state.closing(), state.buckets().len()), (None, 1));
}

#[test]
fn one_bucket_or_type_is_closed_alone_and_changes_alone() {
    let mut state = founded();
    let (bucket, other) = (Bucket::untyped("b"), Bucket::untyped("other"));
    let name = |bucket: &Bucket| BucketName { r#type: bucket.bucket_type.clone(), name: bucket.name.clone() };
    let part = ClosedPart::Bucket(name(&bucket));
    let while_closed = |closing, command| Command::WhileClosed { closing, command: Box::new(command) };
    state.apply(2, Command::ClosePart { part: part.clone() }).unwrap();
    assert_eq!((state.closing(), state.is_closed(), state.closed_part()), (Some(2), false, Some(&part)));
    assert_eq!(refused(&mut state, Command::CloseWrites), Refusal::WritesClosed);
    let saved = Metadata::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(saved, state, "a node that starts again keeps it closed, too");
    let stage = Command::Stage { expected: 0, changes: serde_json::Value::Null };
    for not_proved in [put_bucket(&other, None, None, Some(5)), stage, Command::CloseWrites] {
        assert_eq!(refused(&mut state, while_closed(2, not_proved)), Refusal::WritesOpen);
    }
    state.apply(3, while_closed(2, put_bucket(&bucket, None, None, Some(5)))).unwrap();
    assert_eq!((state.closing(), state.closed_part(), state.buckets().len()), (None, None, 1));
    let part = ClosedPart::Type(TypeName(Bytes::from_static(b"t")));
    state.apply(4, Command::ClosePart { part }).unwrap();
    assert_eq!(refused(&mut state, while_closed(4, put_bucket(&bucket, Some(3), None, None))), Refusal::WritesOpen);
    state.apply(5, Command::OpenWrites { closing: 4 }).unwrap();
    assert_eq!((state.closing(), state.closed_part()), (None, None));
    state.apply(6, Command::CloseWrites).unwrap();
    assert!(state.is_closed());
}

#[test]
fn what_a_node_had_before_its_cluster_is_taken_over_once() {
    let mut state = founded();
    let name = |name: &'static str| TypeName(Bytes::from_static(name.as_bytes()));
    let bucket = BucketName { r#type: Bytes::from_static(b"t"), name: Bytes::from_static(b"b") };
    let take = |n_val: u32| Command::TakeOver {
        types: vec![(name("t"), TakenType { active: true, overrides: map(json!({"n_val": n_val})) })],
        buckets: vec![(bucket.clone(), map(json!({"r": n_val})))],
        functions: vec![("f".into(), format!("function() {{ return [{n_val}]; }}").into())],
        records: vec![TakenRecord { namespace: "users".into(), key: "u".into(), value: n_val.to_string().into() }],
    };
    state.apply(2, take(2)).unwrap();
    let first = state.clone();
    // The node lost its power before it noted that it is done.
    state.apply(3, take(4)).unwrap();
    assert_eq!(state, first);
    assert!(state.types()[&Bytes::from_static(b"t")].active);
    assert_eq!(changed_records(&founded(), &state).len(), 4);
    assert_eq!(changed_records(&first, &state), []);
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

/// Each sentence is a history of one data directory and its copies.
#[test]
fn of_two_copies_of_a_directory_only_one_goes_on() {
    let mut state = founded();
    let milestone = |number: u64, token: u64| Some(Milestone { number, token });
    let pass =
        |boot, milestone, follows| Command::Passed { member: NewMember { boot, milestone, ..member(A) }, follows };
    // An earlier version has recorded none.
    state.apply(2, pass(2, milestone(2, 20), None)).unwrap();
    // The node did not learn of that, and starts again.
    let other = |recorded| Refusal::OtherMilestone { recorded };
    assert_eq!(refused(&mut state, pass(3, milestone(3, 30), None)), other(milestone(2, 20)));
    state.apply(3, pass(3, milestone(3, 30), milestone(2, 20))).unwrap();
    state.apply(4, pass(3, milestone(3, 30), milestone(2, 20))).unwrap();
    // A message of the start before comes late.
    assert_eq!(refused(&mut state, pass(2, milestone(2, 20), None)), Refusal::Restored { known_boot: 3 });
    // A copy from before the last start has started often.
    assert_eq!(refused(&mut state, pass(9, milestone(9, 91), milestone(2, 20))), other(milestone(3, 30)));
    // A copy drew another milestone of the same number.
    assert_eq!(refused(&mut state, pass(3, milestone(3, 31), milestone(2, 20))), other(milestone(3, 30)));
    // A program of an earlier version is not asked which milestones it has passed.
    assert!(matches!(
        refused(&mut state, Command::Started(NewMember { boot: 9, ..member(A) })),
        Refusal::Restored { .. }
    ));
    // The node draws another one while it runs.
    state.apply(5, pass(3, milestone(4, 40), milestone(3, 30))).unwrap();
    assert_eq!(state.members()[&A].milestone, milestone(4, 40));
    let saved = Metadata::from_bytes(&state.to_bytes().unwrap()).unwrap();
    assert_eq!(saved, state);
}

#[test]
fn nobody_joins_a_node_that_is_about_to_leave() {
    let mut state = founded();
    let status = |expected, status| Command::SetStatus { node: A, expected, status };
    state.apply(2, status(MemberStatus::Valid, MemberStatus::Exiting)).unwrap();
    assert_eq!(refused(&mut state, Command::AddMember(member(B))), Refusal::NobodyStays);
    state.apply(3, status(MemberStatus::Exiting, MemberStatus::Valid)).unwrap();
    state.apply(4, Command::AddMember(member(B))).unwrap();
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
        locations: Vec::new(),
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
    let later = String::from_utf8(bytes.clone()).unwrap().replacen("\"format\":1", "\"format\":6", 1);
    assert_eq!(Metadata::from_bytes(later.as_bytes()), Err(BadSavedMetadata::Format(6)));
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
        commands in prop::collection::vec((0..10u8, 0..4u64, prop::option::of(0..20u64), any::<bool>()), 1..40),
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
                5 => step(version.unwrap_or(0) as u32 % 8, node.get(), if flag { Step::Begin } else { Step::Flip }),
                6 => {
                    let owners = [A, A, A, node, A, A, node, A];
                    let placement = one.placement().unwrap();
                    let ring = Ring::from_owners(&owners, placement.version()).unwrap();
                    let statuses = if flag { vec![(node, MemberStatus::Valid)] } else { Vec::new() };
                    let (expected, staged) = (placement.goal().version(), one.staged().1);
                    let locations = vec![(node, location(if flag { "here" } else { "there" }))];
                    let (removed, ns) = (Vec::new(), [2].into());
                    Command::SetGoal(NewGoal { expected, staged, ring, statuses, removed, ns, locations })
                }
                7 => put_function("f", version, flag.then_some("function() {}")),
                8 => put_record(if flag { FUNCTIONS } else { "users" }, b"f", version, (node.get() < 3).then_some("v")),
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
