//! Requests between nodes and their responses.
//!
//! Version 1: the version (1 byte), the length of the message (4 bytes, little-endian), the message
//! as JSON, and the raw bytes that belong to it.

use super::types::{Group, SnapshotMeta, Vote};
use crate::state::{Command, RaftId, Refusal};
use bytes::Bytes;
use ombak_types::NodeId;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, VoteRequest, VoteResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 5;
/// So many bytes of a snapshot travel in one request.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Append {
        to: RaftId,
        rpc: AppendEntriesRequest<Group>,
    },
    Vote {
        to: RaftId,
        rpc: VoteRequest<RaftId>,
    },
    /// A part of a snapshot, whose bytes follow the message.
    Snapshot {
        to: RaftId,
        vote: Vote,
        meta: SnapshotMeta,
        offset: u64,
        total: u64,
    },
    /// A command for the leader. Others do not forward it.
    Propose {
        command: Command,
    },
    /// Asks how far a node is. It waits until it has applied `at_least`, but not longer than
    /// `wait_ms`.
    Progress {
        at_least: u64,
        wait_ms: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Response {
    Append(AppendEntriesResponse<RaftId>),
    Vote(VoteResponse<RaftId>),
    /// The receiver's vote. After the last part the snapshot is installed.
    Snapshot {
        vote: Vote,
    },
    Proposed {
        index: u64,
        refusal: Option<Refusal>,
    },
    NotLeader {
        leader: Option<NodeId>,
    },
    Progress {
        applied: u64,
    },
    /// The request was for another log, could not be read, or the node is stopping.
    Refused {
        why: String,
    },
}

/// Bytes that are no message of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a message of the metadata group: {0}")]
pub(crate) struct BadMessage(String);

pub(crate) fn encode(message: &impl Serialize, raw: &[u8]) -> Result<Bytes, BadMessage> {
    let json = serde_json::to_vec(message).map_err(|e| BadMessage(e.to_string()))?;
    let length = u32::try_from(json.len()).map_err(|e| BadMessage(e.to_string()))?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + json.len() + raw.len());
    bytes.push(VERSION);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&json);
    bytes.extend_from_slice(raw);
    Ok(Bytes::from(bytes))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &Bytes) -> Result<(T, Bytes), BadMessage> {
    let short = || BadMessage("it is too short".into());
    let header = bytes.get(..HEADER_BYTES).ok_or_else(short)?;
    if header[0] != VERSION {
        return Err(BadMessage(format!("it has version {}", header[0])));
    }
    let length = header[1..].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
    let end = HEADER_BYTES.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(short)?;
    let message = serde_json::from_slice(&bytes[HEADER_BYTES..end]).map_err(|e| BadMessage(e.to_string()))?;
    Ok((message, bytes.slice(end..)))
}
