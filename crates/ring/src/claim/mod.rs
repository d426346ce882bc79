//! Claim: which member of a cluster owns which partitions.
//!
//! What it is: a function from the present ring, the members and `target_n_val` to new owners
//! (docs/riak/semantics.md §1.2). Equal inputs give equal owners. The running time is bounded.
//!
//! The result has these properties, in this order of importance:
//! 1. **Balance.** Every member owns the ring's size divided by the number of members, rounded down
//!    or up.
//! 2. **Spacing.** Each window of `target_n_val` successive partitions has distinct owners. A
//!    window may reach around the end of the ring. [`spacing_max`] says what is possible; balance
//!    never stands in the way.
//! 3. **Distinct locations.** Each window of `target_location_n_val` successive partitions has
//!    owners at distinct locations. All members without a location count as being at one, as in
//!    Riak. This is a best effort: the members at the locations may be too unequal, or three
//!    locations may not divide the ring. Then a claim accepts up to twice the least
//!    [crowding](crowding) that it finds, if fewer partitions move for it. So locations that cannot
//!    be met do not move the ring again at each change.
//! 4. **Few moves.** A local search looks for owners with few moves. A new [`layout`], labelled so
//!    that as many partitions as possible keep their owners, is taken if it has fewer, or if the
//!    search misses the spacing or the locations. A ring of at most 16 partitions is [searched
//!    completely](exact), so there the moves are the fewest that the properties before allow.
//!
//! What it is not: it does not know who is up, and it does not decide when a partition moves.

mod arrangement;
mod crowding;
mod exact;
mod guess;
mod layout;
mod present;
mod search;
#[cfg(test)]
mod tests;

use crate::location::{Location, Locations};
use crate::partition::RingSize;
use crate::ring::Ring;
use arrangement::{Arrangement, Member};
use ombak_types::NodeId;
use present::Present;
use std::collections::BTreeSet;

/// `target_n_val` when the configuration sets none, as in Riak.
pub const TARGET_N_VAL_DEFAULT: u32 = 4;

/// `target_location_n_val` when the configuration sets none, as in Riak.
pub const TARGET_LOCATION_N_VAL_DEFAULT: u32 = 3;

/// So many times a claim begins again from the owners that it has found.
const ROUNDS_MAX: usize = 6;

/// What a claim should reach.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a> {
    /// Each window of so many successive partitions should have distinct owners.
    pub n_val: u32,
    /// Each window of so many successive partitions should have distinct locations, if any location
    /// is known.
    pub location_n_val: u32,
    /// The locations of the members.
    pub locations: &'a Locations,
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The owner of each partition, in the order of the partitions.
    pub owners: Vec<NodeId>,
    /// The number of partitions that have another owner than before.
    pub moves: u32,
    /// The fewest moves that balance alone demands.
    pub moves_min: u32,
    /// How far apart the partitions of one member are.
    pub spacing: Spacing,
    /// How far apart the partitions of one location are; `None` when no location of a member is
    /// known.
    pub location_spacing: Option<Spacing>,
}

/// How far apart the partitions of one member are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// Each window of so many successive partitions should have distinct owners: `target_n_val`,
    /// and the ring's size at most.
    pub target: u32,
    /// The largest number for which that is so, and `target` at most.
    pub reached: u32,
}

impl Spacing {
    /// Whether the target is reached. If not, Riak warns: "Not all replicas will be on distinct
    /// nodes".
    pub const fn is_met(self) -> bool {
        self.reached >= self.target
    }

    /// The spacing of a ring.
    pub fn of(owners: &[NodeId], target_n_val: u32) -> Self {
        Self::of_each(owners, target_n_val)
    }

    /// The spacing of the locations of a ring; `None` when no location of an owner is known.
    pub fn of_locations(owners: &[NodeId], targets: Targets<'_>) -> Option<Self> {
        let locations: Vec<Option<&Location>> = owners.iter().map(|owner| targets.locations.get(owner)).collect();
        locations.iter().any(Option::is_some).then(|| Self::of_each(&locations, targets.location_n_val))
    }

