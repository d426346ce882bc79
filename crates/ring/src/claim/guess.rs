//! The starting point of the search: balanced owners with the fewest moves.

use super::arrangement::Member;
use super::crowding::{distance, falling_weights, neighbours};
use super::present::Present;
use std::cmp::Reverse;

/// Gives each member that owns too little what it lacks, from partitions without an owner and from
/// members that own too much. Of the partitions that it may take, a member takes one that is far
/// from its others, if there is one.
pub(super) fn first_guess(present: &Present, spacing: usize) -> Vec<Member> {
    let (counts, targets) = (present.counts(), present.targets());
    let lacks = |member: &usize| targets[*member].saturating_sub(counts[*member]);
    let mut takers: Vec<usize> = (0..present.members()).filter(|member| lacks(member) > 0).collect();
    takers.sort_by_key(|member| Reverse(lacks(member)));
    let surplus = counts.iter().zip(&targets).map(|(count, target)| count.saturating_sub(*target)).collect();
    let mut guess = Guess::new(present, spacing, surplus);
    for taker in takers {
        // A member that owned nothing gets partitions at regular distances.
        let step = if counts[taker] == 0 { Some(present.size() / targets[taker]) } else { None };
        guess.fill(taker as Member, lacks(&taker), step);
    }
    // Every partition has an owner: the members lack as many partitions as can be taken.
    guess.owners.into_iter().map(Option::unwrap_or_default).collect()
}

/// Repetitions of the taker, crowding at its location, whether the partition has an owner,
/// repetitions of that owner, and the distance from the wished partition.
type Cost = (usize, usize, bool, Reverse<usize>, usize);

struct Guess<'a> {
    present: &'a Present,
    spacing: usize,
    location_weights: Vec<u32>,
    owners: Vec<Option<Member>>,
    /// The number of partitions that each member is to give away.
    surplus: Vec<usize>,
    /// For each partition, how many others of its owner are too near.
    repetitions: Vec<usize>,
}

impl<'a> Guess<'a> {
    fn new(present: &'a Present, spacing: usize, surplus: Vec<usize>) -> Self {
        let owners = present.owners().to_vec();
        let location_weights = falling_weights(present.location_spacing());
        let mut guess = Self { present, spacing, location_weights, owners, surplus, repetitions: Vec::new() };
        guess.repetitions = (0..guess.owners.len()).map(|p| guess.near(p, guess.owners[p])).collect();
        guess
    }

    /// Gives a member so many partitions: `step` partitions apart, or at any distance.
    fn fill(&mut self, taker: Member, lacking: usize, step: Option<usize>) {
        // For each partition, how many partitions of the taker are too near.
        let mut near: Vec<(usize, usize)> =
            (0..self.owners.len()).map(|p| (self.near(p, Some(taker)), self.crowding(p, taker))).collect();
        let mut first = None;
        for turn in 0..lacking {
            let wish = first.zip(step).map(|(first, step)| first + turn * step);
            let Some(partition) = self.choose(&near, wish) else { return };
            first = first.or(Some(partition));
            self.take(partition, taker);
            for neighbour in neighbours(partition, self.spacing, self.owners.len()) {
                near[neighbour].0 += 1;
            }
            for neighbour in neighbours(partition, self.present.location_spacing(), self.owners.len()) {
                near[neighbour].1 = self.crowding(neighbour, taker);
            }
        }
    }

    /// The weights between a partition and the others at the location of a member.
    fn crowding(&self, partition: usize, taker: Member) -> usize {
        let (size, at) = (self.owners.len(), self.present.location(taker));
        let is_there = |p: &usize| self.owners[*p].is_some_and(|owner| self.present.location(owner) == at);
        let weight = |p: usize| self.location_weights.get(distance(partition, p, size) - 1).map_or(0, |w| *w as usize);
        neighbours(partition, self.present.location_spacing(), size).filter(is_there).map(weight).sum()
    }

    /// The best partition that a member can take: with the fewest repetitions, without an owner,
    /// in the way of its owner, near to the wished one.
    fn choose(&self, near: &[(usize, usize)], wish: Option<usize>) -> Option<usize> {
        let size = self.owners.len();
        let wish = wish.map(|wish| wish % size);
        let mut best: Option<(Cost, usize)> = None;
        for (p, owner) in self.owners.iter().enumerate() {
            if owner.is_some_and(|owner| self.surplus[usize::from(owner)] == 0) {
                continue;
            }
            // Most partitions lose here, so that the other numbers are not needed.
            if best.is_some_and(|((repetitions, crowding, ..), _)| near[p] > (repetitions, crowding)) {
                continue;
            }
            let from_wish = wish.map_or(0, |wish| distance(p, wish, size));
            let (repetitions, crowding) = near[p];
            let cost = (repetitions, crowding, owner.is_some(), Reverse(self.repetitions[p]), from_wish);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, p));
            }
        }
        best.map(|(_, p)| p)
    }

    fn take(&mut self, partition: usize, taker: Member) {
        let before = self.owners[partition].replace(taker);
        if let Some(owner) = before {
            self.surplus[usize::from(owner)] -= 1;
        }
        self.repetitions[partition] = self.near(partition, Some(taker));
        for neighbour in neighbours(partition, self.spacing, self.owners.len()) {
            match self.owners[neighbour] {
                None => {}
                owner if owner == before => self.repetitions[neighbour] -= 1,
                owner if owner == Some(taker) => self.repetitions[neighbour] += 1,
                _ => {}
            }
        }
    }

    fn near(&self, partition: usize, owner: Option<Member>) -> usize {
        if owner.is_none() {
            return 0;
        }
        neighbours(partition, self.spacing, self.owners.len()).filter(|p| self.owners[*p] == owner).count()
    }
}
