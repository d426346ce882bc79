//! Claims of random members and rings.

mod locations;
mod oracle;

use super::*;
use crate::ring::RingVersion;
use proptest::prelude::*;
use std::collections::BTreeMap;

const MEMBERS_MAX: u64 = 64;

fn ids(members: impl IntoIterator<Item = u64>) -> BTreeSet<NodeId> {
    members.into_iter().map(NodeId::new).collect()
}

fn size(partitions: u32) -> RingSize {
    RingSize::new(partitions).unwrap()
}

fn sizes() -> impl Iterator<Item = RingSize> {
    (3..=10).map(|bits| size(1 << bits))
}

fn new_ring(size: RingSize, members: u64, target: u32) -> Claim {
    Claim::of_new_ring(size, &ids(0..members), target).unwrap()
}

fn changed(before: &Claim, members: &BTreeSet<NodeId>, target: u32) -> Claim {
    let ring = Ring::from_owners(&before.owners, RingVersion::first(1)).unwrap();
    Claim::of_changed_ring(&ring, members, target).unwrap()
}

/// Checks what holds of every claim. Balance and spacing are counted in another way than by the
/// code under test.
fn check(claim: &Claim, size: RingSize, members: &BTreeSet<NodeId>, target: u32) {
    let (partitions, of) = (size.get() as usize, members.len());
    let mut counts: BTreeMap<NodeId, usize> = members.iter().map(|member| (*member, 0)).collect();
    for owner in &claim.owners {
        *counts.get_mut(owner).expect("only members own partitions") += 1;
    }
    let what = format!("{partitions} partitions, {of} members, target {target}");
    assert_eq!(claim.owners.len(), partitions, "{what}");
    let (least, most) = (partitions / of, partitions.div_ceil(of));
    assert!(counts.values().all(|count| (least..=most).contains(count)), "{what}: {counts:?}");
    let wanted = target.clamp(1, size.get()).min(spacing_max(size, of)) as usize;
    let around: Vec<NodeId> = claim.owners.iter().chain(&claim.owners).copied().collect();
    for window in around.windows(wanted).take(partitions) {
        let distinct: BTreeSet<_> = window.iter().collect();
        assert_eq!(distinct.len(), wanted, "{what}: {:?}", claim.owners);
    }
    assert_eq!(claim.spacing.reached as usize, wanted, "{what}");
    assert_eq!(claim.spacing.is_met(), wanted == target.clamp(1, size.get()) as usize, "{what}");
    assert!(claim.moves >= claim.moves_min, "{what}: {} of {}", claim.moves, claim.moves_min);
}

#[test]
fn new_rings_of_all_sizes_are_balanced_and_spaced() {
    for size in sizes() {
        for members in 1..=MEMBERS_MAX {
            for target in [1, 2, 3, 4, 5, 7, 8] {
                check(&new_ring(size, members, target), size, &ids(0..members), target);
            }
        }
    }
}

#[test]
fn a_new_ring_of_as_many_members_as_fit_is_striped() {
    let claim = new_ring(size(8), 4, 4);
    let numbers: Vec<u64> = claim.owners.iter().map(|owner| owner.get()).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!((claim.moves, claim.moves_min), (8, 8));
}

/// Whether any owners at all, balanced or not, have the spacing: tries all of them.
fn exists(owners: &mut Vec<usize>, partitions: usize, members: usize, spacing: usize) -> bool {
    let p = owners.len();
    if p == partitions {
        return true;
    }
    // Members that own nothing yet are alike, so one of them is tried.
    let used = owners.iter().max().map_or(0, |most| most + 1);
    for member in 0..members.min(used + 1) {
        let clashes = |q: &usize| owners[*q] == member && (p - q).min(partitions - (p - q)) < spacing;
        if !(0..p).any(|q| clashes(&q)) {
            owners.push(member);
            if exists(owners, partitions, members, spacing) {
                return true;
            }
            owners.pop();
        }
    }
    false
}

#[test]
fn no_owners_have_a_larger_spacing_than_the_bound() {
    for partitions in [8, 16] {
        for members in 1..=7 {
            let bound = spacing_max(size(partitions), members) as usize;
            let exists = |spacing| exists(&mut Vec::new(), partitions as usize, members, spacing);
            assert!(exists(bound), "{partitions} partitions, {members} members, spacing {bound}");
            assert!(!exists(bound + 1), "{partitions} partitions, {members} members, spacing {}", bound + 1);
        }
    }
}

