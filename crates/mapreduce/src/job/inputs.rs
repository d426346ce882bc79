//! The inputs of a job.

use crate::filter::KeyFilter;
use crate::input_list::{InputList, InputListIter};
use bytes::Bytes;
use ombak_types::etf::Term;
use ombak_types::{Bucket, IndexTerm};

/// What the first phase of a job works on.
#[derive(Clone, Debug)]
pub enum Inputs {
    /// These keys.
    Keys(InputList),
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
    /// The keys that an Erlang function gives. None exists here beside Riak's own for searches and
    /// indexes, which are inputs of those kinds. So such a job fails when it is run, as in Riak.
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

/// The buckets that inputs name, one after the other.
pub enum Buckets<'a> {
    /// Of listed inputs, and the last one that was given.
    Listed(InputListIter, Option<Bucket>),
    /// One or none.
    Single(Option<&'a Bucket>),
}

impl Inputs {
    /// The buckets that the inputs name; searches and functions name none.
    pub(super) fn buckets(&self) -> Buckets<'_> {
        match self {
            Self::Keys(keys) => Buckets::Listed(keys.iter(), None),
            Self::Bucket { bucket, .. } => Buckets::Single(Some(bucket)),
            Self::Index(query) => Buckets::Single(Some(&query.bucket)),
            Self::Search { .. } | Self::Function { .. } => Buckets::Single(None),
        }
    }
}

impl Iterator for Buckets<'_> {
    type Item = Bucket;

    fn next(&mut self) -> Option<Bucket> {
        match self {
            Self::Single(bucket) => bucket.take().cloned(),
            Self::Listed(inputs, last) => {
                // Many inputs of one bucket usually follow each other.
                let next = inputs.find(|input| last.as_ref() != Some(&input.bucket))?.bucket;
                *last = Some(next.clone());
                Some(next)
            }
        }
    }
}
