//! The questions by which copies are brought back to where they belong, over the transport. All of
//! them take the connection for transfers, so that no client waits behind them.

use super::remote::RemoteReplica;
use super::service::{ReplicaService, refuse, ring_of};
use crate::service_numbers::TRANSFER;
use crate::wire::{
    Malformed, TransferQuestion, decode_compared, decode_giving, decode_pushed, decode_summary,
    decode_transfer_question, encode_compared, encode_giving, encode_pushed, encode_summary, encode_transfer_question,
};
use bytes::Bytes;
use ombak_kv::{Compare, Compared, Give, Giving, Push, Pushed, Summarize, Summary, TransferClient};
use ombak_peer::{Incoming, Responder};
use ombak_runtime::BoxFuture;
use ombak_types::Error;
use std::sync::Arc;

impl RemoteReplica {
    fn transfer<T: Send + 'static>(
        &self,
        question: &TransferQuestion,
        decode: fn(&Bytes) -> Result<T, Malformed>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        self.ask_in_bulk(TRANSFER, encode_transfer_question(question), decode)
    }
}

impl TransferClient for RemoteReplica {
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        self.transfer(&TransferQuestion::Compare(compare), decode_compared)
    }

    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        self.transfer(&TransferQuestion::Push(push), decode_pushed)
    }

    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        self.transfer(&TransferQuestion::Summarize(summarize), decode_summary)
    }

    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        self.transfer(&TransferQuestion::Give(give), decode_giving)
    }
}

impl ReplicaService {
    pub(super) fn transfer(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, question)) = self.decode(request, answer, decode_transfer_question) else { return };
        let local = self.local();
        match question {
            TransferQuestion::Compare(compare) => {
                self.finish(local.compare(compare), encode_compared, refuse, answer, under_way)
            }
            TransferQuestion::Push(mut push) => {
                // A late copy is not stored (docs/design/replication.md §12).
                let (deadline, ring) = (Some(request.expires_at()), ring_of(request));
                push.copies.iter_mut().for_each(|copy| (copy.deadline, copy.ring) = (deadline, ring));
                self.finish(local.push(push), encode_pushed, refuse, answer, under_way)
            }
            TransferQuestion::Summarize(summarize) => {
                self.finish(local.summarize(summarize), encode_summary, refuse, answer, under_way)
            }
            TransferQuestion::Give(give) => self.finish(local.give(give), encode_giving, refuse, answer, under_way),
        }
    }
}
