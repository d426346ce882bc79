//! The questions by which copies are brought back to where they belong, over the transport. All of
//! them take the connection for transfers, so that no client waits behind them.

use super::remote::RemoteReplica;
use super::service::{ReplicaService, asker_of, refuse, ring_of};
use crate::services::{MessageKind, NodeService, Opened, Server, Since, again};
use crate::wire::{
    Malformed, TransferQuestion, decode_compared, decode_giving, decode_pushed, decode_summary,
    decode_transfer_question, encode_compared, encode_giving, encode_pushed, encode_summary, encode_transfer_question,
};
use bytes::Bytes;
use ombak_kv::replica::{
    Compare, Compared, Give, Giving, Push, Pushed, Summarize, Summary, TRANSFER_ANSWER_MAX, TransferClient,
};
use ombak_peer::{Incoming, Responder};
use ombak_runtime::BoxFuture;
use ombak_types::Error;
use std::time::Duration;

/// Comparisons and pushes of copies between replicas.
pub(crate) const TRANSFER: NodeService = NodeService {
    number: 7,
    title: "transfers",
    capability: "transfer.1",
    since: Since::Version1,
    server: Server::OfNode(|context| {
        let replicas = context.replicas.clone();
        Opened::behind(context.replicas.gate(), move |request, answer| replicas.transfer(&request, answer))
    }),
    messages: &[
        MessageKind {
            name: "transfer_question",
            check: |bytes| again(bytes, decode_transfer_question, encode_transfer_question),
        },
        MessageKind { name: "compared", check: |bytes| again(bytes, decode_compared, encode_compared) },
        MessageKind { name: "pushed", check: |bytes| again(bytes, decode_pushed, encode_pushed) },
        MessageKind { name: "summary", check: |bytes| again(bytes, decode_summary, encode_summary) },
        MessageKind { name: "giving", check: |bytes| again(bytes, decode_giving, encode_giving) },
    ],
};

impl RemoteReplica {
    /// Asks a question whose answer is waited for only so long. A sum over a large store may take
    /// any time.
    fn transfer<T: Send + 'static>(
        &self,
        question: &TransferQuestion,
        answer_max: Option<Duration>,
        decode: fn(&Bytes) -> Result<T, Malformed>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        self.ask_in_bulk(TRANSFER.number, encode_transfer_question(question), answer_max, decode)
    }
}

impl TransferClient for RemoteReplica {
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        self.transfer(&TransferQuestion::Compare(compare), Some(TRANSFER_ANSWER_MAX), decode_compared)
    }

    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        self.transfer(&TransferQuestion::Push(push), Some(TRANSFER_ANSWER_MAX), decode_pushed)
    }

    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        self.transfer(&TransferQuestion::Summarize(summarize), None, decode_summary)
    }

    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        self.transfer(&TransferQuestion::Give(give), None, decode_giving)
    }
}

impl ReplicaService {
    fn transfer(&self, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, question)) = self.decode(request, answer, decode_transfer_question) else { return };
        let (local, asker) = (self.local(), asker_of(request, &answer));
        match question {
            TransferQuestion::Compare(compare) => {
                self.finish(local.compare_for(asker, compare), encode_compared, refuse, answer, under_way)
            }
            TransferQuestion::Push(mut push) => {
                // A late copy is not stored (docs/design/replication.md §12).
                let (deadline, ring) = (Some(request.expires_at()), ring_of(request));
                push.copies.iter_mut().for_each(|copy| (copy.deadline, copy.ring) = (deadline, ring));
                self.finish(local.push_for(asker, push), encode_pushed, refuse, answer, under_way)
            }
            TransferQuestion::Summarize(summarize) => {
                self.finish(local.summarize_for(asker, summarize), encode_summary, refuse, answer, under_way)
            }
            TransferQuestion::Give(give) => self.finish(local.give(give), encode_giving, refuse, answer, under_way),
        }
    }
}
