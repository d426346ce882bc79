//! Answers the messages of the metadata's group.

use crate::member::MemberContext;
use crate::services::{NodeService, Opened, Server, Since};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use ombak_metadata::MetadataNode;
use ombak_peer::{Incoming, RefusalCode, Responder};
use ombak_runtime::BoxFuture;
use ombak_types::NodeId;
use std::sync::{Arc, OnceLock, Weak};

/// The metadata that takes part on this node. There is none while the node starts, and another one
/// after it has joined a cluster.
pub(crate) type MetadataSlot = Arc<ArcSwapOption<MetadataNode>>;

/// Decides whether messages of the metadata may pass between this node and another one.
pub(crate) trait Acquaintance: Send + Sync {
    /// Whether they may, now.
    fn may_talk(self: Arc<Self>, node: NodeId) -> BoxFuture<'static, bool>;
}

/// Who decides it, once the node has started.
pub(crate) type AcquaintanceCell = Arc<OnceLock<Weak<dyn Acquaintance>>>;

/// Messages of the metadata's Raft group. `ombak_metadata` encodes them.
pub(crate) const METADATA: NodeService = NodeService {
    number: 4,
    title: "metadata",
    capability: "metadata.1",
    since: Since::Version1,
    server: Server::OfMember(open),
    messages: &[],
};

fn open(context: &MemberContext) -> Opened {
    let (slot, acquaintance) = (context.metadata.clone(), context.acquaintance.clone());
    let runtime = context.runtime.clone();
    Opened::without_gate(move |request: Incoming, answer: Responder| {
        let acquaintance = acquaintance.get().and_then(Weak::upgrade);
        let (Some(metadata), Some(acquaintance)) = (slot.load_full(), acquaintance) else {
            return answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new());
        };
        let (peer, body, deadline) = (request.peer().identity.node, request.body().clone(), request.deadline());
        runtime.spawn(Box::pin(async move {
            if acquaintance.may_talk(peer).await {
                answer.answer(metadata.handle(peer, body, deadline).await);
            } else {
                answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new());
            }
        }));
    })
}