    fn of_each<T: PartialEq>(of_partitions: &[T], target: u32) -> Self {
        let size = of_partitions.len();
        let target = target.clamp(1, size as u32);
        let repeats =
            |distance: &u32| (0..size).any(|p| of_partitions[p] == of_partitions[(p + *distance as usize) % size]);
        let reached = (1..target).find(repeats).unwrap_or(target);
        Self { target, reached }
    }
}

/// The largest number of successive partitions that can have distinct owners everywhere in a ring.
///
/// Some member owns at least size / members partitions, rounded up. Its partitions divide the ring
/// into that many gaps, so the smallest gap is no larger than the ring's size divided by their
/// number. [`layout::Layout`] reaches this bound with balance, so the bound is exact.
pub fn spacing_max(size: RingSize, members: usize) -> u32 {
    let members = u32::try_from(members).unwrap_or(u32::MAX).clamp(1, size.get());
    size.get() / size.get().div_ceil(members)
}

impl Claim {
    /// Claims a new ring. Returns `None` when there are no members.
    pub fn of_new_ring(size: RingSize, members: &BTreeSet<NodeId>, target_n_val: u32) -> Option<Self> {
        Self::of_owners(&vec![None; size.get() as usize], members, target_n_val)
    }

    /// Claims the partitions of an existing ring for these members. Returns `None` when there are
    /// no members.
    pub fn of_changed_ring(ring: &Ring, members: &BTreeSet<NodeId>, target_n_val: u32) -> Option<Self> {
        let owners: Vec<_> = ring.owners().map(Some).collect();
        Self::of_owners(&owners, members, target_n_val)
    }

    /// Claims partitions of which some may have no owner, because it was removed by force. Returns
    /// `None` when there are no members, or when `present` is not of a valid ring size.
    pub fn of_owners(present: &[Option<NodeId>], members: &BTreeSet<NodeId>, target_n_val: u32) -> Option<Self> {
        let nowhere = Targets { n_val: target_n_val, location_n_val: 1, locations: &Locations::new() };
        Self::of_located(present, members, nowhere)
    }

    /// As [`Self::of_owners`], with regard to locations.
    pub fn of_located(present: &[Option<NodeId>], members: &BTreeSet<NodeId>, targets: Targets<'_>) -> Option<Self> {
        let size = RingSize::new(u32::try_from(present.len()).ok()?).ok()?;
        let ids = active_members(present, members);
        let spacing = targets.n_val.clamp(1, spacing_max(size, ids.len())) as usize;
        let of_members = present_of(present, &ids, targets);
        let best = settled(&of_members, spacing, targets.n_val)?;
        let owners: Vec<NodeId> = best.iter().map(|member| ids[usize::from(*member)]).collect();
        Some(Self {
            moves: owners.iter().zip(present).filter(|(new, old)| Some(**new) != **old).count() as u32,
            moves_min: of_members.moves_min() as u32,
            spacing: Spacing::of(&owners, targets.n_val),
            location_spacing: Spacing::of_locations(&owners, targets),
            owners,
        })
    }
}

/// The owners as numbers of members, and the locations as numbers.
fn present_of(owners: &[Option<NodeId>], ids: &[NodeId], targets: Targets<'_>) -> Present {
    let member = |id: &NodeId| ids.binary_search(id).ok().map(|i| i as u16);
    let known: BTreeSet<Option<&Location>> = ids.iter().map(|id| targets.locations.get(id)).collect();
    let number = |id: &NodeId| known.iter().position(|at| *at == targets.locations.get(id)).unwrap_or(0) as u16;
    Present::new(
        owners.iter().map(|owner| owner.as_ref().and_then(member)).collect(),
        ids.iter().map(number).collect(),
        targets.location_n_val as usize,
    )
}

