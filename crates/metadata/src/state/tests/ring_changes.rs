//! Changes of the ring by steps.

use super::*;

#[test]
fn a_goal_is_set_once_and_homes_get_it_by_steps() {
    let (mut state, ring) = two();
    let first = RingVersion::first(LINEAGE);
    let other_stage = NewGoal { staged: 2, ..goal(&ring) };
    assert_eq!(refused(&mut state, Command::SetGoal(other_stage)), Refusal::Changed);
    let other_ring = NewGoal { expected: first.next(), ..goal(&ring) };
    assert_eq!(refused(&mut state, Command::SetGoal(other_ring)), Refusal::Changed);
    let joining = NewGoal { statuses: Vec::new(), ..goal(&ring) };
    assert_eq!(refused(&mut state, Command::SetGoal(joining)), Refusal::CannotOwn(B));
    let leaving = NewGoal { statuses: vec![(B, MemberStatus::Leaving)], ..goal(&ring) };
    assert_eq!(refused(&mut state, Command::SetGoal(leaving)), Refusal::CannotOwn(B));
    let larger = Ring::of_one_node(A, RingSize::new(16).unwrap(), first.next());
    assert!(matches!(refused(&mut state, Command::SetGoal(goal(&larger))), Refusal::NoGoal(_)));
    assert_eq!(refused(&mut state, step(6, 1, Step::Begin)), Refusal::Changed, "there is no goal to get");

    state.apply(4, Command::SetGoal(goal(&ring))).unwrap();
    assert_eq!(refused(&mut state, Command::SetGoal(goal(&ring))), Refusal::Changed, "twice");
    assert_eq!((state.members()[&B].status, state.staged().0.is_null()), (MemberStatus::Valid, true));
    assert_eq!(state.ring().unwrap().version(), first.next());
    let placement = state.placement().unwrap().clone();
    let others: Vec<u32> =
        placement.homes().filter(|home| !placement.has_goal(home.home())).map(|h| h.home()).collect();
    assert_eq!(others, [6, 7], "with n = 1 the others have the same replicas");
    assert_eq!(refused(&mut state, Command::RemoveMember { node: A }), Refusal::OwnsPartitions(A));

    state.apply(5, step(6, 1, Step::Begin)).unwrap();
    assert_eq!(refused(&mut state, step(6, 1, Step::Begin)), Refusal::Changed, "twice");
    assert_eq!(refused(&mut state, step(6, 3, Step::Finish)), Refusal::Changed, "not flipped yet");
    state.apply(6, step(6, 3, Step::Flip)).unwrap();
    state.apply(7, step(6, 4, Step::Finish)).unwrap();
    assert!(state.placement().unwrap().has_goal(6));
    assert_eq!(state.placement().unwrap().version().number, 5);
}

/// With more than one copy, every walk of the goal reaches the new member.
#[test]
fn a_goal_looks_at_the_classes_of_types_and_buckets_too() {
    for change in [put_type("t", None, false), put_bucket(&Bucket::untyped("b"), None, None, Some(2))] {
        let (mut state, ring) = two();
        state.apply(4, change).unwrap();
        state.apply(5, Command::SetGoal(goal(&ring))).unwrap();
        let placement = state.placement().unwrap();
        assert!(placement.homes().all(|home| !placement.has_goal(home.home())));
    }
}

#[test]
fn a_ring_is_replaced_at_once_only_while_no_home_changes_step_by_step() {
    let (mut state, ring) = two();
    state.apply(4, Command::SetGoal(goal(&ring))).unwrap();
    let commit = |expected: RingVersion| {
        let ring = ring.clone().with_version(expected.next());
        Command::CommitRing { expected, staged: 4, ring, statuses: Vec::new(), locations: Vec::new() }
    };
    let at = |number| RingVersion { lineage: LINEAGE, number };
    assert_eq!(refused(&mut state, commit(at(2))), Refusal::RingChanges);
    for (number, step) in [(1, Step::Begin), (3, Step::Flip), (4, Step::Finish)] {
        let steps = [6, 7].map(|home| StepOf { home, seen: number, step });
        state.apply(4 + number, Command::TakeStep { steps: steps.into() }).unwrap();
    }
    assert!(state.placement().unwrap().is_settled());
    assert_eq!(refused(&mut state, commit(at(2))), Refusal::Changed, "steps were taken since");
    state.apply(9, commit(at(5))).unwrap();
    assert_eq!(state.placement().unwrap().version(), at(6));
}

