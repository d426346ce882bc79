//! Asks another node for pieces of parts.

use super::messages::{JobAnswer, JobQuestion, decode_job_answer, encode_job_question};
use super::service::PARTS;
use crate::replica::failure::{error_of, undecodable};
use crate::replica::{Caller, known_version};
use bytes::Bytes;
use ombak_jobs::{PartAnswer, PartClient, PartError, PartRequest, PartWork, SentPiece};
use ombak_peer::frame::Priority;
use ombak_peer::{Lane, Outgoing, RingVersion};
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a node may take to hear that a job has ended.
const END_MAX: Duration = Duration::from_secs(5);

/// Another node as one that works on parts.
pub(crate) struct RemoteParts {
    node: NodeId,
    caller: Arc<Caller>,
}

impl RemoteParts {
    pub(crate) fn new(node: NodeId, caller: Arc<Caller>) -> Self {
        Self { node, caller }
    }

    fn ask(
        &self,
        question: &JobQuestion,
        ring: RingVersion,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<Bytes, Error>> {
        let (node, caller) = (self.node, Arc::clone(&self.caller));
        let outgoing = Outgoing {
            lane: Lane::Bulk,
            service: PARTS.number,
            // A client waits for the job.
            priority: Priority::Request,
            ring,
            age: Duration::ZERO,
            deadline,
            body: encode_job_question(question),
        };
        Box::pin(async move { caller.transport.call(node, outgoing).await.map_err(|failure| error_of(node, failure)) })
    }

    fn can(&self) -> bool {
        // A node that is not connected says nothing of itself; the call connects it.
        self.caller.transport.live_session(self.node).is_none()
            || self.caller.transport.shares(self.node, PARTS.capability)
    }
}

fn decode(node: NodeId, answer: &Bytes) -> Result<PartAnswer, PartError> {
    match decode_job_answer(answer).map_err(|why| undecodable(node, &why.to_string()))? {
        JobAnswer::Piece(piece) => Ok(piece),
        JobAnswer::Failed(failure) => Err(PartError::Failed(failure)),
        JobAnswer::Ended => Err(PartError::Lost(undecodable(node, "it answers another question"))),
    }
}

impl PartClient for RemoteParts {
    fn piece(&self, request: PartRequest) -> BoxFuture<'static, Result<SentPiece, PartError>> {
        let node = self.node;
        if !self.can() {
            let why = format!("an earlier version of ombak runs on node {node}, which does not know MapReduce");
            let error = StoreFailure::new(StoreFailureKind::Unreachable, why);
            return Box::pin(std::future::ready(Err(PartError::Lost(error.into()))));
        }
        let ring = match &request.work {
            PartWork::Share { ring, .. } => RingVersion { lineage: ring.lineage, number: ring.number },
            PartWork::Keys(_) => known_version(&self.caller.kv),
        };
        let deadline = request.deadline;
        let answer = self.ask(&JobQuestion::Piece(request), ring, deadline);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(SentPiece::Encoded(Box::new(move || decode(node, &answer))))
        })
    }

    fn end_job(&self, job: u128) -> BoxFuture<'static, ()> {
        if !self.can() {
            return Box::pin(std::future::ready(()));
        }
        let (ring, deadline) = (known_version(&self.caller.kv), self.caller.runtime.now() + END_MAX);
        let answer = self.ask(&JobQuestion::End { job }, ring, deadline);
        // What is kept for a job is forgotten at its deadline in any case.
        Box::pin(async move { drop(answer.await) })
    }
}