/// Members join one by one and leave one by one, in rings of all sizes with Riak's target.
#[test]
fn joins_and_leaves_move_little() {
    let target = TARGET_N_VAL_DEFAULT;
    for size in sizes() {
        let mut claim = new_ring(size, 1, target);
        for members in 2..=MEMBERS_MAX {
            claim = changed(&claim, &ids(0..members), target);
            check(&claim, size, &ids(0..members), target);
            // With the fourth member the spacing rises to 4, and only a striped ring has it.
            if members != u64::from(target) {
                assert_eq!(claim.moves, claim.moves_min, "{} partitions, {members} members", size.get());
            }
        }
        for members in (1..MEMBERS_MAX).rev() {
            claim = changed(&claim, &ids(0..members), target);
            check(&claim, size, &ids(0..members), target);
            let allowed = moves_allowed_after_leave(&claim, members, target);
            assert!(claim.moves <= allowed, "{} partitions, {members}: {claim:?}", size.get());
        }
    }
}

/// What a leave may move.
///
/// In a striped ring, all partitions of the leaver have the same neighbours, so spacing leaves only
/// the few members that are no neighbours to take them. Those take as many as balance allows. For
/// each of the others a second partition moves. With less than twice as many members left as the
/// target, spacing alone may demand that most of the ring changes its owner.
fn moves_allowed_after_leave(claim: &Claim, members: u64, target: u32) -> u32 {
    if members >= 2 * u64::from(target) { 2 * claim.moves_min + 4 } else { claim.owners.len() as u32 * 3 / 4 + 1 }
}

/// With as many members as the target, spacing demands a striped ring. The claim finds the one of
/// all 24 that keeps the most owners.
#[test]
fn a_forced_layout_keeps_as_much_as_any() {
    let size = size(64);
    for before in [3, 5, 6, 9] {
        let before = new_ring(size, before, 4);
        let claim = changed(&before, &ids(0..4), 4);
        let mut least = 64;
        for order in 0..256 {
            let stripe: Vec<u64> = (0..4).map(|place| order >> (2 * place) & 3).collect();
            if ids(stripe.iter().copied()).len() == 4 {
                let moves = (0..64).filter(|p| before.owners[*p].get() != stripe[p % 4]).count();
                least = least.min(moves);
            }
        }
        assert_eq!(claim.moves as usize, least);
    }
}

#[test]
fn a_target_that_cannot_be_met_is_said() {
    let three = new_ring(size(64), 3, 3);
    assert_eq!(three.spacing, Spacing { target: 3, reached: 2 }, "64 is no multiple of 3");
    assert!(!new_ring(size(64), 3, 4).spacing.is_met());
    assert!(new_ring(size(64), 5, 4).spacing.is_met());
    assert_eq!(new_ring(size(8), 20, 30).spacing, Spacing { target: 8, reached: 8 }, "a window is a ring at most");
}

#[test]
fn nobody_can_claim_without_members_or_a_ring() {
    assert_eq!(Claim::of_new_ring(size(8), &BTreeSet::new(), 4), None);
    assert_eq!(Claim::of_owners(&[None; 7], &ids(0..3), 4), None);
}

#[test]
fn more_members_than_partitions_leave_the_owners_alone() {
    let eight = new_ring(size(8), 8, 4);
    let many = changed(&eight, &ids(0..64), 4);
    assert_eq!((many.moves, &many.owners), (0, &eight.owners));
    check(&many, size(8), &ids(0..64), 4);
}

/// The owners as the oracle knows them: numbers of the members, in their order.
fn numbered(present: &[Option<NodeId>], members: &BTreeSet<NodeId>) -> Vec<Option<u8>> {
    let number = |owner: &NodeId| members.iter().position(|member| member == owner).map(|number| number as u8);
    present.iter().map(|owner| owner.as_ref().and_then(number)).collect()
}

/// Checks a claim of a small ring against the optimum. Returns the moves above the fewest that
/// balance alone demands.
fn check_fewest(present: &[Option<NodeId>], members: &BTreeSet<NodeId>, target: u32) -> (Claim, u32) {
    let claim = Claim::of_owners(present, members, target).unwrap();
    let size = size(present.len() as u32);
    check(&claim, size, members, target);
    let spacing = target.clamp(1, spacing_max(size, members.len())) as usize;
    let fewest = oracle::fewest_moves(&numbered(present, members), members.len(), spacing).unwrap();
    assert_eq!(claim.moves as usize, fewest, "{present:?} to {members:?}, target {target}: {:?}", claim.owners);
    let above = claim.moves - claim.moves_min;
    (claim, above)
}

