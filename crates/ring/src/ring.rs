//! The ring: the assignment of partitions to nodes.

use crate::key_hash::KeyHash;
use crate::partition::{BadRingSize, RingSize};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of a ring. A change of the ring increments the number. When an operator breaks a tie
/// by force, a new lineage starts (docs/design/replication.md §9). Rings of different lineages have
/// no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RingVersion {
    /// A random number, drawn when a cluster is founded or forced.
    pub lineage: u64,
    /// The number of the ring in its lineage, from 1.
    pub number: u64,
}

impl RingVersion {
    /// The first ring of a lineage.
    pub const fn first(lineage: u64) -> Self {
        Self { lineage, number: 1 }
    }

    /// The version of the next ring.
    pub const fn next(self) -> Self {
        Self { lineage: self.lineage, number: self.number + 1 }
    }
}

impl PartialOrd for RingVersion {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.lineage == other.lineage).then(|| self.number.cmp(&other.number))
    }
}

impl fmt::Display for RingVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.lineage, self.number)
    }
}

/// The number of a node in one ring. It has no meaning for another ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIndex(pub(crate) u16);

/// Every partition and its owner. A ring is immutable; a new ring replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Ring {
    size: RingSize,
    version: RingVersion,
    nodes: Vec<String>,
    owners: Vec<NodeIndex>,
}

/// Why a ring is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRing {
    /// The number of owners is not a valid ring size.
    #[error(transparent)]
    Size(#[from] BadRingSize),
    /// A node without a name owns a partition.
    #[error("partition {0} belongs to a node without a name")]
    NamelessOwner(u32),
    /// A saved ring has an owner that is not in its list of nodes.
    #[error("partition {0} belongs to a node that the ring does not list")]
    UnknownOwner(u32),
    /// A saved ring lists a node twice.
    #[error("node {0} is listed twice")]
    RepeatedNode(String),
    /// A later version of the program saved the ring.
    #[error("the ring was saved in format {0}; this version reads format {FORMAT}")]
    Format(u32),
}

impl Ring {
    /// Creates a ring of one node.
    pub fn of_one_node(node: &str, size: RingSize, version: RingVersion) -> Self {
        Self { size, version, nodes: vec![node.to_owned()], owners: vec![NodeIndex(0); size.get() as usize] }
    }

    /// Creates a ring from the owner of each partition, in the order of the partitions.
    pub fn from_owners<N: AsRef<str>>(owners: &[N], version: RingVersion) -> Result<Self, BadRing> {
        let size = RingSize::new(u32::try_from(owners.len()).unwrap_or(u32::MAX))?;
        let mut ring = Self { size, version, nodes: Vec::new(), owners: Vec::with_capacity(owners.len()) };
        for (partition, name) in (0u32..).zip(owners.iter().map(AsRef::as_ref)) {
            if name.is_empty() {
                return Err(BadRing::NamelessOwner(partition));
            }
            let node = ring.node(name).unwrap_or_else(|| {
                ring.nodes.push(name.to_owned());
                // There are at most as many nodes as partitions, so at most RingSize::MAX.
                NodeIndex((ring.nodes.len() - 1) as u16)
            });
            ring.owners.push(node);
        }
        Ok(ring)
    }

    /// The number of partitions.
    pub const fn size(&self) -> RingSize {
        self.size
    }

    /// The version of the ring.
    pub const fn version(&self) -> RingVersion {
        self.version
    }

    /// The nodes that own partitions, in the order of their first partition.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIndex, &str)> {
        (0u16..).zip(&self.nodes).map(|(i, name)| (NodeIndex(i), name.as_str()))
    }

    /// The number of nodes that own partitions.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The index of a node, if it owns a partition.
    pub fn node(&self, name: &str) -> Option<NodeIndex> {
        (0u16..).zip(&self.nodes).find(|(_, known)| **known == *name).map(|(i, _)| NodeIndex(i))
    }

    /// The name of a node of this ring.
    ///
    /// # Panics
    /// When `node` is of another ring.
    pub fn name(&self, node: NodeIndex) -> &str {
        &self.nodes[usize::from(node.0)]
    }

    /// The owner of a partition. Numbers beyond the ring's size wrap around.
    pub fn owner(&self, partition: u32) -> NodeIndex {
        self.owners[(partition % self.size.get()) as usize]
    }

    /// The number of partitions that a node owns.
    pub fn partitions_owned(&self, node: NodeIndex) -> usize {
        self.owners.iter().filter(|&&owner| owner == node).count()
    }

    /// The home partition of a hash.
    pub fn home_of(&self, hash: &KeyHash) -> u32 {
        self.size.home_of(hash)
    }
}

