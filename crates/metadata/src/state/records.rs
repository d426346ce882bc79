//! What the state consists of.

use super::raft_id::RaftId;
use super::text;
use bytes::Bytes;
use ombak_node_files::Milestone;
use ombak_ring::Location;
use ombak_types::{NodeId, PropMap};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Where a member is in its life, in Riak's words (docs/riak/semantics.md §16).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberStatus {
    /// It joined and owns nothing yet.
    Joining,
    /// It is a full member.
    Valid,
    /// It gives away what it owns.
    Leaving,
    /// It owns nothing any more and is about to go.
    Exiting,
    /// An operator said that it is down.
    Down,
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joining => "joining",
            Self::Valid => "valid",
            Self::Leaving => "leaving",
            Self::Exiting => "exiting",
            Self::Down => "down",
        })
    }
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The node's name, for people.
    pub name: String,
    /// Where other nodes reach it.
    pub peer_address: String,
    /// The identity of its metadata log.
    pub log: RaftId,
    /// How often it was started. It rises at each start.
    pub boot: u64,
    /// The last milestone of its directory that was recorded (docs/design/replication.md §8).
    /// Earlier versions recorded none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<Milestone>,
    /// Where it is in its life.
    pub status: MemberStatus,
    /// Where it is, if an operator said so. Earlier versions knew no locations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// A created bucket type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeRecord {
    /// Whether the type is in use; then it stays in use for ever.
    pub active: bool,
    /// Its differences from the defaults.
    pub overrides: Arc<PropMap>,
    /// The index of the command that changed it last.
    pub version: u64,
}

/// A bucket with properties of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketRecord {
    /// Its differences from its type.
    pub overrides: Arc<PropMap>,
    /// The index of the command that changed it last.
    pub version: u64,
}

/// Which history of the cluster this is (docs/design/replication.md §9). States of different
/// lineages are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lineage {
    /// A random number.
    pub id: u64,
    /// What a forced quorum was made from; `None` for the founding of a cluster.
    pub forced_from: Option<ForcedFrom>,
}

/// The origin of a lineage that an operator forced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForcedFrom {
    /// The lineage that was left.
    pub parent: u64,
    /// The index of its last command that the new lineage includes.
    pub fork_index: u64,
    /// The members that went on.
    pub survivors: Vec<NodeId>,
}

/// The name of a bucket type, in a command or a saved state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TypeName(#[serde(with = "text")] pub Bytes);

/// What is closed to writes, if not everything is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedPart {
    /// A bucket type.
    Type(TypeName),
    /// A bucket.
    Bucket(BucketName),
}

/// The name of a bucket, in a command or a saved state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketName {
    /// Its type.
    #[serde(with = "text")]
    pub r#type: Bytes,
    /// Its name within the type.
    #[serde(with = "text")]
    pub name: Bytes,
}