#[test]
fn a_member_that_is_removed_by_force_is_gone_at_once_and_never_returns() {
    let (mut state, ring) = two();
    state.apply(4, Command::SetGoal(goal(&ring))).unwrap();
    state.apply(5, step(6, 1, Step::Begin)).unwrap();
    let first = RingVersion::first(LINEAGE);
    let alone = Ring::of_one_node(A, size(), first);
    let without = |removed: &[NodeId]| NewGoal {
        expected: first.next(),
        staged: 4,
        removed: removed.to_vec(),
        statuses: Vec::new(),
        ..goal(&alone)
    };
    assert_eq!(refused(&mut state, Command::SetGoal(without(&[C]))), Refusal::NoSuchMember(C));
    let owner = NewGoal { ring: ring.clone(), ..without(&[B]) };
    assert_eq!(refused(&mut state, Command::SetGoal(owner)), Refusal::CannotOwn(B));
    state.apply(6, Command::SetGoal(without(&[B]))).unwrap();
    assert!(state.was_removed(B) && !state.members().contains_key(&B));
    assert!(state.placement().unwrap().is_settled(), "no home was flipped to B");
    assert_eq!(refused(&mut state, Command::AddMember(member(B))), Refusal::WasRemoved(B));
    let clone = NewMember { log: member(B).log, ..member(C) };
    assert_eq!(refused(&mut state, Command::AddMember(clone)), Refusal::LogUsed(member(B).log));
}

/// The first version of the program reads the state of a cluster whose homes never changed by
/// steps.
#[test]
fn the_saved_form_is_the_first_one_until_a_home_changes_by_steps() {
    let format = |state: &Metadata| {
        let saved: Value = serde_json::from_slice(&state.to_bytes().unwrap()).unwrap();
        assert_eq!(Metadata::from_bytes(&state.to_bytes().unwrap()).as_ref(), Ok(state));
        assert_eq!(saved["ring"].is_null(), saved.get("placement").is_some());
        saved["format"].as_u64()
    };
    let (mut state, ring) = two();
    assert_eq!(format(&state), Some(1));
    state.apply(4, Command::SetGoal(goal(&ring))).unwrap();
    assert_eq!(format(&state), Some(2));
    state.apply(5, step(6, 1, Step::Begin)).unwrap();
    assert_eq!(format(&state), Some(2));
    let both = String::from_utf8(state.to_bytes().unwrap()).unwrap();
    let both = both.replacen("\"ring\":null", &format!("\"ring\":{}", serde_json::to_string(&ring).unwrap()), 1);
    assert!(matches!(Metadata::from_bytes(both.as_bytes()), Err(BadSavedMetadata::Damaged(_))));
}

/// Format 2 of the state, and the commands that lead to it. A released version wrote such bytes.
#[test]
fn format_2_stays_readable() {
    let commands = include_str!("../../../tests/fixtures/format-2/commands.json");
    let read: Vec<Command> = serde_json::from_str(commands).unwrap();
    let text = serde_json::to_value(&read).unwrap();
    assert_eq!(text, serde_json::from_str::<Value>(commands).unwrap());
    let (mut state, _) = two();
    for (index, command) in (4..).zip(read) {
        state.apply(index, command).unwrap();
    }
    let bytes = include_bytes!("../../../tests/fixtures/format-2/state.json");
    assert_eq!(Metadata::from_bytes(bytes), Ok(state.clone()));
    assert_eq!(state.to_bytes().unwrap(), bytes);
}
