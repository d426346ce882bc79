//! How often the same group occurs too near to itself around a ring.

/// A group: a member, or a location.
pub(super) type Group = u16;

/// How often the same group occurs too near to itself around a ring.
///
/// Two partitions of one group have a *weight* that depends on their distance, and none if they are
/// far enough apart. A table holds for each partition and group the weights towards the partitions
/// of the group. So the effect of an exchange is known in constant time.
pub(super) struct Crowding {
    size: usize,
    groups: usize,
    /// The weight of each distance, from 1. Larger distances have none.
    weights: Vec<u32>,
    near: Vec<u32>,
    total: usize,
}

/// The distance between two partitions around a ring.
pub(super) fn distance(a: usize, b: usize, size: usize) -> usize {
    let apart = a.abs_diff(b);
    apart.min(size - apart)
}

/// The other partitions that are less than `spacing` away, each once.
pub(super) fn neighbours(partition: usize, spacing: usize, size: usize) -> impl Iterator<Item = usize> {
    let reach = spacing.saturating_sub(1).min(size / 2);
    (1..=reach).flat_map(move |distance| {
        let (above, below) = ((partition + distance) % size, (partition + size - distance) % size);
        std::iter::once(above).chain((above != below).then_some(below))
    })
}

/// The weights of members: each pair that is less than `spacing` apart counts once.
pub(super) fn equal_weights(spacing: usize) -> Vec<u32> {
    vec![1; spacing.saturating_sub(1)]
}

/// The weights of locations. A smaller distance weighs much more, because it spoils more windows,
/// and those of smaller n_val.
pub(super) fn falling_weights(spacing: usize) -> Vec<u32> {
    (1..spacing).map(|distance| ((spacing - distance) as u32).saturating_pow(3)).collect()
}

impl Crowding {
    pub(super) fn new(of: impl ExactSizeIterator<Item = Group>, groups: usize, mut weights: Vec<u32>) -> Self {
        let size = of.len();
        weights.truncate(size / 2);
        // Without weights nothing is ever near, so there is no need of a table.
        let cells = if weights.is_empty() { 0 } else { size * groups };
        let mut new = Self { size, groups, weights, near: vec![0; cells], total: 0 };
        for (partition, group) in of.enumerate() {
            new.add(partition, group);
        }
        new
    }

    /// The sum of the weights of all pairs.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// The sum of the weights between a partition and the others of a group.
    pub(super) fn near(&self, partition: usize, group: Group) -> usize {
        self.near.get(partition * self.groups + usize::from(group)).map_or(0, |near| *near as usize)
    }

    /// How the total changes when a partition goes from one group to another.
    pub(super) fn effect_of_gift(&self, p: usize, from: Group, to: Group) -> isize {
        if from == to {
            return 0;
        }
        self.near(p, to) as isize - self.near(p, from) as isize
    }

    /// How the total changes when two partitions exchange their groups.
    pub(super) fn effect_of_exchange(&self, (p, a): (usize, Group), (q, b): (usize, Group)) -> isize {
        if a == b {
            return 0;
        }
        // Each is counted as near to the group that the other is going to lose.
        let mutual = 2 * self.weight(distance(p, q, self.size));
        (self.near(p, b) + self.near(q, a)) as isize - (self.near(p, a) + self.near(q, b) + mutual) as isize
    }

    pub(super) fn give(&mut self, partition: usize, from: Group, to: Group) {
        if from != to {
            self.count(partition, from, u32::wrapping_sub);
            self.total -= self.near(partition, from);
            self.add(partition, to);
        }
    }

    fn add(&mut self, partition: usize, group: Group) {
        self.total += self.near(partition, group);
        self.count(partition, group, u32::wrapping_add);
    }

    fn weight(&self, distance: usize) -> usize {
        self.weights.get(distance.wrapping_sub(1)).map_or(0, |weight| *weight as usize)
    }

    /// Adds a partition of a group to the table, or takes it out.
    fn count(&mut self, partition: usize, group: Group, change: impl Fn(u32, u32) -> u32) {
        for neighbour in neighbours(partition, self.weights.len() + 1, self.size) {
            let weight = self.weight(distance(partition, neighbour, self.size)) as u32;
            let near = &mut self.near[neighbour * self.groups + usize::from(group)];
            *near = change(*near, weight);
        }
    }
}
