use super::super::*;
use crate::ring::RingVersion;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The members 0, 1, … at these locations: the location of each.
fn located(of: &[usize]) -> (BTreeSet<NodeId>, Locations) {
    let location = |at: &usize| format!("rack {at}").parse::<Location>().unwrap();
    let locations: Locations = (0..).map(NodeId::new).zip(of.iter().map(location)).collect();
    (locations.keys().copied().collect(), locations)
}

/// The members of locations of equal size, taking turns.
fn equal(locations: usize, members_of_each: usize) -> Vec<usize> {
    (0..locations * members_of_each).map(|member| member % locations).collect()
}

fn claim(present: &[Option<NodeId>], of: &[usize], location_n_val: u32) -> Claim {
    let (members, locations) = located(of);
    let targets = Targets { n_val: TARGET_N_VAL_DEFAULT, location_n_val, locations: &locations };
    Claim::of_located(present, &members, targets).unwrap()
}

fn unowned(size: RingSize) -> Vec<Option<NodeId>> {
    vec![None; size.get() as usize]
}

fn present(claim: &Claim) -> Vec<Option<NodeId>> {
    claim.owners.iter().copied().map(Some).collect()
}

/// The number of windows without distinct locations.
fn spoilt_windows(claim: &Claim, of: &[usize], window: usize) -> usize {
    let size = claim.owners.len();
    let location = |p: usize| of[claim.owners[p % size].get() as usize];
    let distinct = |p: usize| (p..p + window).map(location).collect::<BTreeSet<_>>().len() == window;
    (0..size).filter(|p| !distinct(*p)).count()
}

/// Checks what holds of every claim, in another way than the code under test does it.
fn check(claim: &Claim, of: &[usize], target: u32) {
    let size = RingSize::new(claim.owners.len() as u32).unwrap();
    let mut counts: BTreeMap<NodeId, u32> = BTreeMap::new();
    claim.owners.iter().for_each(|owner| *counts.entry(*owner).or_default() += 1);
    let share = size.get() / of.len() as u32;
    assert!(counts.len() == of.len() && counts.values().all(|count| (share..=share + 1).contains(count)), "{counts:?}");
    let spacing = TARGET_N_VAL_DEFAULT.min(spacing_max(size, of.len()));
    assert_eq!(claim.spacing.reached, spacing, "{of:?}");
    let reached = claim.location_spacing.unwrap().reached as usize;
    assert_eq!(spoilt_windows(claim, of, reached), 0);
    assert!(reached == target as usize || spoilt_windows(claim, of, reached + 1) > 0);
}

fn any_size() -> impl Strategy<Value = RingSize> {
    (4u32..=8).prop_map(|bits| RingSize::new(1 << bits).unwrap())
}

/// All sizes and numbers of locations, from a new ring. With three locations a ring always has
/// windows without distinct ones, because three does not divide its size; there are eight at most.
#[test]
fn new_rings_have_distinct_locations() {
    for size in (3..=10).map(|bits| RingSize::new(1 << bits).unwrap()) {
        for (locations, each) in (2..=12).flat_map(|locations| (1..=8).map(move |each| (locations, each))) {
            let of = equal(locations, each);
            if of.len() > size.get() as usize {
                continue;
            }
            let claim = claim(&unowned(size), &of, 3);
            check(&claim, &of, 3);
            let reached = claim.location_spacing.unwrap().reached;
            assert_eq!(reached, 3.min(spacing_max(size, locations)), "{size:?} {locations} {each}");
            if locations == 3 {
                assert!(spoilt_windows(&claim, &of, 3) <= 8, "{size:?} {each}: {claim:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With enough locations of equal size each window has distinct ones, whatever was before.
    #[test]
    fn enough_equal_locations_are_distinct_in_each_window(
        size in any_size(),
        owners in prop::collection::vec(prop::option::weighted(0.9, 0..24u64), 256),
        (target, locations) in (2u32..=4).prop_flat_map(|target| (Just(target), target as usize..=6)),
        each in 1usize..=4,
    ) {
        let of = equal(locations, each);
        prop_assume!(of.len() <= size.get() as usize);
        let before: Vec<_> = owners[..size.get() as usize].iter().map(|owner| owner.map(NodeId::new)).collect();
        let claim = claim(&before, &of, target);
        check(&claim, &of, target);
        prop_assert_eq!(claim.location_spacing.unwrap().reached, target.min(spacing_max(size, locations)));
        // A claim accepts twice the least crowding for the sake of fewer moves.
        if (locations, target) == (3, 3) {
            prop_assert!(spoilt_windows(&claim, &of, 3) <= 16, "{:?}", claim);
        }
    }

    /// Nodes join and leave, at locations of any sizes.
    #[test]
    fn a_history_with_locations_keeps_balance_and_spacing(
        size in any_size(),
        first in prop::collection::vec(0..6usize, 1..=12),
        joins in prop::collection::vec(0..6usize, 0..=4),
    ) {
        let claimed = claim(&unowned(size), &first, 3);
        check(&claimed, &first, 3);
        let mut of = first;
        of.extend(joins);
        let grown = claim(&present(&claimed), &of, 3);
        check(&grown, &of, 3);
        prop_assert_eq!(&claim(&present(&claimed), &of, 3), &grown, "deterministic");
        prop_assert_eq!(claim(&present(&grown), &of, 3).moves, 0, "a second claim moves nothing");
        let ring = Ring::from_owners(&grown.owners, RingVersion::first(1)).unwrap();
        prop_assert!(ring.node_count() <= of.len());
    }

    /// A node more at each of several equal locations takes what balance demands, and little else.
    #[test]
    fn equal_locations_grow_with_few_moves(size in any_size(), locations in 4usize..=6, each in 1usize..=3) {
        let (before, after) = (equal(locations, each), equal(locations, each + 1));
        prop_assume!(after.len() <= size.get() as usize);
        let claimed = claim(&unowned(size), &before, 3);
        let grown = claim(&present(&claimed), &after, 3);
        check(&grown, &after, 3);
        prop_assert_eq!(grown.location_spacing.unwrap().reached, 3);
        prop_assert!(grown.moves <= grown.moves_min + 2, "{} of {}", grown.moves, grown.moves_min);
    }
}