/// The oracle itself against all owners that there are, without any cleverness.
#[test]
fn the_oracle_finds_what_trying_everything_finds() {
    for members in 1..=4usize {
        for (seed, spacing) in (0..12u32).map(|seed| (seed, 1 + seed as usize % 3)) {
            let spacing = spacing.min(spacing_max(size(8), members) as usize);
            let before =
                |p: u32| (seed.wrapping_mul(2_654_435_761).wrapping_add(p * 40_503) >> 7) as usize % (members + 1);
            let present: Vec<Option<u8>> = (0..8).map(|p| (before(p) < members).then_some(before(p) as u8)).collect();
            let mut fewest = None;
            for all in 0..members.pow(8) {
                let owners: Vec<u8> = (0..8).map(|p| (all / members.pow(p) % members) as u8).collect();
                let shares = (0..members as u8).map(|m| owners.iter().filter(|owner| **owner == m).count());
                let balanced = shares.clone().max().unwrap() - shares.min().unwrap() <= 1;
                let spaced = (0..8).all(|p| (1..spacing).all(|d| owners[p] != owners[(p + d) % 8]));
                if balanced && spaced {
                    let moves = (0..8).filter(|p| present[*p] != Some(owners[*p])).count();
                    fewest = Some(fewest.unwrap_or(8).min(moves));
                }
            }
            assert_eq!(oracle::fewest_moves(&present, members, spacing), fewest, "{present:?}, spacing {spacing}");
        }
    }
}

/// Any number of nodes join one at once.
#[test]
fn joins_of_a_lone_node_move_what_balance_demands() {
    for size in sizes() {
        for members in 2..=8 {
            let claim = changed(&new_ring(size, 1, 4), &ids(0..members), 4);
            assert_eq!(claim.moves, claim.moves_min, "{size:?}, {members} members");
        }
    }
}

/// Every way from one set of up to five members to another, in rings of 8 and 16 partitions that
/// were claimed.
#[test]
fn single_changes_of_small_rings_move_the_fewest() {
    for partitions in [8, 16] {
        for target in 1..=5 {
            for (before, after) in (1..=5u64).flat_map(|before| (1..=5u64).map(move |after| (before, after))) {
                for shift in 0..before {
                    let owners: Vec<_> = new_ring(size(partitions), before, target).owners;
                    let present: Vec<_> = owners.into_iter().map(Some).collect();
                    check_fewest(&present, &ids(shift..shift + after), target);
                }
            }
        }
    }
}

/// How many branches the complete search of a small ring visits.
fn visits(present: &[Option<NodeId>], members: &BTreeSet<NodeId>, target: u32) -> usize {
    let nowhere = Targets { n_val: target, location_n_val: 1, locations: &Locations::new() };
    let ids: Vec<NodeId> = members.iter().copied().collect();
    let present = present_of(present, &ids, nowhere);
    let spacing = target.clamp(1, spacing_max(size(present.size() as u32), ids.len())) as usize;
    let best = heuristic(&present, spacing).iter().map(|found| (found.crowding(), found.moves())).min().unwrap();
    let mut search = exact::Search::new(&present, spacing, best);
    search.visit(0, 0);
    search.visits
}

fn any_size() -> impl Strategy<Value = RingSize> {
    prop_oneof![8 => 3u32..=6, 2 => 7u32..=8, 1 => 9u32..=10].prop_map(|bits| size(1 << bits))
}

