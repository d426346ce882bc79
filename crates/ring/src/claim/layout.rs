//! The layout of a new ring: balanced, and with the largest spacing that exists.
//!
//! The members stand in rows, one after the other, and every row has them in the same order. There
//! are size / members rows, rounded up. If the division leaves no rest, all members are in all
//! rows. Otherwise each of the last members in the order is missing in one row: the very last ones
//! are missing in the first row, those before them in the second row, and so on. The rows miss
//! equally many members, give or take one.
//!
//! Balance: a member is missing at most once.
//!
//! Spacing: let row j miss the set Xj. For a member in the rows j and j+1 the distance is the
//! number of members, less those of Xj behind the member, less those of Xj+1 before it. The sets
//! are successive parts of the order, so only one of the two counts. The distance is therefore at
//! least the length of the shorter row, which is size / rows, rounded down. A member that is
//! missing in a row is at least as far apart as there are members, because the sets are disjoint.

use super::arrangement::{Member, Present};
use std::cmp::Reverse;

/// At most so many partitions are looked at to find the labels of a layout.
const WORK_MAX: usize = 1 << 17;

/// The rows one after the other. A label is a place in the order of the members.
pub(super) struct Layout {
    labels: Vec<Member>,
    members: usize,
}

impl Layout {
    /// Lays out a ring for at most as many members as there are partitions.
    pub(super) fn new(size: usize, members: usize) -> Self {
        let rows = size.div_ceil(members);
        let missing = rows * members - size;
        let mut labels = Vec::with_capacity(size);
        let mut end = members;
        for row in 0..rows {
            let begin = end - (missing * (row + 1) / rows - missing * row / rows);
            labels.extend((0..members).filter(|label| !(begin..end).contains(label)).map(|label| label as Member));
            end = begin;
        }
        Self { labels, members }
    }

    /// Turns the layout and assigns its labels to members so that many partitions keep their
    /// owners. For each turn, the pair of label and member that meet most often is chosen first.
    pub(super) fn labelled_for(&self, present: &Present) -> Vec<Member> {
        let size = self.labels.len();
        let turns = if present.owners().iter().all(Option::is_none) { 1 } else { size.min(WORK_MAX / size) };
        let labelled = (0..turns).map(|turn| self.labelled_at(turn, present));
        let best = labelled.max_by_key(|(turn, kept, _)| (*kept, Reverse(*turn)));
        best.map(|(turn, _, members)| (0..size).map(|p| members[self.label(p, turn)]).collect()).unwrap_or_default()
    }

    /// (turn, partitions that keep their owners, member of each label)
    fn labelled_at(&self, turn: usize, present: &Present) -> (usize, usize, Vec<Member>) {
        let mut meetings = vec![0u16; self.members * self.members];
        for (partition, owner) in present.owners().iter().enumerate() {
            if let Some(owner) = owner {
                meetings[self.label(partition, turn) * self.members + usize::from(*owner)] += 1;
            }
        }
        let mut pairs: Vec<(Reverse<u16>, usize)> =
            meetings.into_iter().enumerate().filter(|(_, n)| *n > 0).map(|(pair, n)| (Reverse(n), pair)).collect();
        pairs.sort_unstable();
        let mut member_of: Vec<Option<Member>> = vec![None; self.members];
        let mut used = vec![false; self.members];
        let mut kept = 0;
        for (Reverse(n), pair) in pairs {
            let (label, member) = (pair / self.members, pair % self.members);
            if member_of[label].is_none() && !used[member] {
                member_of[label] = Some(member as Member);
                used[member] = true;
                kept += usize::from(n);
            }
        }
        let mut rest = (0..self.members).filter(|member| !used[*member]);
        let members = member_of.iter().map(|m| m.or_else(|| rest.next().map(|m| m as Member)).unwrap_or(0)).collect();
        (turn, kept, members)
    }

    fn label(&self, partition: usize, turn: usize) -> usize {
        usize::from(self.labels[(partition + turn) % self.labels.len()])
    }
}
