//! The ring: the assignment of partitions to nodes.

use crate::key_hash::KeyHash;
use crate::partition::{BadRingSize, RingSize};
use ombak_types::NodeId;
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

/// The number of a node in one ring. It has no meaning for another ring; [`NodeId`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIndex(pub(crate) u16);

impl NodeIndex {
    /// The place of the node in [`Ring::nodes`], from 0.
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

/// Every partition and its owner. A ring is immutable; a new ring replaces it. A ring knows the
/// identities of nodes, not their names and addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Ring {
    size: RingSize,
    version: RingVersion,
    nodes: Vec<NodeId>,
    owners: Vec<NodeIndex>,
}

/// Why a ring is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRing {
    /// The number of owners is not a valid ring size.
    #[error(transparent)]
    Size(#[from] BadRingSize),
    /// A saved ring has an owner that is not in its list of nodes.
    #[error("partition {0} belongs to a node that the ring does not list")]
    UnknownOwner(u32),
    /// A saved ring lists a node twice.
    #[error("node {0} is listed twice")]
    RepeatedNode(NodeId),
    /// A later version of the program saved the ring.
    #[error("the ring was saved in format {0}; this version reads format {FORMAT}")]
    Format(u32),
}

impl Ring {
    /// Creates a ring of one node.
    pub fn of_one_node(node: NodeId, size: RingSize, version: RingVersion) -> Self {
        Self { size, version, nodes: vec![node], owners: vec![NodeIndex(0); size.get() as usize] }
    }

    /// Creates a ring from the owner of each partition, in the order of the partitions.
    pub fn from_owners(owners: &[NodeId], version: RingVersion) -> Result<Self, BadRing> {
        let size = RingSize::new(u32::try_from(owners.len()).unwrap_or(u32::MAX))?;
        let mut ring = Self { size, version, nodes: Vec::new(), owners: Vec::with_capacity(owners.len()) };
        for &owner in owners {
            let node = ring.node(owner).unwrap_or_else(|| {
                ring.nodes.push(owner);
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

    /// The same owners under another version.
    pub fn with_version(self, version: RingVersion) -> Self {
        Self { version, ..self }
    }

    /// The nodes that own partitions, in the order of their first partition.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIndex, NodeId)> {
        (0u16..).zip(&self.nodes).map(|(i, id)| (NodeIndex(i), *id))
    }

    /// The number of nodes that own partitions.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The index of a node, if it owns a partition.
    pub fn node(&self, id: NodeId) -> Option<NodeIndex> {
        self.nodes().find(|(_, known)| *known == id).map(|(node, _)| node)
    }

    /// The identity of a node of this ring.
    ///
    /// # Panics
    /// When `node` is of another ring that has more nodes.
    pub fn id(&self, node: NodeIndex) -> NodeId {
        self.nodes[node.get()]
    }

    /// The owner of a partition. Numbers beyond the ring's size wrap around.
    pub fn owner(&self, partition: u32) -> NodeIndex {
        self.owners[(partition % self.size.get()) as usize]
    }

    /// The owner of each partition, in the order of the partitions: what [`Self::from_owners`]
    /// takes.
    pub fn owners(&self) -> impl ExactSizeIterator<Item = NodeId> {
        self.owners.iter().map(|owner| self.id(*owner))
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

/// The version of [`Saved`] that is written. Version 1 had names in place of identities and was
/// never stored.
const FORMAT: u32 = 2;

/// The stored and transmitted form of a ring.
#[derive(Serialize, Deserialize)]
struct Saved {
    format: u32,
    version: RingVersion,
    nodes: Vec<NodeId>,
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
            return Err(BadRing::RepeatedNode(*twin));
        }
        let mut owners = Vec::with_capacity(saved.owners.len());
        for (partition, &owner) in (0u32..).zip(&saved.owners) {
            owners.push(*saved.nodes.get(usize::from(owner)).ok_or(BadRing::UnknownOwner(partition))?);
        }
        Self::from_owners(&owners, saved.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: RingVersion = RingVersion::first(0xabc);
    const A: NodeId = NodeId::new(0xa);
    const B: NodeId = NodeId::new(0xb);
    const C: NodeId = NodeId::new(0xc);

    #[test]
    fn owners_are_numbered_in_the_order_of_their_first_partition() {
        let owners = [B, A, B, C, B, A, B, C];
        let ring = Ring::from_owners(&owners, V1).unwrap();
        assert_eq!(ring.nodes().map(|(_, id)| id).collect::<Vec<_>>(), [B, A, C]);
        assert_eq!(ring.owners().collect::<Vec<_>>(), owners);
        assert_eq!(ring.id(ring.owner(5)), A);
        assert_eq!(ring.owner(8), ring.owner(0), "numbers go round");
        let b = ring.node(B).unwrap();
        assert_eq!((b.get(), ring.partitions_owned(b), ring.node_count()), (0, 4, 3));
        assert_eq!(ring.node(NodeId::new(0xd)), None);
    }

    #[test]
    fn what_is_no_ring_is_refused() {
        assert!(matches!(Ring::from_owners(&[A; 12], V1), Err(BadRing::Size(_))));
        assert!(matches!(Ring::from_owners(&[], V1), Err(BadRing::Size(_))));
    }

    #[test]
    fn a_ring_survives_being_saved() {
        let one = Ring::of_one_node(A, RingSize::DEFAULT, V1);
        let three = Ring::from_owners(&[A, B, C, A, B, C, A, B], V1.next()).unwrap();
        for ring in [one, three] {
            let text = serde_json::to_string(&ring).unwrap();
            assert_eq!(serde_json::from_str::<Ring>(&text).unwrap(), ring);
        }
    }

    #[test]
    fn a_damaged_or_newer_saved_ring_is_named() {
        let good = concat!(
            r#"{"format":2,"version":{"lineage":1,"number":1},"nodes":["000000000000000a","000000000000000b"],"#,
            r#""owners":[0,1,0,1,0,1,0,1]}"#
        );
        let ring = serde_json::from_str::<Ring>(good).unwrap();
        assert_eq!(ring, Ring::from_owners(&[A, B, A, B, A, B, A, B], RingVersion::first(1)).unwrap());
        assert_eq!(serde_json::to_string(&ring).unwrap(), good);
        for (from, to, why) in [
            ("\"format\":2", "\"format\":3", "saved in format 3"),
            ("000b", "000a", "node 000000000000000a is listed twice"),
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
