//! Works on parts of the jobs of other nodes.
//!
//! A piece ends soon after nobody waits for it any more: its job has ended, or its peer has gone.
//! What a job keeps here is forgotten when its owner says that it has ended, and otherwise at its
//! deadline.

use crate::replica::ReplicaCounters;
use crate::replica::failure::{MALFORMED, REPLICA_ERROR};
use crate::service_numbers::JOB_PART;
use crate::wire::{JobAnswer, JobQuestion, decode_job_question, encode_error, encode_job_answer};
use bytes::Bytes;
use ombak_jobs::{Jobs, PartClient, PartError, PartRequest};
use ombak_peer::connection::TwoServices;
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, RefusalCode, Responder, Services};
use ombak_ring::RingVersion;
use ombak_runtime::{Runtime, within};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tracing::warn;

/// How many pieces may be under way. Most of them wait for their turn.
const PIECES_MAX: usize = 1024;
/// How often the work on a piece looks whether its peer still waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The service of a node for the jobs of other nodes.
pub(crate) struct JobService {
    jobs: Jobs,
    runtime: Arc<dyn Runtime>,
    counters: Arc<ReplicaCounters>,
    under_way: AtomicUsize,
    is_draining: AtomicBool,
}

/// A piece that counts as under way until this is dropped.
struct UnderWay(Arc<JobService>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl JobService {
    pub(crate) fn new(jobs: Jobs, runtime: Arc<dyn Runtime>, counters: Arc<ReplicaCounters>) -> Arc<Self> {
        let (under_way, is_draining) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { jobs, runtime, counters, under_way, is_draining })
    }

    /// Registers the service.
    pub(crate) fn register(self: &Arc<Self>, services: &mut Services) -> Result<(), TwoServices> {
        let this = Arc::clone(self);
        let serve = move |request: Incoming, answer| this.serve(&request, answer);
        services.register(JOB_PART, "parts of MapReduce jobs", Arc::new(serve))
    }

    /// Refuses further pieces: other replicas do them.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    /// The number of pieces that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    fn serve(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let before = self.under_way.fetch_add(1, Ordering::SeqCst);
        let under_way = UnderWay(Arc::clone(self));
        if self.is_draining.load(Ordering::SeqCst) {
            return answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new());
        }
        if before >= PIECES_MAX {
            self.counters.refused_for_overload();
            return answer.overload();
        }
        let ring = RingVersion { lineage: request.ring().lineage, number: request.ring().number };
        match decode_job_question(request.body(), ring, request.deadline()) {
            Ok(question) => self.runtime.spawn(Box::pin(under_way.answer(question, answer))),
            Err(why) => {
                warn!(peer = %request.peer().identity.node, %why, "a peer sent a part of a job that does not decode");
                self.counters.refused_as_malformed();
                answer.refuse(MALFORMED, Bytes::new());
            }
        }
    }
}

impl UnderWay {
    async fn answer(self, question: JobQuestion, answer: Responder) {
        let local = self.0.jobs.local_parts();
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
    }

    /// Works on a piece as long as its peer waits for it, and encodes the answer.
    async fn piece(&self, request: PartRequest, answer: &Responder) -> Option<Result<Body, PartError>> {
        let runtime = &*self.0.runtime;
        let encode = |piece| encode_job_answer(JobAnswer::Piece(piece));
        let mut work = self.0.jobs.local_parts().piece_as(request, encode);
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
