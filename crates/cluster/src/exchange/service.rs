//! Answers the questions of the exchanges of other nodes.

use super::messages::{
    decode_exchange_answer, decode_exchange_question, encode_exchange_answer, encode_exchange_question,
};
use crate::replica::ReplicaCounters;
use crate::replica::failure::{MALFORMED, REPLICA_ERROR};
use crate::services::{Gate, MessageKind, NodeContext, NodeService, Opened, Server, Since, again};
use crate::wire::encode_error;
use bytes::Bytes;
use ombak_peer::{Incoming, Responder};
use ombak_repair::Repair;
use ombak_runtime::{Asker, Runtime};
use std::sync::Arc;
use tracing::warn;

/// How many questions may be under way. Each member asks a few at a time.
const QUESTIONS_MAX: usize = 256;

/// Exchanges between primaries.
pub(crate) const EXCHANGES: NodeService = NodeService {
    number: 14,
    title: "exchanges between primaries",
    capability: "exchange.1",
    since: Since::Later,
    server: Server::OfNode(open),
    messages: &[
        MessageKind {
            name: "exchange_question",
            check: |bytes| again(bytes, decode_exchange_question, encode_exchange_question),
        },
        MessageKind {
            name: "exchange_answer",
            check: |bytes| again(bytes, decode_exchange_answer, encode_exchange_answer),
        },
    ],
};

fn open(context: &NodeContext) -> Opened {
    let gate = Gate::new(QUESTIONS_MAX);
    let (repair, runtime, counters) = (Repair::of(&context.kv), context.runtime.clone(), context.counters.clone());
    let service = ExchangeService { repair, runtime, counters, gate: gate.clone() };
    Opened::behind(&gate, move |request, answer| service.serve(&request, answer))
}

struct ExchangeService {
    repair: Repair,
    runtime: Arc<dyn Runtime>,
    counters: Arc<ReplicaCounters>,
    gate: Arc<Gate>,
}

impl ExchangeService {
    fn serve(&self, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.gate.enter(answer, &self.counters) else { return };
        let from = request.peer().identity.node;
        let question = match decode_exchange_question(request.body()) {
            Ok(question) => question,
            Err(why) => {
                warn!(peer = %from, %why, "a peer sent a question of an exchange that does not decode");
                self.counters.refused_as_malformed();
                return answer.refuse(MALFORMED, Bytes::new());
            }
        };
        let asker = Asker { deadline: Some(request.deadline()), has_gone: Some(answer.watch()) };
        let repair = self.repair.clone();
        self.runtime.spawn(Box::pin(async move {
            match repair.answer_exchange(asker, from, question).await {
                Ok(done) => answer.answer(encode_exchange_answer(&done)),
                Err(error) => answer.refuse(REPLICA_ERROR, encode_error(&error)),
            }
            drop(under_way);
        }));
    }
}