/// A step of a history: members that join, leave, or are replaced, several at a time.
fn any_members(most: usize) -> impl Strategy<Value = BTreeSet<NodeId>> {
    prop::collection::btree_set((0..8u64).prop_map(NodeId::new), 1..=most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Joins, leaves and replaces in any order, in small rings. A replacement takes the place of a
    /// member before the claim; a member that is removed by force leaves nobody.
    #[test]
    fn any_history_of_a_small_ring_moves_the_fewest(
        bits in 3u32..=4,
        changes in prop::collection::vec((any_members(5), 1u32..=5, any::<bool>(), any::<bool>()), 1..=4),
    ) {
        let mut owners = vec![None; 1 << bits];
        for (members, target, replaces, forced) in changes {
            let gone = owners.iter().flatten().find(|owner| !members.contains(*owner)).copied();
            let new = members.iter().find(|member| !owners.contains(&Some(**member))).copied();
            if let (true, Some(gone), Some(new)) = (replaces, gone, new) {
                owners.iter_mut().filter(|owner| **owner == Some(gone)).for_each(|owner| *owner = Some(new));
            }
            if forced {
                owners.iter_mut().filter(|owner| owner.is_some_and(|o| !members.contains(&o))).for_each(|o| *o = None);
            }
            let (claim, _) = check_fewest(&owners, &members, target);
            owners = claim.owners.into_iter().map(Some).collect();
        }
    }

    /// The worst that can come: owners without any order.
    #[test]
    fn any_small_ring_moves_the_fewest(
        bits in 3u32..=4,
        owners in prop::collection::vec(prop::option::weighted(0.9, (0..6u64).prop_map(NodeId::new)), 16),
        members in any_members(5),
        target in 1u32..=5,
    ) {
        check_fewest(&owners[..1 << bits], &members, target);
    }

    /// So the result is an optimum, and not only the best of what was visited.
    #[test]
    fn a_small_ring_is_searched_completely(
        bits in 3u32..=4,
        owners in prop::collection::vec(prop::option::weighted(0.9, (0..6u64).prop_map(NodeId::new)), 16),
        members in any_members(5),
        target in 1u32..=5,
    ) {
        let visits = visits(&owners[..1 << bits], &members, target);
        prop_assert!(visits < exact::VISITS_MAX / 2, "{}", visits);
    }

    #[test]
    fn any_ring_becomes_balanced_and_spaced(
        size in any_size(),
        owners in prop::collection::vec(prop::option::weighted(0.9, 0..MEMBERS_MAX), 1024),
        owners_max in 1..=MEMBERS_MAX,
        members in prop::collection::btree_set(0..MEMBERS_MAX, 1..=64),
        target in 1u32..=9,
    ) {
        let present: Vec<Option<NodeId>> =
            owners[..size.get() as usize].iter().map(|o| o.map(|o| NodeId::new(o % owners_max))).collect();
        let members = ids(members);
        let claim = Claim::of_owners(&present, &members, target).unwrap();
        check(&claim, size, &members, target);
        let moves = present.iter().zip(&claim.owners).filter(|(old, new)| **old != Some(**new)).count();
        prop_assert_eq!(claim.moves as usize, moves);
        prop_assert_eq!(&Claim::of_owners(&present, &members, target).unwrap(), &claim, "deterministic");
        let again = changed(&claim, &members, target);
        prop_assert_eq!(&again.owners, &claim.owners, "a second claim moves nothing");
    }

    /// Several members at a time join, leave and are replaced.
    #[test]
    fn a_history_of_changes_keeps_balance_and_spacing(
        size in any_size(),
        changes in prop::collection::vec((prop::collection::btree_set(0..24u64, 1..=24), 1u32..=5), 1..=5),
    ) {
        let mut claim = new_ring(size, 1, 4);
        for (members, target) in changes {
            let members = ids(members);
            let before = claim.clone();
            claim = changed(&before, &members, target);
            check(&claim, size, &members, target);
            // Balance within one leaves room for two partitions of each member.
            let of_members = before.owners.iter().filter(|owner| members.contains(owner)).count();
            prop_assert!(claim.moves as usize >= size.get() as usize - of_members, "a leaver keeps nothing");
        }
    }

    /// From rings that many changes have shuffled, too.
    #[test]
    fn single_changes_of_used_rings_move_little(
        size in any_size(),
        changes in prop::collection::vec(prop::collection::btree_set(0..24u64, 9..=24), 1..=4),
        leaver in any::<prop::sample::Index>(),
    ) {
        let target = TARGET_N_VAL_DEFAULT;
        let mut claim = new_ring(size, 1, target);
        let mut members = BTreeSet::new();
        for change in changes {
            members = ids(change);
            claim = changed(&claim, &members, target);
        }
        let mut joined = members.clone();
        joined.insert(NodeId::new(99));
        let join = changed(&claim, &joined, target);
        prop_assert!(join.moves <= join.moves_min + join.moves_min / 8 + 1, "{} of {}", join.moves, join.moves_min);
        let gone = *leaver.get(&members.iter().copied().collect::<Vec<_>>());
        members.remove(&gone);
        let leave = changed(&claim, &members, target);
        let allowed = moves_allowed_after_leave(&leave, members.len() as u64, target);
        prop_assert!(leave.moves <= allowed, "{} of {}", leave.moves, leave.moves_min);
        // A node that takes the place of another gets exactly the other's partitions.
        let replaced: Vec<NodeId> =
            claim.owners.iter().map(|owner| if *owner == gone { NodeId::new(99) } else { *owner }).collect();
        members.insert(NodeId::new(99));
        let present: Vec<_> = replaced.iter().copied().map(Some).collect();
        prop_assert_eq!(Claim::of_owners(&present, &members, target).unwrap().owners, replaced);
    }
}
