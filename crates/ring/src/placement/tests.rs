//! The placement by itself.

use super::*;
use crate::claim::Claim;
use crate::partition::RingSize;
use crate::ring::{Ring, RingVersion};
use ombak_types::NodeId;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const A: NodeId = NodeId::new(1);
const B: NodeId = NodeId::new(2);
const C: NodeId = NodeId::new(3);
const D: NodeId = NodeId::new(4);

fn ring(owners: &[NodeId], number: u64) -> Arc<Ring> {
    Arc::new(Ring::from_owners(owners, RingVersion { lineage: 1, number }).unwrap())
}

fn steps(placement: &Placement, homes: &[u32], step: Step) -> Vec<StepOf> {
    homes.iter().map(|home| StepOf { home: *home, seen: placement.home(*home).version().number, step }).collect()
}

fn after(placement: &Placement, homes: &[u32], step: Step) -> Placement {
    placement.after(&steps(placement, homes, step)).unwrap()
}

fn threes() -> BTreeSet<u32> {
    BTreeSet::from([1, 3])
}

/// D takes slot 4 from A.
fn changing() -> Placement {
    let placement = Placement::of_ring(ring(&[A, B, C, A, A, B, C, A], 1));
    placement.with_goal(ring(&[A, B, C, A, D, B, C, A], 2), &threes()).unwrap()
}

#[test]
fn homes_whose_replicas_stay_have_the_goal_at_once() {
    let placement = changing();
    let has_goal: Vec<u32> = (0..8).filter(|home| placement.has_goal(*home)).collect();
    // From homes 2 to 4 a walk meets slot 4 before it has found three nodes.
    assert_eq!(has_goal, [0, 1, 5, 6, 7]);
    assert!(!placement.is_settled() && placement.version().number == 2);
    assert_eq!(placement.nodes(), BTreeSet::from([A, B, C, D]));
}

#[test]
fn a_home_counts_in_both_sets_from_begin_to_finish() {
    let mut placement = changing();
    assert_eq!(placement.home(4).replica_set(1)[..], [A]);
    placement = after(&placement, &[4], Step::Begin);
    let home = placement.home(4);
    assert_eq!((home.phase(), &home.replica_set(1)[..], &home.other_set(1)[..]), (Phase::Pending, &[A][..], &[D][..]));
    assert_eq!(home.primaries(3)[..], [A, B, C, D]);
    assert!(home.is_primary(D, 1) && !home.is_primary(B, 1));
    placement = after(&placement, &[4], Step::Flip);
    let home = placement.home(4);
    assert_eq!((home.phase(), &home.replica_set(1)[..], &home.other_set(1)[..]), (Phase::Flipped, &[D][..], &[A][..]));
    placement = after(&placement, &[4], Step::Finish);
    let home = placement.home(4);
    assert_eq!((home.phase(), home.is_changing(), home.version().number), (Phase::Settled, false, 5));
    assert!(placement.has_goal(4) && !home.is_primary(A, 1));
}

#[test]
fn a_step_that_was_decided_from_an_older_version_has_no_effect() {
    let placement = changing();
    let stale = steps(&placement, &[4], Step::Begin);
    let begun = placement.after(&stale).unwrap();
    assert_eq!(begun.after(&stale), None);
    let aborted = after(&begun, &[4], Step::Abort);
    assert_eq!(aborted.after(&steps(&begun, &[4], Step::Flip)), None, "it would flip what was aborted");
    assert_eq!(placement.after(&steps(&placement, &[0], Step::Begin)), None, "it has the goal");
    assert_eq!(placement.after(&steps(&placement, &[4], Step::Flip)), None, "it is not pending");
    assert_eq!(begun.after(&steps(&begun, &[4], Step::Finish)), None, "it has not flipped");
    assert_eq!(placement.after(&[StepOf { home: 99, seen: 1, step: Step::Begin }]), None);
}

