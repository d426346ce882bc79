//! The service by which members ask each other about themselves.

use super::directory_age::admission::MemberAdmission;
use super::questions::question::{Answer, decode, encode};
use super::start::Cell;
use crate::metadata::{AcquaintanceCell, MetadataSlot};
use crate::services::{NodeService, Opened, Server, Since};
use bytes::Bytes;
use ombak_peer::{Incoming, RefusalCode, Responder};
use ombak_runtime::Runtime;
use std::sync::{Arc, Weak};

/// What the servers of a member are made of. They are opened before the engine is.
pub(crate) struct MemberContext {
    /// Tasks and time.
    pub(crate) runtime: Arc<dyn Runtime>,
    /// The metadata that takes part on this node.
    pub(crate) metadata: MetadataSlot,
    /// Who decides which nodes exchange messages of the metadata.
    pub(crate) acquaintance: AcquaintanceCell,
    /// What is known of the nodes that connect.
    pub(super) admission: Arc<MemberAdmission>,
    /// The member, once it has started.
    pub(super) member: Cell,
}

/// Joining, leaving and the checks before a change of the ring. `questions` has the messages.
pub(crate) const MEMBERS: NodeService = NodeService {
    number: 6,
    title: "members",
    capability: "members.1",
    since: Since::Version1,
    server: Server::OfMember(open),
    messages: &[],
};

fn open(context: &MemberContext) -> Opened {
    let (cell, runtime) = (context.member.clone(), context.runtime.clone());
    let (admission, slot) = (context.admission.clone(), context.metadata.clone());
    Opened::without_gate(move |request: Incoming, answer: Responder| {
        // Nodes that start at the same time ask each other before they take part.
        if let (Ok(question), Some(known)) = (decode(request.body()), admission.known.load_full()) {
            let peer = request.peer().identity.node;
            if let Some(said) = admission.starts.answer(peer, &question, &known, &slot) {
                let inner = cell.get().and_then(Weak::upgrade).filter(|_| admission.starts.has_news());
                let Some(inner) = inner else { return answer.answer(encode(&said)) };
                return runtime.spawn(Box::pin(async move {
                    // The node that asks may go on when the next start here knows of it, too.
                    inner.save_seen().await;
                    answer.answer(encode(&said));
                }));
            }
        }
        let Some(inner) = cell.get().and_then(Weak::upgrade).filter(|inner| !inner.is_stopping()) else {
            return answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new());
        };
        let (body, deadline) = (request.body().clone(), request.deadline());
        let peer = request.peer().identity.node;
        runtime.spawn(Box::pin(async move {
            let said = match decode(&body) {
                Ok(question) => inner.answer_peer(peer, &question, deadline).await,
                Err(why) => Answer::Refused { why: format!("the question cannot be read: {why}") },
            };
            answer.answer(encode(&said));
        }));
    })
}
