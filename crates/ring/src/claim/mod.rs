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
//! 3. **Few moves.** A local search looks for owners with few moves. Only if it finds none with the
//!    required spacing does the ring get a new [`layout`], labelled so that as many partitions as
//!    possible keep their owners.
//!
//! What it is not: it does not know who is up, and it does not decide when a partition moves.

mod arrangement;
mod guess;
mod layout;
mod search;
#[cfg(test)]
mod tests;

use crate::partition::RingSize;
use crate::ring::Ring;
use arrangement::{Arrangement, Present};
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// `target_n_val` when the configuration sets none, as in Riak.
pub const TARGET_N_VAL_DEFAULT: u32 = 4;

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
        let size = owners.len();
        let target = target_n_val.clamp(1, size as u32);
        let repeats = |distance: &u32| (0..size).any(|p| owners[p] == owners[(p + *distance as usize) % size]);
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
        claim(&vec![None; size.get() as usize], size, members, target_n_val)
    }

    /// Claims the partitions of an existing ring for these members. Returns `None` when there are
    /// no members.
    pub fn of_changed_ring(ring: &Ring, members: &BTreeSet<NodeId>, target_n_val: u32) -> Option<Self> {
        let owners: Vec<_> = ring.owners().map(Some).collect();
        claim(&owners, ring.size(), members, target_n_val)
    }

    /// Claims partitions of which some may have no owner, because it was removed by force. Returns
    /// `None` when there are no members, or when `present` is not of a valid ring size.
    pub fn of_owners(present: &[Option<NodeId>], members: &BTreeSet<NodeId>, target_n_val: u32) -> Option<Self> {
        let size = RingSize::new(u32::try_from(present.len()).ok()?).ok()?;
        claim(present, size, members, target_n_val)
    }
}

fn claim(owners: &[Option<NodeId>], size: RingSize, members: &BTreeSet<NodeId>, target_n_val: u32) -> Option<Claim> {
    let ids = active_members(owners, members);
    if ids.is_empty() {
        return None;
    }
    let member = |id: &NodeId| ids.binary_search(id).ok().map(|i| i as u16);
    let present = Present::new(owners.iter().map(|owner| owner.as_ref().and_then(member)).collect(), ids.len());
    let spacing = target_n_val.clamp(1, spacing_max(size, ids.len())) as usize;
    let best = best_of(searched(&present, spacing), laid_out(&present, spacing), &present, target_n_val);
    let new: Vec<NodeId> = best.owners().iter().map(|member| ids[usize::from(*member)]).collect();
    let moves = new.iter().zip(owners).filter(|(new, old)| Some(**new) != **old).count() as u32;
    Some(Claim { moves, moves_min: present.moves_min() as u32, spacing: Spacing::of(&new, target_n_val), owners: new })
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

/// Owners that a local search finds near the present ones, if it finds the spacing. If some member
/// needs every gap to be exactly the spacing, only a regular layout has it, and nothing is
/// searched.
fn searched(present: &Present, spacing: usize) -> Option<Arrangement<'_>> {
    let mut arrangement = Arrangement::new(present, guess::first_guess(present, spacing), spacing);
    let is_tight = present.size().div_ceil(present.members()) * spacing == present.size();
    let found = arrangement.repetitions() == 0 || (!is_tight && search::separate(&mut arrangement));
    found.then(|| {
        search::move_back(&mut arrangement);
        arrangement
    })
}

/// Owners in a new layout.
fn laid_out(present: &Present, spacing: usize) -> Arrangement<'_> {
    let layout = layout::Layout::new(present.size(), present.members());
    let mut arrangement = Arrangement::new(present, layout.labelled_for(present), spacing);
    search::move_back(&mut arrangement);
    arrangement
}

/// The owners with fewer moves. If both have as many, those with fewer repetitions within
/// `target_n_val`, and then the layout, which is regular.
fn best_of<'a>(
    searched: Option<Arrangement<'a>>,
    laid_out: Arrangement<'a>,
    present: &Present,
    target_n_val: u32,
) -> Arrangement<'a> {
    let Some(searched) = searched else { return laid_out };
    let wish = (target_n_val as usize).clamp(1, present.members());
    let cost = |a: &Arrangement<'_>| (a.moves(), a.repetitions_within(wish));
    if cost(&searched) < cost(&laid_out) { searched } else { laid_out }
}