#[test]
fn another_goal_aborts_what_is_pending_and_lets_flipped_homes_finish() {
    let mut placement = after(&changing(), &[3, 4], Step::Begin);
    placement = after(&placement, &[4], Step::Flip);
    let back = ring(&[A, B, C, A, A, B, C, A], placement.version().number + 1);
    placement = placement.with_goal(back, &threes()).unwrap();
    assert_eq!(placement.home(4).phase(), Phase::Flipped);
    assert!(placement.has_goal(3), "it never left the ring that is the goal again");
    assert_eq!(placement.rings().len(), 3, "the new goal, the old one, and the first ring");
    placement = after(&placement, &[4], Step::Finish);
    assert!(!placement.has_goal(4), "it has the goal that was given up");
    placement = after(&placement, &[4], Step::Begin);
    placement = after(&placement, &[4], Step::Flip);
    placement = after(&placement, &[4], Step::Finish);
    assert!(placement.is_settled());
    assert_eq!(placement.rings().len(), 1);
}

#[test]
fn a_ring_of_another_size_or_version_is_no_goal() {
    let placement = changing();
    let other_size = ring(&[A; 16], 3);
    let refused = placement.with_goal(other_size, &threes()).unwrap_err();
    assert_eq!(refused.to_string(), "the ring has 16 partitions, and the cluster has 8");
    let refused = placement.with_goal(ring(&[A; 8], 9), &threes()).unwrap_err();
    assert!(matches!(refused, PlacementError::NotNext { .. }), "{refused}");
}

#[test]
fn a_damaged_or_newer_saved_placement_is_named() {
    let good = serde_json::to_string(&after(&changing(), &[4], Step::Begin)).unwrap();
    for (from, to, why) in [
        ("{\"format\":1", "{\"format\":2", "saved in format 2"),
        ("\"other\":0,", "", "no possible state"),
        ("\"other\":0,", "\"other\":7,", "no possible state"),
        ("\"count\":2,", "\"count\":3,", "another number of homes"),
        ("\"changed\":3", "\"changed\":4", "no possible state"),
        ("\"version\":{\"lineage\":1,\"number\":3}", "\"version\":{\"lineage\":2,\"number\":3}", "another lineage"),
    ] {
        assert!(good.contains(from), "{from} in {good}");
        let error = serde_json::from_str::<Placement>(&good.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

proptest! {
    /// Goals and steps in any order.
    #[test]
    fn any_history_keeps_the_invariants(
        goals in prop::collection::vec((1..6u64, 0..40usize), 1..5),
        choices in prop::collection::vec((0..16u32, 0..4u8), 200),
    ) {
        let size = RingSize::new(16).unwrap();
        let ns = BTreeSet::from([1, 2, 3]);
        let mut placement = Placement::of_ring(Arc::new(Ring::of_one_node(A, size, RingVersion::first(1))));
        let mut choices = choices.into_iter();
        for (members, count) in goals {
            let members: BTreeSet<NodeId> = (1..=members).map(NodeId::new).collect();
            let owners = Claim::of_changed_ring(placement.goal(), &members, 4).unwrap().owners;
            let goal = Arc::new(Ring::from_owners(&owners, placement.version().next()).unwrap());
            match placement.with_goal(goal, &ns) {
                Ok(next) => {
                    check_change(&placement, &next);
                    placement = next;
                }
                Err(why) => prop_assert_eq!(why, PlacementError::TooManyRings),
            }
            for (home, step) in choices.by_ref().take(count) {
                let step = [Step::Begin, Step::Flip, Step::Finish, Step::Abort][usize::from(step)];
                if let Some(next) = placement.after(&steps(&placement, &[home], step)) {
                    check_change(&placement, &next);
                    placement = next;
                }
            }
            let text = serde_json::to_string(&placement).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Placement>(&text).unwrap(), &placement);
        }
    }
}

/// The version rises by one, and the home version of exactly those homes that changed.
fn check_change(before: &Placement, after: &Placement) {
    assert_eq!(after.version(), before.version().next());
    for (was, is) in before.homes().zip(after.homes()) {
        let sets =
            |home: &HomePlacement<'_>| (home.phase(), home.in_force().version(), home.other().map(|r| r.version()));
        let has_changed = sets(&was) != sets(&is);
        assert_eq!(is.version() == after.version(), has_changed, "home {}", is.home());
        assert_eq!(is.is_changing(), is.phase() != Phase::Settled);
        if was.is_changing() {
            assert!(!(has_changed && is.is_changing() && was.phase() == Phase::Flipped), "a flipped home finishes");
        }
    }
}
