//! The identity of a node.

use crate::hex;
use crate::milestones::Milestones;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};

/// The identity of a node, to which the data directory belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Version of the file's format.
    pub format: u32,
    /// The node, a random number, drawn at the first start. It is on disk before the node uses it.
    pub node_id: NodeId,
    /// The lineage of the ring: a random number, drawn at the first start.
    #[serde(with = "hex")]
    pub ring_lineage: u64,
    /// Number of partitions of the ring.
    pub ring_size: u32,
    /// The number of starts, from 1. An earlier copy of the directory has a smaller number, until
    /// it was started often enough.
    pub boot: u64,
    /// What tells this directory from older copies of it. Formats 1 and 2 had none.
    #[serde(default)]
    pub milestones: Milestones,
    /// Which metadata belongs to this directory. Formats 1 and 2 did not say so.
    #[serde(default)]
    pub metadata: OwnMetadata,
    /// Whether this directory was found to be older than what the members of its cluster know. It
    /// never takes part again.
    #[serde(default)]
    pub is_restored: bool,
    /// Whether the node was removed from its cluster. It never takes part again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub was_removed: bool,
}

const fn is_false(is: &bool) -> bool {
    !*is
}

/// Which metadata belongs to a node's directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnMetadata {
    /// None, as far as this file knows.
    #[default]
    None,
    /// That of a cluster of this node alone.
    Alone,
    /// That of a cluster with other members.
    Member,
}
