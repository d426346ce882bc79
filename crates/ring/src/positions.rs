//! The positions of a key: who answers for each of its n replicas (design: replication rules §14).

use crate::ring::{NodeIndex, Ring};
use smallvec::SmallVec;

/// One of the n replicas of a class (home partition, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition number under which the API shows the position: where the walk found its owner, and home + j for
    /// the j-th position when its owner has an earlier one too. Not the partition that stores the key: that is the home.
    pub partition: u32,
    /// Whose position it is, by the ring alone. Only an answer from there is a primary's.
    pub owner: NodeIndex,
    /// Who answers for it now: the owner, or a stand-in while the owner is down.
    pub node: NodeIndex,
}

/// The positions of a key, in order. Up to eight need no allocation.
pub type Positions = SmallVec<[Position; 8]>;

impl Position {
    /// Whether the owner itself answers.
    pub fn is_primary(&self) -> bool {
        self.node == self.owner
    }
}

impl Ring {
    /// The `n` positions of a home partition, all answered for by their owners, whether these are up or not. As in
    /// Riak, no key has more positions than the ring has partitions.
    pub fn owners_of(&self, home: u32, n: u32) -> Positions {
        let n = n.min(self.size().get());
        let mut list = Positions::new();
        let mut walk = Walk::from(self, home);
        while list.len() < n as usize
            && let Some((partition, owner)) = walk.next_node()
        {
            list.push(Position { partition, owner, node: owner });
        }
        let distinct = list.len();
        for j in distinct..n as usize {
            let Position { owner, node, .. } = list[j % distinct];
            list.push(Position { partition: self.size().after(home, j as u32), owner, node });
        }
        list
    }

    /// The `n` positions of a home partition with stand-ins for the nodes that are not up; none at all when nobody is.
    ///
    /// A down node's positions go, in order, to the next up nodes of the walk that hold none yet. When these run out,
    /// the rest goes round the up nodes of the list, and if all of the list are down, round the stand-ins.
    pub fn positions(&self, home: u32, n: u32, is_up: impl Fn(NodeIndex) -> bool) -> Positions {
        let mut positions = self.owners_of(home, n);
        if positions.iter().all(|p| is_up(p.owner)) {
            return positions;
        }
        let mut up: SmallVec<[NodeIndex; 8]> = SmallVec::new();
        for position in positions.iter().filter(|p| is_up(p.owner)) {
            if !up.contains(&position.owner) {
                up.push(position.owner);
            }
        }
        let nobody_of_the_list = up.is_empty();
        let mut walk = Walk::after(self, home, &positions);
        let mut turns = 0usize;
        for position in positions.iter_mut().filter(|p| !is_up(p.owner)) {
            if let Some((_, unused)) = walk.by_ref().find(|(_, node)| is_up(*node)) {
                position.node = unused;
                if nobody_of_the_list {
                    up.push(unused);
                }
            } else if !up.is_empty() {
                position.node = up[turns % up.len()];
                turns += 1;
            } else {
                return Positions::new();
            }
        }
        positions
    }

    /// The positions whose owners are up: what `sloppy_quorum = false` may use. Can be fewer than `n`.
    pub fn primaries(&self, home: u32, n: u32, is_up: impl Fn(NodeIndex) -> bool) -> Positions {
        let mut positions = self.owners_of(home, n);
        positions.retain(|p| is_up(p.owner));
        positions
    }

    /// [`Self::positions`] in the order in which Riak shows a preference list: primaries first, then fallbacks
    /// (spec/semantics.md §1).
    pub fn preflist(&self, home: u32, n: u32, is_up: impl Fn(NodeIndex) -> bool) -> Positions {
        let mut rows = self.positions(home, n, is_up);
        rows.sort_by_key(|p| !p.is_primary());
        rows
    }
}

/// Goes once round the ring from a partition and meets every owner once.
struct Walk<'a> {
    ring: &'a Ring,
    home: u32,
    steps: u32,
    met: SmallVec<[NodeIndex; 8]>,
}

impl<'a> Walk<'a> {
    fn from(ring: &'a Ring, home: u32) -> Self {
        Self { ring, home: home % ring.size().get(), steps: 0, met: SmallVec::new() }
    }

    /// Goes on where the walk that found `list` stopped.
    fn after(ring: &'a Ring, home: u32, list: &[Position]) -> Self {
        let mut walk = Self::from(ring, home);
        for position in list {
            if !walk.met.contains(&position.owner) {
                walk.met.push(position.owner);
            }
        }
        walk
    }

    fn next_node(&mut self) -> Option<(u32, NodeIndex)> {
        // On a ring of one node the walk would go round in vain for every key.
        while self.steps < self.ring.size().get() && self.met.len() < self.ring.node_count() {
            let partition = self.ring.size().after(self.home, self.steps);
            self.steps += 1;
            let owner = self.ring.owner(partition);
            if !self.met.contains(&owner) {
                self.met.push(owner);
                return Some((partition, owner));
            }
        }
        None
    }
}

impl Iterator for Walk<'_> {
    type Item = (u32, NodeIndex);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_node()
    }
}
