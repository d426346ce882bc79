//! What nodes ask each other for: a piece of a part of a job.

use bytes::Bytes;
use ombak_mapreduce::{Failure, Input, KeyFilter, Phase, Values};
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, NodeId, StoreFailure, StoreFailureKind};
use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

/// A phase with its number in the job, which failures name.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseOfPart {
    /// The number, beginning with 0.
    pub number: usize,
    /// The phase.
    pub phase: Phase,
}

/// What a part works on.
#[derive(Clone, Debug)]
pub enum PartWork {
    /// These keys.
    Keys(Vec<Input>),
    /// The keys of a bucket in a home partition.
    Share {
        /// The bucket.
        bucket: Bucket,
        /// The home partition.
        home: u32,
        /// The n of the bucket.
        n: u32,
        /// The version of the placement in which the home got its replicas.
        ring: RingVersion,
        /// When the job began: what had expired by then is left out.
        begun: UnixMicros,
        /// Which keys are taken.
        filter: KeyFilter,
    },
}

/// Asks a node for a piece of a part.
#[derive(Clone, Debug)]
pub struct PartRequest {
    /// The number of the job. No two jobs have the same.
    pub job: u128,
    /// What the part works on.
    pub work: PartWork,
    /// The place where the last piece ended.
    pub from: Option<Bytes>,
    /// The phase that makes values of each object. Without it, the results are the keys.
    pub map: Option<PhaseOfPart>,
    /// The phase that reduces the results before they travel.
    pub prereduce: Option<PhaseOfPart>,
    /// When the job ends.
    pub deadline: Instant,
}

/// A piece of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct PartAnswer {
    /// The results.
    pub results: Values,
    /// The place where the piece ended; `None` if the part is done.
    pub from: Option<Bytes>,
}

/// A piece as it came from a node.
pub enum SentPiece {
    /// It is ready.
    Read(PartAnswer),
    /// It has to be decoded, which may take too long for a network thread.
    Encoded(Box<dyn FnOnce() -> Result<PartAnswer, PartError> + Send>),
}

impl SentPiece {
    /// Decodes the piece.
    pub fn read(self) -> Result<PartAnswer, PartError> {
        match self {
            Self::Read(answer) => Ok(answer),
            Self::Encoded(decode) => decode(),
        }
    }
}

/// Why a piece has no results.
#[derive(Clone, Debug, PartialEq)]
pub enum PartError {
    /// Another replica, or the same one later, may have results.
    Lost(Error),
    /// The job cannot succeed.
    Failed(Failure),
}

impl From<Error> for PartError {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

/// A node that works on parts: the same for this node and for others.
pub trait PartClient: Send + Sync {
    /// Asks for a piece. Dropping the future ends the work.
    fn piece(&self, request: PartRequest) -> BoxFuture<'static, Result<SentPiece, PartError>>;

    /// Says that a job has ended. What was kept for it is forgotten.
    fn end_job(&self, job: u128) -> BoxFuture<'static, ()>;
}

/// The other nodes of the cluster.
pub trait PartNodes: Send + Sync {
    /// A node as one that works on parts. One that is not known, or cannot do so, answers nothing.
    fn part_client(&self, node: NodeId) -> Arc<dyn PartClient>;
}

/// The nodes beside one that is alone, and any node that cannot be asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPartNodes;

impl PartNodes for NoPartNodes {
    fn part_client(&self, _node: NodeId) -> Arc<dyn PartClient> {
        Arc::new(Self)
    }
}

impl PartClient for NoPartNodes {
    fn piece(&self, _request: PartRequest) -> BoxFuture<'static, Result<SentPiece, PartError>> {
        let why = StoreFailure::new(StoreFailureKind::Unreachable, "the node cannot work on parts of jobs");
        Box::pin(ready(Err(PartError::Lost(why.into()))))
    }

    fn end_job(&self, _job: u128) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}
