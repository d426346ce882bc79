//! Asks the questions of an exchange over the transport, and starts the exchanges of a node.

use super::messages::{decode_exchange_answer, encode_exchange_question};
use super::service::EXCHANGES;
use crate::peer_table::ClusterPeers;
use crate::replica::RemoteReplica;
use ombak_kv::Kv;
use ombak_kv::replica::TRANSFER_ANSWER_MAX;
use ombak_repair::{ExchangeAnswer, ExchangeClient, ExchangeConfig, ExchangePeers, ExchangeQuestion, Repair};
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId};
use std::sync::Arc;
use tracing::error;

impl ExchangeClient for RemoteReplica {
    fn ask(&self, question: ExchangeQuestion) -> BoxFuture<'static, Result<ExchangeAnswer, Error>> {
        let body = encode_exchange_question(&question);
        self.ask_in_bulk(EXCHANGES.number, body, Some(TRANSFER_ANSWER_MAX), decode_exchange_answer)
    }
}

impl ExchangePeers for ClusterPeers {
    fn client(&self, node: NodeId) -> Option<Arc<dyn ExchangeClient>> {
        let caller = self.caller()?;
        let has_exchanges = caller.transport.shares(node, EXCHANGES.capability);
        has_exchanges.then(|| Arc::new(RemoteReplica::new(node, caller)) as Arc<dyn ExchangeClient>)
    }

    /// A node that is down counts with what it said last.
    fn has_exchanges(&self, node: NodeId) -> bool {
        let caller = self.caller();
        caller.is_some_and(|caller| caller.transport.has_said(node, EXCHANGES.capability) == Some(true))
    }
}

/// Starts the exchanges of a node. Call it before the work on copies starts. If the marks cannot be
/// read, the node goes on without exchanges.
pub(crate) fn start(repair: &Repair, kv: &Kv, peers: &Arc<ClusterPeers>, config: ExchangeConfig) {
    if let Err(why) = repair.start_exchanges(kv, peers.clone(), config) {
        error!(%why, "this node exchanges nothing with other primaries");
    }
}