/// The members that shall own partitions, sorted: all, and not more than there are partitions. If
/// there are more, those that own the most come first.
fn active_members(owners: &[Option<NodeId>], members: &BTreeSet<NodeId>) -> Vec<NodeId> {
    let owned = |id: &NodeId| owners.iter().filter(|owner| **owner == Some(*id)).count();
    let mut ids: Vec<NodeId> = members.iter().copied().collect();
    if ids.len() > owners.len() {
        ids.sort_by_cached_key(|id| (std::cmp::Reverse(owned(id)), *id));
        ids.truncate(owners.len());
        ids.sort_unstable();
    }
    ids
}

/// The best owners that are found, so that a second claim moves nothing. If locations are crowded,
/// a search from these owners may find much better ones; then those are the owners. `None` when
/// there are no members.
fn settled(present: &Present, spacing: usize, target_n_val: u32) -> Option<Vec<Member>> {
    let mut best = best_of(present, spacing, target_n_val)?;
    for _ in 0..ROUNDS_MAX {
        if best.crowding() == 0 {
            break;
        }
        let found = present.with_owners(best.owners());
        let next = best_of(&found, spacing, target_n_val)?;
        if next.moves() == 0 {
            break;
        }
        best = Arrangement::new(present, next.owners().to_vec(), spacing);
        search::move_back(&mut best);
    }
    Some(best.owners().to_vec())
}

/// The best owners that are found at once: of those with at most twice the least crowding, the ones
/// with the fewest moves. If several have as few, those with less crowding, then those with fewer
/// repetitions within `target_n_val`, and then a layout, which is regular. `None` when there are no
/// members.
fn best_of(present: &Present, spacing: usize, target_n_val: u32) -> Option<Arrangement<'_>> {
    if present.members() == 0 {
        return None;
    }
    let mut found = heuristic(present, spacing);
    found.extend(exact::better(present, spacing, &found));
    let least = found.iter().map(Arrangement::crowding).min()?;
    let wish = (target_n_val as usize).clamp(1, present.members());
    found
        .into_iter()
        .filter(|arrangement| arrangement.crowding() <= 2 * least)
        .min_by_key(|found| (found.moves(), found.crowding(), found.repetitions_within(wish)))
}

/// Owners in new layouts, and near the present ones. They have the spacing, and there is at least
/// one.
fn heuristic(present: &Present, spacing: usize) -> Vec<Arrangement<'_>> {
    let mut found = vec![laid_out(&layout::Layout::new(present.size(), present.members()), present, spacing)];
    found.extend(searched(present, spacing));
    if present.location_spacing() > 1 {
        found.extend(separated(laid_out(&layout::Layout::of_locations(present), present, spacing)));
    }
    found
}

/// Owners near the present ones that have the spacing: those that a local search finds, and before
/// them those that it starts from. If some member needs every gap to be exactly the spacing, only a
/// regular layout has it, and nothing is searched.
fn searched(present: &Present, spacing: usize) -> Vec<Arrangement<'_>> {
    let guess = || Arrangement::new(present, guess::first_guess(present, spacing), spacing);
    let is_tight = present.size().div_ceil(present.members()) * spacing == present.size();
    let first = guess();
    let is_spaced = first.repetitions() == 0;
    let needs_search = first.crowding() > 0 || !is_spaced;
    let mut found: Vec<_> = is_spaced.then_some(first).into_iter().collect();
    found.iter_mut().for_each(search::move_back);
    if needs_search && (is_spaced || !is_tight) {
        found.extend(separated(guess()));
    }
    found
}

/// The owners after a local search, if it finds the spacing.
fn separated(mut arrangement: Arrangement<'_>) -> Option<Arrangement<'_>> {
    search::separate(&mut arrangement).then(|| {
        search::move_back(&mut arrangement);
        arrangement
    })
}

/// Owners in a new layout.
fn laid_out<'a>(layout: &layout::Layout, present: &'a Present, spacing: usize) -> Arrangement<'a> {
    let mut arrangement = Arrangement::new(present, layout.labelled_for(present), spacing);
    search::move_back(&mut arrangement);
    arrangement
}
