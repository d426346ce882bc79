//! An assignment of partitions to members, with what a local search asks about it.

use super::crowding::{Crowding, equal_weights, falling_weights};
use super::present::Present;

/// A member: its place in the sorted list of members.
pub(super) type Member = u16;

/// An assignment of partitions to members.
///
/// Two partitions of one member that are less than `spacing` apart form a *repetition*. Partitions
/// of one location that are too near make the *crowding*, which is 0 when each window has distinct
/// locations.
pub(super) struct Arrangement<'a> {
    present: &'a Present,
    owners: Vec<Member>,
    counts: Vec<usize>,
    of_members: Crowding,
    of_locations: Crowding,
}

/// How an exchange changes an arrangement. The order says which exchange is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Effect {
    /// The change of the number of repetitions.
    pub(super) repetitions: isize,
    /// The change of the crowding.
    pub(super) crowding: isize,
    /// The change of the number of moves.
    pub(super) moves: isize,
}

impl<'a> Arrangement<'a> {
    pub(super) fn new(present: &'a Present, owners: Vec<Member>, spacing: usize) -> Self {
        let mut counts = vec![0; present.members()];
        owners.iter().for_each(|owner| counts[usize::from(*owner)] += 1);
        let of_members = Crowding::new(owners.iter().copied(), present.members(), equal_weights(spacing));
        let locations = owners.iter().map(|owner| present.location(*owner));
        let of_locations = Crowding::new(locations, present.locations(), falling_weights(present.location_spacing()));
        Self { present, owners, counts, of_members, of_locations }
    }

    pub(super) fn owners(&self) -> &[Member] {
        &self.owners
    }

    pub(super) fn present(&self) -> &'a Present {
        self.present
    }

    /// The number of pairs of partitions that have one owner and are too near.
    pub(super) fn repetitions(&self) -> usize {
        self.of_members.total()
    }

    /// How crowded the locations are; 0: each window has distinct ones.
    pub(super) fn crowding(&self) -> usize {
        self.of_locations.total()
    }

    /// Whether another owner of the partition could make the arrangement better. Repetitions go
    /// before crowding.
    pub(super) fn is_in_the_way(&self, partition: usize) -> bool {
        let owner = self.owners[partition];
        match self.repetitions() {
            0 => self.of_locations.near(partition, self.present.location(owner)) > 0,
            _ => self.of_members.near(partition, owner) > 0,
        }
    }

    /// The same as [`Self::repetitions`], for another spacing.
    pub(super) fn repetitions_within(&self, spacing: usize) -> usize {
        let size = self.owners.len();
        let repeat =
            |distance: usize| (0..size).filter(|p| self.owners[*p] == self.owners[(p + distance) % size]).count();
        (1..spacing).map(repeat).sum()
    }

    pub(super) fn is_moved(&self, partition: usize) -> bool {
        self.present.owners()[partition] != Some(self.owners[partition])
    }

    /// The number of partitions with another owner than before.
    pub(super) fn moves(&self) -> usize {
        (0..self.owners.len()).filter(|p| self.is_moved(*p)).count()
    }

    /// The effect of exchanging the owners of two partitions, which must be different.
    pub(super) fn effect_of_exchange(&self, p: usize, q: usize) -> Effect {
        let (a, b) = (self.owners[p], self.owners[q]);
        let (at_a, at_b) = (self.present.location(a), self.present.location(b));
        Effect {
            repetitions: self.of_members.effect_of_exchange((p, a), (q, b)),
            crowding: self.of_locations.effect_of_exchange((p, at_a), (q, at_b)),
            moves: self.effect_on_moves(p, b) + self.effect_on_moves(q, a),
        }
    }

    /// The effect of giving a partition to another member.
    pub(super) fn effect_of_gift(&self, p: usize, to: Member) -> Effect {
        let from = self.owners[p];
        let (at_from, at_to) = (self.present.location(from), self.present.location(to));
        Effect {
            repetitions: self.of_members.effect_of_gift(p, from, to),
            crowding: self.of_locations.effect_of_gift(p, at_from, at_to),
            moves: self.effect_on_moves(p, to),
        }
    }

    /// Whether the arrangement stays balanced when a partition gets another owner.
    pub(super) fn may_give(&self, p: usize, to: Member) -> bool {
        let least = self.owners.len() / self.present.members();
        self.counts[usize::from(self.owners[p])] > least && self.counts[usize::from(to)] == least
    }

    pub(super) fn exchange(&mut self, p: usize, q: usize) {
        let (a, b) = (self.owners[p], self.owners[q]);
        self.give(p, b);
        self.give(q, a);
    }

    pub(super) fn give(&mut self, p: usize, to: Member) {
        let from = self.owners[p];
        self.of_members.give(p, from, to);
        self.of_locations.give(p, self.present.location(from), self.present.location(to));
        self.counts[usize::from(from)] -= 1;
        self.counts[usize::from(to)] += 1;
        self.owners[p] = to;
    }

    fn effect_on_moves(&self, p: usize, to: Member) -> isize {
        isize::from(self.present.owners()[p] != Some(to)) - isize::from(self.is_moved(p))
    }
}
