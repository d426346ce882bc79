//! The identity of a node.

use serde::{Deserialize, Serialize};

/// Who a node is. The data directory belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Version of this file.
    pub format: u32,
    /// Random, drawn at the first start.
    #[serde(with = "hex")]
    pub node_id: u64,
    /// Lineage of the ring, random, drawn at the first start.
    #[serde(with = "hex")]
    pub ring_lineage: u64,
    /// Partitions of the ring.
    pub ring_size: u32,
    /// Counts the starts, from 1. A copy of the directory that was taken earlier shows by a smaller number.
    pub boot: u64,
}

/// 64-bit numbers as hexadecimal text: JSON readers lose the low bits of large numbers.
pub(crate) mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(n: &u64, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format!("{n:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
        u64::from_str_radix(&String::deserialize(d)?, 16).map_err(D::Error::custom)
    }
}
