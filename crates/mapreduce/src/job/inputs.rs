//! The inputs of a job.

use crate::Input;
use crate::filter::KeyFilter;
use bytes::Bytes;
use ombak_types::etf::Term;
use ombak_types::{Bucket, IndexTerm};

/// What the first phase of a job works on.
#[derive(Clone, Debug)]
pub enum Inputs {
    /// These keys.
    Keys(Vec<Input>),
    /// The keys of a bucket that a filter takes.
    Bucket {
        /// The bucket.
        bucket: Bucket,
        /// The filter; the empty one takes all keys.
        filter: KeyFilter,
    },
    /// The keys that an index query finds.
    Index(IndexQuery),
    /// The keys that a full-text search finds.
    Search {
        /// The index, or the bucket whose index it is.
        index: Bytes,
        /// The query.
        query: Bytes,
        /// A query that the results have to fulfil as well.
        filter: Option<Bytes>,
    },
    /// The keys that an Erlang function gives. None exists here, so such a job fails when it is
    /// run, as in Riak.
    Function {
        /// The function's module.
        module: String,
        /// The function's name.
        function: String,
        /// The function's argument.
        arg: Term,
    },
}

/// An index query: the keys with a term from `low` to `high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexQuery {
    /// The bucket.
    pub bucket: Bucket,
    /// The field: a name with `_int` or `_bin`, or `$key`, or `$bucket`.
    pub field: Bytes,
    /// The least term.
    pub low: IndexTerm,
    /// The greatest term. It equals `low` in a query for one term.
    pub high: IndexTerm,
}

impl Inputs {
    /// The buckets that the inputs name; searches and functions name none.
    pub(super) fn buckets(&self) -> Vec<&Bucket> {
        match self {
            Self::Keys(keys) => keys.iter().map(|input| &input.bucket).collect(),
            Self::Bucket { bucket, .. } => vec![bucket],
            Self::Index(query) => vec![&query.bucket],
            Self::Search { .. } | Self::Function { .. } => Vec::new(),
        }
    }
}
