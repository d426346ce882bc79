//! The way of the metadata's messages to other nodes, on which each node is asked first.

use super::own_directory::OwnDirectory;
use crate::metadata::PeerTransport;
use bytes::Bytes;
use ombak_metadata::{NoAnswer, RaftTransport};
use ombak_peer::Peers;
use ombak_runtime::BoxFuture;
use ombak_types::NodeId;
use std::sync::Arc;
use std::time::Instant;

/// The way of the metadata's messages to other nodes, each of which is asked first what it knows of
/// this node's directory.
pub(in crate::member) struct AskingTransport {
    transport: PeerTransport,
    own_directory: Arc<OwnDirectory>,
}

impl AskingTransport {
    pub fn new(peers: Peers, own_directory: Arc<OwnDirectory>) -> Self {
        Self { transport: PeerTransport(peers), own_directory }
    }
}

impl RaftTransport for AskingTransport {
    fn send(&self, to: NodeId, request: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let (transport, own_directory) = (self.transport.clone(), self.own_directory.clone());
        Box::pin(async move {
            if !own_directory.may_talk(to).await {
                let why = "it has not said yet what it knows of this node's directory".into();
                return Err(NoAnswer { to, why });
            }
            transport.send(to, request, deadline).await
        })
    }
}
