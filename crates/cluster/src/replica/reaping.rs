//! Rounds of reaping over the transport: [`RemoteReplica`] asks, this file's service answers.

use super::remote::RemoteReplica;
use super::service::{ReplicaService, asker_of, refuse, ring_of};
use crate::service_numbers::REAPING;
use crate::wire::{
    ReapQuestion, decode_reap_answers, decode_reap_question, decode_votes, encode_reap_answers, encode_reap_question,
    encode_votes,
};
use ombak_kv::{AskRequest, ReapReply, ReapingClient, RemoveRequest, Round, Vote, VoteRequest};
use ombak_peer::connection::TwoServices;
use ombak_peer::{Incoming, Responder, Services};
use ombak_runtime::BoxFuture;
use ombak_types::Error;
use std::sync::Arc;

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
}

impl ReplicaService {
    pub(super) fn register_reaping(self: &Arc<Self>, services: &mut Services) -> Result<(), TwoServices> {
        let service = self.clone();
        let reap = move |request, answer| service.reap(&request, answer);
        services.register(REAPING, "rounds of reaping", Arc::new(reap))
    }

    fn reap(self: &Arc<Self>, request: &Incoming, answer: Responder) {
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
