//! Works on parts of the jobs of other nodes.
//!
//! A piece ends soon after nobody waits for it any more: its job has ended, or its peer has gone.
//! What a job keeps here is forgotten when its owner says that it has ended, and otherwise at its
//! deadline.

use super::messages::{
    JobAnswer, JobQuestion, decode_job_answer, decode_job_question, encode_job_answer, encode_job_question,
};
use crate::fuzzing;
use crate::replica::ReplicaCounters;
use crate::replica::failure::{MALFORMED, REPLICA_ERROR};
use crate::services::{Gate, MessageKind, NodeContext, NodeService, Opened, Server, Since, UnderWay, again};
use crate::wire::encode_error;
use bytes::Bytes;
use ombak_jobs::{Jobs, PartClient, PartError, PartRequest};
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, Responder};
use ombak_ring::RingVersion;
use ombak_runtime::{Runtime, within};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// How many pieces may be under way. Most of them wait for their turn.
const PIECES_MAX: usize = 1024;
/// How often the work on a piece looks whether its peer still waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Parts of MapReduce jobs.
pub(crate) const PARTS: NodeService = NodeService {
    number: 12,
    title: "parts of MapReduce jobs",
    capability: "mapreduce.1",
    since: Since::Later,
    server: Server::OfNode(open),
    messages: &[
        MessageKind {
            name: "job_question",
            check: |bytes| {
                let decode = |bytes: &Bytes| decode_job_question(bytes, RingVersion::first(1), fuzzing::deadline());
                again(bytes, decode, encode_job_question);
            },
        },
        MessageKind {
            name: "job_answer",
            check: |bytes| again(bytes, decode_job_answer, |answer| encode_job_answer(answer.clone())),
        },
    ],
};

fn open(context: &NodeContext) -> Opened {
    let (jobs, runtime, counters) = (context.jobs.clone(), context.runtime.clone(), context.counters.clone());
    let gate = Gate::new(PIECES_MAX);
    let service = Arc::new(JobService { jobs, runtime, counters, gate: gate.clone() });
    Opened::behind(&gate, move |request, answer| service.serve(&request, answer))
}

/// The server of a node for the jobs of other nodes.
struct JobService {
    jobs: Jobs,
    runtime: Arc<dyn Runtime>,
    counters: Arc<ReplicaCounters>,
    gate: Arc<Gate>,
}

impl JobService {
    fn serve(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.gate.enter(answer, &self.counters) else { return };
        let ring = RingVersion { lineage: request.ring().lineage, number: request.ring().number };
        match decode_job_question(request.body(), ring, request.deadline()) {
            Ok(question) => self.runtime.spawn(Box::pin(Arc::clone(self).answer(under_way, question, answer))),
            Err(why) => {
                warn!(peer = %request.peer().identity.node, %why, "a peer sent a part of a job that does not decode");
                self.counters.refused_as_malformed();
                answer.refuse(MALFORMED, Bytes::new());
            }
        }
    }

    async fn answer(self: Arc<Self>, under_way: UnderWay, question: JobQuestion, answer: Responder) {
        let local = self.jobs.local_parts();
        let done = match question {
            JobQuestion::End { job } => {
                local.end_job(job).await;
                Ok(encode_job_answer(JobAnswer::Ended))
            }
            JobQuestion::Piece(request) => match self.piece(request, &answer).await {
                // Nobody hears the answer.
                None => return,
                Some(Ok(piece)) => Ok(piece),
                Some(Err(PartError::Failed(failure))) => Ok(encode_job_answer(JobAnswer::Failed(failure))),
                Some(Err(PartError::Lost(error))) => Err(error),
            },
        };
        match done {
            Ok(done) => answer.answer(done),
            Err(error) => answer.refuse(REPLICA_ERROR, encode_error(&error)),
        }
        drop(under_way);
    }

    /// Works on a piece as long as its peer waits for it, and encodes the answer.
    async fn piece(&self, request: PartRequest, answer: &Responder) -> Option<Result<Body, PartError>> {
        let runtime = &*self.runtime;
        let encode = |piece| encode_job_answer(JobAnswer::Piece(piece));
        let mut work = self.jobs.local_parts().piece_as(request, encode);
        loop {
            if let Ok(done) = within(runtime, Some(runtime.now() + LOOK_INTERVAL), work.as_mut()).await {
                return Some(done);
            }
            if answer.is_cancelled() {
                return None;
            }
        }
    }
}
