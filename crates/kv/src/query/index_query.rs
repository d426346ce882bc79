//! What a query asks for, and what it finds.

use bytes::Bytes;
use ombak_types::{Bucket, IndexTerm};
use regex::bytes::Regex;
use std::ops::Bound;
use std::time::Duration;

/// What a query asks for.
#[derive(Clone, Debug)]
pub struct IndexQuery {
    /// Where.
    pub bucket: Bucket,
    /// What.
    pub of: QueryOf,
    /// Term (none for keys) and key where the page before ended.
    pub after: Option<(Option<IndexTerm>, Bytes)>,
    /// How many matches at most.
    pub results_max: Option<usize>,
    /// What a term, or a key where keys are asked for, has to match.
    pub pattern: Option<Regex>,
    /// Of keys: also those that were deleted and are not reaped yet, if the node is configured to show them.
    pub shows_tombstones: bool,
}

/// What a query looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryOf {
    /// Entries of a field between two terms, both included.
    Terms {
        /// With its `_bin` or `_int`.
        field: Bytes,
        /// The first term.
        from: IndexTerm,
        /// The last term.
        to: IndexTerm,
    },
    /// Keys (`$key`, `$bucket`).
    Keys {
        /// The first key.
        from: Bound<Bytes>,
        /// The last key.
        to: Bound<Bytes>,
    },
}

impl QueryOf {
    /// What is asked: the field, or `$key` for keys.
    pub(crate) fn index(&self) -> Bytes {
        match self {
            Self::Terms { field, .. } => field.clone(),
            Self::Keys { .. } => Bytes::from_static(b"$key"),
        }
    }
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMatch {
    /// The term; none where keys were asked for.
    pub term: Option<IndexTerm>,
    /// The key.
    pub key: Bytes,
}

/// How a node answers queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryConfig {
    /// Time limit of queries that name none; zero is no limit.
    pub timeout: Duration,
    /// Whether queries of `$key` show keys that were deleted and are not reaped yet.
    pub shows_tombstones: bool,
    /// Whether each query is logged at its end.
    pub logs: bool,
}