/// The version of [`Saved`] that is written.
const FORMAT: u32 = 1;

/// The stored and transmitted form of a ring.
#[derive(Serialize, Deserialize)]
struct Saved {
    format: u32,
    version: RingVersion,
    nodes: Vec<String>,
    /// For each partition, the index of its owner in `nodes`.
    owners: Vec<u16>,
}

impl From<Ring> for Saved {
    fn from(ring: Ring) -> Self {
        let owners = ring.owners.iter().map(|n| n.0).collect();
        Self { format: FORMAT, version: ring.version, nodes: ring.nodes, owners }
    }
}

impl TryFrom<Saved> for Ring {
    type Error = BadRing;

    fn try_from(saved: Saved) -> Result<Self, BadRing> {
        if saved.format != FORMAT {
            return Err(BadRing::Format(saved.format));
        }
        if let Some((_, twin)) = saved.nodes.iter().enumerate().find(|(i, n)| saved.nodes[..*i].contains(n)) {
            return Err(BadRing::RepeatedNode(twin.clone()));
        }
        let mut owners = Vec::with_capacity(saved.owners.len());
        for (partition, &owner) in (0u32..).zip(&saved.owners) {
            let name = saved.nodes.get(usize::from(owner)).ok_or(BadRing::UnknownOwner(partition))?;
            owners.push(name.as_str());
        }
        Self::from_owners(&owners, saved.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: RingVersion = RingVersion::first(0xabc);

    #[test]
    fn owners_are_numbered_in_the_order_of_their_first_partition() {
        let ring = Ring::from_owners(&["b", "a", "b", "c", "b", "a", "b", "c"], V1).unwrap();
        assert_eq!(ring.nodes().map(|(_, name)| name).collect::<Vec<_>>(), ["b", "a", "c"]);
        assert_eq!(ring.name(ring.owner(5)), "a");
        assert_eq!(ring.owner(8), ring.owner(0), "numbers go round");
        let b = ring.node("b").unwrap();
        assert_eq!((ring.partitions_owned(b), ring.node_count(), ring.node("d")), (4, 3, None));
    }

    #[test]
    fn what_is_no_ring_is_refused() {
        assert!(matches!(Ring::from_owners(&["a"; 12], V1), Err(BadRing::Size(_))));
        assert!(matches!(Ring::from_owners::<&str>(&[], V1), Err(BadRing::Size(_))));
        let nameless = ["a", "a", "", "a", "a", "a", "a", "a"];
        assert_eq!(Ring::from_owners(&nameless, V1), Err(BadRing::NamelessOwner(2)));
    }

    #[test]
    fn a_ring_survives_being_saved() {
        let one = Ring::of_one_node("riak@127.0.0.1", RingSize::DEFAULT, V1);
        let three = Ring::from_owners(&["a", "b", "c", "a", "b", "c", "a", "b"], V1.next()).unwrap();
        for ring in [one, three] {
            let text = serde_json::to_string(&ring).unwrap();
            assert_eq!(serde_json::from_str::<Ring>(&text).unwrap(), ring);
        }
    }

    #[test]
    fn a_damaged_or_newer_saved_ring_is_named() {
        let good = r#"{"format":1,"version":{"lineage":1,"number":1},"nodes":["a","b"],"owners":[0,1,0,1,0,1,0,1]}"#;
        assert!(serde_json::from_str::<Ring>(good).is_ok());
        for (from, to, why) in [
            ("\"format\":1", "\"format\":2", "saved in format 2"),
            ("\"b\"", "\"a\"", "node a is listed twice"),
            ("[0,1,0,1,0,1,0,1]", "[0,1,0,7,0,1,0,1]", "partition 3 belongs to a node that the ring does not list"),
            ("[0,1,0,1,0,1,0,1]", "[0,1]", "power of two"),
        ] {
            let error = serde_json::from_str::<Ring>(&good.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn only_versions_of_one_lineage_have_an_order() {
        assert!(V1 < V1.next());
        assert_eq!(V1.partial_cmp(&RingVersion::first(1)), None);
        assert_eq!(V1.next().to_string(), "0000000000000abc.2");
    }
}
