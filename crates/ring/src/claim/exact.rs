//! A complete search over the owners of a small ring.
//!
//! It assigns the partitions one after the other. It gives a branch up when no completion of it can
//! be better than the best owners that are known: those with less crowding, then those with fewer
//! moves. Balance and spacing hold in every branch.
//!
//! The number of visited branches is bounded. Rings of 8 and 16 partitions with up to five members
//! stay far below the bound, so for them the result is an optimum; a test counts.

use super::arrangement::{Arrangement, Member};
use super::crowding::{distance, falling_weights};
use super::present::Present;

/// Larger rings are not searched completely.
const SIZE_MAX: usize = 16;
/// So many branches are visited at most.
pub(super) const VISITS_MAX: usize = 1 << 17;

/// Owners that are better than all the known ones, if there are such owners.
pub(super) fn better<'a>(present: &'a Present, spacing: usize, known: &[Arrangement<'a>]) -> Option<Arrangement<'a>> {
    if present.size() > SIZE_MAX {
        return None;
    }
    let best = known.iter().map(|arrangement| (arrangement.crowding(), arrangement.moves())).min()?;
    if best == (0, present.moves_min()) {
        return None;
    }
    let mut search = Search::new(present, spacing, best);
    search.visit(0, 0);
    search.found.map(|owners| Arrangement::new(present, owners, spacing))
}

/// (crowding, moves): which owners are better.
type Cost = (usize, usize);

pub(super) struct Search<'a> {
    present: &'a Present,
    spacing: usize,
    weights: Vec<u32>,
    /// The owners of the first partitions.
    owners: Vec<Member>,
    counts: Vec<usize>,
    /// How many members may still get one partition more than the others.
    extra: usize,
    /// `keepable[p][m]`: how many of the partitions from p on the member m could keep, if only
    /// spacing between them mattered.
    keepable: Vec<Vec<usize>>,
    best: Cost,
    pub(super) found: Option<Vec<Member>>,
    pub(super) visits: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(present: &'a Present, spacing: usize, best: Cost) -> Self {
        Self {
            present,
            spacing,
            weights: falling_weights(present.location_spacing()),
            owners: Vec::with_capacity(present.size()),
            counts: vec![0; present.members()],
            extra: present.size() % present.members(),
            keepable: keepable(present, spacing),
            best,
            found: None,
            visits: 0,
        }
    }

    /// Tries all owners of the partitions that have none yet. The others have cost this much.
    pub(super) fn visit(&mut self, crowding: usize, moves: usize) {
        self.visits += 1;
        let partition = self.owners.len();
        if self.visits > VISITS_MAX || (crowding, moves + self.moves_left_min()) >= self.best {
            return;
        }
        if partition == self.present.size() {
            self.best = (crowding, moves);
            self.found = Some(self.owners.clone());
            return;
        }
        let before = self.present.owners()[partition];
        let others = (0..self.present.members() as Member).filter(|member| Some(*member) != before);
        for member in before.into_iter().chain(others) {
            if self.may_own(partition, member) {
                let is_moved = usize::from(before != Some(member));
                let more = self.crowding_with(partition, member);
                let takes_extra = self.give(member);
                self.visit(crowding + more, moves + is_moved);
                self.take_back(member, takes_extra);
            }
        }
    }

    fn give(&mut self, member: Member) -> bool {
        let count = &mut self.counts[usize::from(member)];
        *count += 1;
        let takes_extra = *count > self.least();
        self.extra -= usize::from(takes_extra);
        self.owners.push(member);
        takes_extra
    }

    fn take_back(&mut self, member: Member, took_extra: bool) {
        self.owners.pop();
        self.counts[usize::from(member)] -= 1;
        self.extra += usize::from(took_extra);
    }

    /// The number of partitions that every member gets at least.
    fn least(&self) -> usize {
        self.present.size() / self.present.members()
    }

    /// Every member reaches its least share at the end, because nobody else can have the rest: the
    /// shares above it are counted.
    fn may_own(&self, partition: usize, member: Member) -> bool {
        let count = self.counts[usize::from(member)];
        let has_room = count < self.least() || (count == self.least() && self.extra > 0);
        has_room && !self.repeats(partition, member)
    }

    fn repeats(&self, partition: usize, member: Member) -> bool {
        let size = self.present.size();
        let is_near = |other: usize| distance(partition, other, size) < self.spacing;
        self.owners.iter().enumerate().any(|(other, owner)| *owner == member && is_near(other))
    }

    fn crowding_with(&self, partition: usize, member: Member) -> usize {
        if self.weights.is_empty() {
            return 0;
        }
        let (size, location) = (self.present.size(), self.present.location(member));
        let same = self.owners.iter().enumerate().filter(|(_, owner)| self.present.location(**owner) == location);
        same.map(|(other, _)| self.weights.get(distance(partition, other, size) - 1).map_or(0, |w| *w as usize)).sum()
    }

    /// A number of moves that no completion can avoid.
    fn moves_left_min(&self) -> usize {
        let partition = self.owners.len();
        let (mut kept, mut extra) = (0, self.extra);
        for (count, keepable) in self.counts.iter().zip(&self.keepable[partition]) {
            let room = self.least().saturating_sub(*count);
            kept += room.min(*keepable);
            if *keepable > room && *count <= self.least() && extra > 0 {
                extra -= 1;
                kept += 1;
            }
        }
        self.present.size() - partition - kept
    }
}

/// For each partition and member, how many of the partitions from there on the member could keep.
/// The partitions that it keeps are at least `spacing` apart; taking the first that fits each time
/// gives the most.
fn keepable(present: &Present, spacing: usize) -> Vec<Vec<usize>> {
    let kept = |from: usize, member: Member| {
        let (mut kept, mut free_from) = (0, from);
        for partition in from..present.size() {
            if present.owners()[partition] == Some(member) && partition >= free_from {
                kept += 1;
                free_from = partition + spacing;
            }
        }
        kept
    };
    let members = present.members() as Member;
    (0..=present.size()).map(|from| (0..members).map(|member| kept(from, member)).collect()).collect()
}
