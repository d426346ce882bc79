//! Tells a node that was paused whether this node holds something for it.

use super::messages::{decode_holdings, decode_holdings_question, encode_holdings, encode_holdings_question};
use crate::replica::failure::MALFORMED;
use crate::services::{MessageKind, NodeContext, NodeService, Opened, Server, Since, again};
use bytes::Bytes;
use ombak_peer::{Incoming, RefusalCode, Responder};

/// What a node holds for one that goes on after a pause.
pub(crate) const HOLDINGS: NodeService = NodeService {
    number: 13,
    title: "what is held for others",
    capability: "holdings.1",
    since: Since::Later,
    server: Server::OfNode(open),
    messages: &[
        MessageKind {
            name: "holdings_question",
            check: |bytes| again(bytes, decode_holdings_question, |()| encode_holdings_question()),
        },
        MessageKind {
            name: "holdings",
            check: |bytes| again(bytes, decode_holdings, |has_something| encode_holdings(*has_something)),
        },
    ],
};

fn open(context: &NodeContext) -> Opened {
    let (kv, runtime) = (context.kv.clone(), context.runtime.clone());
    Opened::without_gate(move |request: Incoming, answer: Responder| {
        if decode_holdings_question(request.body()).is_err() {
            return answer.refuse(MALFORMED, Bytes::new());
        }
        let (kv, node) = (kv.clone(), request.peer().identity.node);
        runtime.spawn(Box::pin(async move {
            let there = kv.clone();
            match kv.offload(move || there.has_something_for(node)).await {
                Ok(has_something) => answer.answer(encode_holdings(has_something)),
                Err(_) => answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new()),
            }
        }));
    })
}
