//! Where members are.

use super::*;

fn format_of(state: &Metadata) -> u64 {
    let bytes = state.to_bytes().unwrap();
    assert_eq!(Metadata::from_bytes(&bytes).as_ref(), Ok(state));
    serde_json::from_slice::<Value>(&bytes).unwrap()["format"].as_u64().unwrap()
}

#[test]
fn a_location_takes_effect_with_a_ring_and_stays_when_its_member_starts_again() {
    let (mut state, ring) = two();
    assert!(!state.has_locations());
    let located = |locations: &[(NodeId, Location)]| NewGoal { locations: locations.to_vec(), ..goal(&ring) };
    let stranger = located(&[(B, location("rack 2")), (C, location("rack 3"))]);
    assert_eq!(refused(&mut state, Command::SetGoal(stranger)), Refusal::NoSuchMember(C));
    state.apply(4, Command::SetGoal(located(&[(B, location("rack 2"))]))).unwrap();
    assert_eq!(state.locations(), [(B, location("rack 2"))].into());

    state.apply(5, Command::Started(NewMember { boot: 2, ..member(B) })).unwrap();
    let milestone = Some(Milestone { number: 3, token: 30 });
    let started = NewMember { boot: 3, milestone, ..member(B) };
    state.apply(6, Command::Passed { member: started, follows: None }).unwrap();
    let log = RaftId::new(300);
    state.apply(7, Command::ReplaceLog { node: B, old: member(B).log, new: log, boot: 4 }).unwrap();
    let down = Command::SetStatus { node: B, expected: MemberStatus::Valid, status: MemberStatus::Down };
    state.apply(8, down).unwrap();
    assert_eq!(state.locations(), [(B, location("rack 2"))].into());
}

#[test]
fn the_location_of_a_member_goes_with_it() {
    let (mut state, ring) = two();
    let locations = vec![(A, location("here")), (B, location("there"))];
    state.apply(4, Command::SetGoal(NewGoal { locations, ..goal(&ring) })).unwrap();
    let alone = Ring::of_one_node(A, size(), RingVersion::first(LINEAGE));
    let expected = state.ring().unwrap().version();
    let without = NewGoal { expected, staged: 4, statuses: Vec::new(), removed: vec![B], ..goal(&alone) };
    state.apply(5, Command::SetGoal(without)).unwrap();
    assert_eq!(state.locations(), [(A, location("here"))].into());
}

#[test]
fn a_ring_that_is_replaced_at_once_brings_locations_too() {
    let (mut state, ring) = two();
    let expected = RingVersion::first(LINEAGE);
    let commit = |node| {
        let (ring, statuses) = (ring.clone(), vec![(B, MemberStatus::Valid)]);
        Command::CommitRing { expected, staged: 3, ring, statuses, locations: vec![(node, location("here"))] }
    };
    assert_eq!(refused(&mut state, commit(C)), Refusal::NoSuchMember(C));
    state.apply(4, commit(B)).unwrap();
    assert_eq!(state.locations(), [(B, location("here"))].into());
}

/// A program that knows no locations says which format it lacks, and does not call the state
/// damaged. It reads all states without them.
#[test]
fn the_saved_form_is_one_that_earlier_versions_know_until_a_member_has_a_location() {
    let (mut state, ring) = two();
    assert_eq!(format_of(&state), 1);
    let mut at_once = state.clone();
    state.apply(4, Command::SetGoal(goal(&ring))).unwrap();
    assert_eq!(format_of(&state), 2);
    let expected = state.ring().unwrap().version();
    let locations = vec![(A, location("here"))];
    let again = NewGoal { expected, staged: 4, locations: locations.clone(), ..goal(&ring) };
    state.apply(5, Command::SetGoal(again)).unwrap();
    assert_eq!(format_of(&state), 3);
    let statuses = vec![(B, MemberStatus::Valid)];
    let expected = RingVersion::first(LINEAGE);
    at_once.apply(4, Command::CommitRing { expected, staged: 3, ring, statuses, locations }).unwrap();
    assert_eq!(format_of(&at_once), 3);
}
