//! Searches whose results are inputs of jobs, as jobs know them.

use bytes::Bytes;
use ombak_mapreduce::Failure;
use ombak_runtime::BoxFuture;
use ombak_types::Bucket;
use std::time::Instant;

/// A search whose results are the inputs of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputSearch {
    /// The name of the index.
    pub index: Bytes,
    /// The query.
    pub query: Bytes,
    /// A query that the results have to fulfil as well.
    pub filter: Option<Bytes>,
    /// When the job needs no more inputs.
    pub deadline: Instant,
}

/// Some of the keys that a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundInputs {
    /// The keys.
    pub keys: Vec<(Bucket, Bytes)>,
    /// Where the next ones begin; `None` if there are no more.
    pub next: Option<String>,
}

/// Carries out searches for jobs. The program gives its node one if the node has search, because
/// jobs know nothing of indexes.
pub trait InputSearches: Send + Sync {
    /// Finds the next keys. The first call has no place, and each further one that of the answer
    /// before. What an answer has is bounded in its bytes. All answers together have every object
    /// that is found during the whole job, or one of them is a failure: a job over a part of its
    /// inputs would give wrong results. Dropping the future ends the work of this node.
    fn find(&self, search: &InputSearch, from: Option<&str>) -> BoxFuture<'static, Result<FoundInputs, Failure>>;
}
