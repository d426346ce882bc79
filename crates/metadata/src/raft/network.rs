//! openraft's view of the other nodes.

use super::types::{Group, RaftNode, Vote};
use super::wire::{self, CHUNK_BYTES, Request, Response};
use crate::node::RaftTransport;
use crate::state::RaftId;
use bytes::Bytes;
use ombak_runtime::{Runtime, RuntimeExt};
use ombak_types::NodeId;
use openraft::error::{Fatal, NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse};
use openraft::{AnyError, OptionalSend, Snapshot};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

type RpcResult<T> = Result<T, RPCError<RaftId, RaftNode, RaftError<RaftId>>>;

/// Makes the connections to other nodes.
#[derive(Clone)]
pub(crate) struct Networks {
    pub transport: Arc<dyn RaftTransport>,
    pub runtime: Arc<dyn Runtime>,
    /// How long a failed request is answered later. openraft repeats it at once after a network
    /// error, and its own pause draws from a random source that no seed decides.
    pub pause: Duration,
}

impl RaftNetworkFactory<Group> for Networks {
    type Network = Peer;

    async fn new_client(&mut self, target: RaftId, node: &RaftNode) -> Peer {
        Peer { networks: self.clone(), target, node: node.node }
    }
}

/// One other node.
pub(crate) struct Peer {
    networks: Networks,
    target: RaftId,
    node: Option<NodeId>,
}

impl Peer {
    async fn call(&self, request: &Request, raw: &[u8], option: &RPCOption) -> Result<Response, NetworkError> {
        let result = self.try_call(request, raw, option).await;
        if result.is_err() {
            self.networks.runtime.sleep(self.networks.pause).await;
        }
        result.map_err(|why| NetworkError::new(&AnyError::error(why)))
    }

    async fn try_call(&self, request: &Request, raw: &[u8], option: &RPCOption) -> Result<Response, String> {
        let Networks { transport, runtime, .. } = &self.networks;
        let node = self.node.ok_or("the node is unknown")?;
        let request = wire::encode(request, raw).map_err(|e| e.to_string())?;
        let answer = transport.send(node, request, runtime.now() + option.hard_ttl()).await;
        let (response, _) = wire::decode(&answer.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        match response {
            Response::Refused { why } => Err(why),
            response => Ok(response),
        }
    }
}

fn unexpected(response: &Response) -> NetworkError {
    NetworkError::new(&AnyError::error(format!("an unexpected response: {response:?}")))
}

impl RaftNetwork<Group> for Peer {
    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Group>,
        option: RPCOption,
    ) -> RpcResult<AppendEntriesResponse<RaftId>> {
        match self.call(&Request::Append { to: self.target, rpc }, &[], &option).await? {
            Response::Append(response) => Ok(response),
            other => Err(unexpected(&other).into()),
        }
    }

    async fn vote(&mut self, rpc: VoteRequest<RaftId>, option: RPCOption) -> RpcResult<VoteResponse<RaftId>> {
        match self.call(&Request::Vote { to: self.target, rpc }, &[], &option).await? {
            Response::Vote(response) => Ok(response),
            other => Err(unexpected(&other).into()),
        }
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot<Group>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<RaftId>, StreamingError<Group, Fatal<RaftId>>> {
        let send = std::pin::pin!(self.send_snapshot(vote, snapshot, option));
        match futures_util::future::select(std::pin::pin!(cancel), send).await {
            futures_util::future::Either::Left((closed, _)) => Err(closed.into()),
            futures_util::future::Either::Right((sent, _)) => Ok(sent?),
        }
    }
}

impl Peer {
    async fn send_snapshot(
        &self,
        vote: Vote,
        snapshot: Snapshot<Group>,
        option: RPCOption,
    ) -> Result<SnapshotResponse<RaftId>, NetworkError> {
        let state: &Bytes = &snapshot.snapshot;
        let mut offset = 0;
        loop {
            let end = (offset + CHUNK_BYTES).min(state.len());
            let (to, meta) = (self.target, snapshot.meta.clone());
            let (at, total) = (offset as u64, state.len() as u64);
            let request = Request::Snapshot { to, vote, meta, offset: at, total };
            match self.call(&request, &state[offset..end], &option).await? {
                Response::Snapshot { vote: theirs } if end == state.len() || theirs > vote => {
                    return Ok(SnapshotResponse { vote: theirs });
                }
                Response::Snapshot { .. } => offset = end,
                other => return Err(unexpected(&other)),
            }
        }
    }
}
