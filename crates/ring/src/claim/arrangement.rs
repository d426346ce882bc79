//! An assignment of partitions to members, with what a local search asks about it.

/// A member: its place in the sorted list of members.
pub(super) type Member = u16;

/// The owners before the claim.
pub(super) struct Present {
    /// The owner of each partition; `None` when it is not one of the members.
    owners: Vec<Option<Member>>,
    members: usize,
}

impl Present {
    pub(super) fn new(owners: Vec<Option<Member>>, members: usize) -> Self {
        Self { owners, members }
    }

    pub(super) fn size(&self) -> usize {
        self.owners.len()
    }

    pub(super) fn members(&self) -> usize {
        self.members
    }

    pub(super) fn owners(&self) -> &[Option<Member>] {
        &self.owners
    }

    /// The number of partitions that each member owns.
    pub(super) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.members];
        for owner in self.owners.iter().flatten() {
            counts[usize::from(*owner)] += 1;
        }
        counts
    }

    /// The number of partitions that each member shall own, so that as few as possible move. The
    /// members that own the most get one more where the division leaves a rest.
    pub(super) fn targets(&self) -> Vec<usize> {
        let counts = self.counts();
        let mut order: Vec<usize> = (0..self.members).collect();
        order.sort_by_key(|member| std::cmp::Reverse(counts[*member]));
        let mut targets = vec![self.size() / self.members; self.members];
        for member in order.into_iter().take(self.size() % self.members) {
            targets[member] += 1;
        }
        targets
    }

    /// The fewest moves that lead to balance: what the members lack.
    pub(super) fn moves_min(&self) -> usize {
        self.targets().iter().zip(self.counts()).map(|(target, count)| target.saturating_sub(count)).sum()
    }
}

/// An assignment of partitions to members.
///
/// Two partitions of one member that are less than `spacing` apart form a *repetition*. A table
/// holds, for each partition and member, how many partitions of the member lie less than `spacing`
/// away. So the effect of an exchange is known in constant time.
pub(super) struct Arrangement<'a> {
    present: &'a Present,
    owners: Vec<Member>,
    counts: Vec<usize>,
    spacing: usize,
    near: Vec<u16>,
    repetitions: usize,
}

/// How an exchange changes an arrangement. The order says which exchange is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Effect {
    /// The change of the number of repetitions.
    pub(super) repetitions: isize,
    /// The change of the number of moves.
    pub(super) moves: isize,
}

/// The distance between two partitions around a ring.
pub(super) fn distance(a: usize, b: usize, size: usize) -> usize {
    let apart = a.abs_diff(b);
    apart.min(size - apart)
}

impl<'a> Arrangement<'a> {
    pub(super) fn new(present: &'a Present, owners: Vec<Member>, spacing: usize) -> Self {
        let mut counts = vec![0; present.members()];
        owners.iter().for_each(|owner| counts[usize::from(*owner)] += 1);
        let near = vec![0; owners.len() * present.members()];
        let mut new = Self { present, owners, counts, spacing, near, repetitions: 0 };
        for partition in 0..new.owners.len() {
            new.count_near(partition, new.owners[partition], 1);
        }
        new.repetitions = (0..new.owners.len()).map(|p| new.repetitions_at(p)).sum::<usize>() / 2;
        new
    }

    pub(super) fn owners(&self) -> &[Member] {
        &self.owners
    }

    pub(super) fn present(&self) -> &'a Present {
        self.present
    }

    /// The number of pairs of partitions that have one owner and are too near.
    pub(super) fn repetitions(&self) -> usize {
        self.repetitions
    }

    /// The partitions of the same owner that are too near to this one.
    pub(super) fn repetitions_at(&self, partition: usize) -> usize {
        self.near(partition, self.owners[partition])
    }

    /// The same as [`Self::repetitions`], for another spacing.
    pub(super) fn repetitions_within(&self, spacing: usize) -> usize {
        let size = self.owners.len();
        let repeat =
            |distance: usize| (0..size).filter(|p| self.owners[*p] == self.owners[(p + distance) % size]).count();
        (1..spacing).map(repeat).sum()
    }

    pub(super) fn is_moved(&self, partition: usize) -> bool {
        self.present.owners[partition] != Some(self.owners[partition])
    }

    /// The number of partitions with another owner than before.
    pub(super) fn moves(&self) -> usize {
        (0..self.owners.len()).filter(|p| self.is_moved(*p)).count()
    }

    /// The effect of exchanging the owners of two partitions, which must be different.
    pub(super) fn effect_of_exchange(&self, p: usize, q: usize) -> Effect {
        let (a, b) = (self.owners[p], self.owners[q]);
        // Each is counted as near to the owner that the other is going to lose.
        let mutual = if distance(p, q, self.owners.len()) < self.spacing { 2 } else { 0 };
        let before = self.near(p, a) + self.near(q, b) + mutual;
        let after = self.near(p, b) + self.near(q, a);
        Effect {
            repetitions: after as isize - before as isize,
            moves: self.effect_on_moves(p, b) + self.effect_on_moves(q, a),
        }
    }

    /// The effect of giving a partition to another member.
    pub(super) fn effect_of_gift(&self, p: usize, to: Member) -> Effect {
        Effect {
            repetitions: self.near(p, to) as isize - self.repetitions_at(p) as isize,
            moves: self.effect_on_moves(p, to),
        }
    }

    /// Whether the arrangement stays balanced when a partition gets another owner.
    pub(super) fn may_give(&self, p: usize, to: Member) -> bool {
        let least = self.owners.len() / self.present.members;
        self.counts[usize::from(self.owners[p])] > least && self.counts[usize::from(to)] == least
    }

    pub(super) fn exchange(&mut self, p: usize, q: usize) {
        let (a, b) = (self.owners[p], self.owners[q]);
        self.give(p, b);
        self.give(q, a);
    }

    pub(super) fn give(&mut self, p: usize, to: Member) {
        let from = self.owners[p];
        self.repetitions -= self.near(p, from);
        self.repetitions += self.near(p, to);
        self.count_near(p, from, -1);
        self.count_near(p, to, 1);
        self.counts[usize::from(from)] -= 1;
        self.counts[usize::from(to)] += 1;
        self.owners[p] = to;
    }

    fn effect_on_moves(&self, p: usize, to: Member) -> isize {
        isize::from(self.present.owners[p] != Some(to)) - isize::from(self.is_moved(p))
    }

    fn near(&self, partition: usize, member: Member) -> usize {
        usize::from(self.near[partition * self.present.members + usize::from(member)])
    }

    /// Adds a partition of a member to the table, or takes it out.
    fn count_near(&mut self, partition: usize, member: Member, change: i16) {
        let (size, members) = (self.owners.len(), self.present.members);
        for neighbour in neighbours(partition, self.spacing, size) {
            let count = &mut self.near[neighbour * members + usize::from(member)];
            *count = count.wrapping_add_signed(change);
        }
    }
}

/// The other partitions that are less than `spacing` away, each once.
pub(super) fn neighbours(partition: usize, spacing: usize, size: usize) -> impl Iterator<Item = usize> {
    let reach = spacing.saturating_sub(1).min(size / 2);
    (1..=reach).flat_map(move |distance| {
        let (above, below) = ((partition + distance) % size, (partition + size - distance) % size);
        std::iter::once(above).chain((above != below).then_some(below))
    })
}
