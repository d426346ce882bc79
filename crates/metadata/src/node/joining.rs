//! How a node becomes part of another group, through any member of it.
//!
//! A node that joins knows no other member than the one that it asks. If that one is not the
//! leader, it lets the leader decide what such a node proposes about itself.

use super::error::ProposeError;
use super::metadata_node::MetadataNode;
use crate::raft::wire::{self, Request, Response};
use crate::state::{Command, NewMember};
use bytes::Bytes;
use ombak_runtime::within;
use ombak_types::NodeId;
use std::time::Instant;

impl MetadataNode {
    /// Asks a member of another cluster to add this node, which has no metadata yet. The leader
    /// there sends the metadata afterwards.
    pub async fn join(&self, seed: NodeId, deadline: Instant) -> Result<u64, ProposeError> {
        self.join_as(self.describe(), seed, deadline).await
    }

    /// As [`Self::join`], for a node that is to take the place of a member with its name. It has a
    /// second name until that member is removed.
    pub async fn join_beside_twin(&self, seed: NodeId, deadline: Instant) -> Result<u64, ProposeError> {
        self.join_as(self.describe_beside_twin(), seed, deadline).await
    }

    async fn join_as(&self, me: NewMember, seed: NodeId, deadline: Instant) -> Result<u64, ProposeError> {
        let index = self.propose_anywhere(Command::AddMember(me), Some(seed), deadline).await?;
        match within(&*self.runtime, Some(deadline), self.group.wait_applied(index)).await {
            Ok(true) => Ok(index),
            Ok(false) => Err(ProposeError::Stopped),
            Err(_) => Err(ProposeError::Unknown),
        }
    }

    /// Lets the leader of a cluster decide a command, through a member of it that this node knows.
    /// It does not wait until the command is part of the state here.
    pub async fn propose_through(
        &self,
        seed: NodeId,
        command: Command,
        deadline: Instant,
    ) -> Result<u64, ProposeError> {
        self.propose_anywhere(command, Some(seed), deadline).await
    }

    /// Answers a request that the [`RaftTransport`](super::RaftTransport) of `peer` has sent. The
    /// answer of a request that may have been carried out or not is empty.
    pub async fn handle(&self, peer: NodeId, request: Bytes, deadline: Instant) -> Bytes {
        let response = match wire::decode::<Request>(&request) {
            Ok((Request::Propose { command }, _)) if is_about(&command, peer) => {
                match self.propose_anywhere(command, None, deadline).await {
                    Ok(index) => Response::Proposed { index, refusal: None },
                    Err(ProposeError::Refused(refusal)) => Response::Proposed { index: 0, refusal: Some(refusal) },
                    Err(ProposeError::NoLeader) => Response::NotLeader { leader: None },
                    Err(_) => return Bytes::new(),
                }
            }
            Ok((request, raw)) => self.group.serve(request, raw).await,
            Err(e) => Response::Refused { why: e.to_string() },
        };
        // A response that does not encode is no answer.
        wire::encode(&response, &[]).unwrap_or_default()
    }
}

/// Whether a command says that a node becomes a member, or does not after all.
fn is_about(command: &Command, peer: NodeId) -> bool {
    match command {
        Command::AddMember(member) => member.node == peer,
        Command::WithdrawMember { node } => *node == peer,
        _ => false,
    }
}
