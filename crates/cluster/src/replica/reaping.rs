//! Rounds of reaping over the transport: [`RemoteReplica`] asks, this file's service answers.

use super::reap_orders::REAP_ORDERS;
use super::remote::RemoteReplica;
use super::service::{ReplicaService, asker_of, refuse, ring_of};
use crate::services::{MessageKind, NodeService, Opened, Server, Since, again};
use crate::wire::{
    ReapQuestion, decode_ordered, decode_reap_answers, decode_reap_question, decode_votes, encode_reap_answers,
    encode_reap_order, encode_reap_question, encode_votes,
};
use ombak_kv::replica::{
    AskRequest, Ordered, ReapOrder, ReapReply, ReapingClient, RemoveRequest, Round, Vote, VoteRequest,
};
use ombak_peer::{Incoming, Responder};
use ombak_runtime::BoxFuture;
use ombak_types::Error;

/// Rounds of reaping.
pub(crate) const REAPING: NodeService = NodeService {
    number: 9,
    title: "rounds of reaping",
    capability: "reaping.1",
    since: Since::Version1,
    server: Server::OfNode(|context| {
        let replicas = context.replicas.clone();
        Opened::behind(context.replicas.gate(), move |request, answer| replicas.reap(&request, answer))
    }),
    messages: &[
        MessageKind { name: "reap_question", check: |bytes| again(bytes, decode_reap_question, encode_reap_question) },
        MessageKind { name: "votes", check: |bytes| again(bytes, decode_votes, encode_votes) },
        MessageKind { name: "reap_answers", check: |bytes| again(bytes, decode_reap_answers, encode_reap_answers) },
    ],
};

impl ReapingClient for RemoteReplica {
    fn vote(&self, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        self.ask_for_round(encode_reap_question(&ReapQuestion::Vote(request)), decode_votes)
    }

    fn ask(&self, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.ask_for_round(encode_reap_question(&ReapQuestion::Ask(request)), decode_reap_answers)
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.ask_for_round(encode_reap_question(&ReapQuestion::Remove(request)), decode_reap_answers)
    }

    fn order(&self, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        self.ask_primary(REAP_ORDERS.number, encode_reap_order(&order), decode_ordered)
    }
}

impl ReplicaService {
    fn reap(&self, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, question)) = self.decode(request, answer, decode_reap_question) else { return };
        let in_ring = |round: Round| Round { ring: ring_of(request), ..round };
        match question {
            ReapQuestion::Vote(mut vote) => {
                vote.round = in_ring(vote.round);
                self.finish(
                    self.local.vote_for(asker_of(request, &answer), vote),
                    encode_votes,
                    refuse,
                    answer,
                    under_way,
                );
            }
            ReapQuestion::Ask(mut ask) => {
                ask.round = in_ring(ask.round);
                self.finish(
                    self.local.ask_for(asker_of(request, &answer), ask),
                    encode_reap_answers,
                    refuse,
                    answer,
                    under_way,
                );
            }
            ReapQuestion::Remove(mut remove) => {
                remove.round = in_ring(remove.round);
                self.finish(
                    self.local.remove_for(asker_of(request, &answer), remove),
                    encode_reap_answers,
                    refuse,
                    answer,
                    under_way,
                );
            }
        }
    }
}
