//! The identity of a node.

use crate::hex;
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
    /// The number of starts, from 1. An earlier copy of the directory has a smaller number.
    pub boot: u64,
}
