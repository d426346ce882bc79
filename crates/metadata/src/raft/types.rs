//! The types that openraft works with.

use super::async_runtime::OmbakRuntime;
use crate::state::{Command, RaftId, Refusal};
use bytes::Bytes;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The node to which a Raft identity belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RaftNode {
    /// None only in openraft's own tests.
    pub node: Option<NodeId>,
}

/// What a command did. `None` for entries that are no commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Applied(pub Option<Refusal>);

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

openraft::declare_raft_types!(
    /// The types of the metadata group.
    pub(crate) Group:
        D = Command,
        R = Applied,
        NodeId = RaftId,
        Node = RaftNode,
        SnapshotData = Bytes,
        AsyncRuntime = OmbakRuntime,
);

pub(crate) type Entry = openraft::Entry<Group>;
pub(crate) type EntryId = openraft::LogId<RaftId>;
pub(crate) type StoredMembership = openraft::StoredMembership<RaftId, RaftNode>;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<RaftId, RaftNode>;
pub(crate) type StorageError = openraft::StorageError<RaftId>;
pub(crate) type Vote = openraft::Vote<RaftId>;
