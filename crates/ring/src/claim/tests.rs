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

fn any_size() -> impl Strategy<Value = RingSize> {
    prop_oneof![8 => 3u32..=6, 2 => 7u32..=8, 1 => 9u32..=10].prop_map(|bits| size(1 << bits))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

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
