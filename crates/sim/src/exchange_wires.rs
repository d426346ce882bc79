//! Exchanges between engines that are connected by single messages.
//!
//! The questions of an exchange are lost, doubled, reordered and late like all others, and each is
//! answered by the engine of the process that it was sent to.

use crate::wires::{HostPeers, Remote};
use ombak_repair::{ExchangeAnswer, ExchangeClient, ExchangePeers, ExchangeQuestion, Repair};
use ombak_runtime::{Asker, BoxFuture};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::sync::Arc;

impl ExchangePeers for HostPeers {
    fn client(&self, node: NodeId) -> Option<Arc<dyn ExchangeClient>> {
        let to = self.wires.host_of(node)?;
        Some(Arc::new(Remote { wires: self.wires.clone(), from: self.from, to }))
    }
}

impl ExchangeClient for Remote {
    fn ask(&self, question: ExchangeQuestion) -> BoxFuture<'static, Result<ExchangeAnswer, Error>> {
        let (wires, to) = (self.wires.clone(), self.to);
        // Questions are asked only by engines that run.
        let from = self.wires.engine_on(self.from.host).map(|kv| kv.identity().node_id);
        self.repeatable(question, move |_, question| {
            let there = wires.engine_on(to);
            async move {
                let (Some(there), Some(from)) = (there, from) else { return Err(nobody_answers()) };
                Repair::of(&there).answer_exchange(Asker::default(), from, question).await
            }
        })
    }
}

fn nobody_answers() -> Error {
    StoreFailure::new(StoreFailureKind::Unreachable, "no engine runs at one end of the way").into()
}
