//! The request and the results of an index query.

use bytes::Bytes;
use ombak_types::{Bucket, IndexTerm};
use regex::bytes::{Regex, RegexBuilder};
use std::ops::Bound;
use std::time::Duration;

/// The maximum size of a compiled pattern in bytes. The time to match a text can grow with the
/// product of both sizes, and nothing interrupts it: it is about a second for the longest key.
const PATTERN_BYTES_MAX: usize = 128 << 10;

/// Compiles the pattern of a query. It matches bytes and not characters, because Riak treats terms
/// as bytes, too.
pub fn compile_pattern(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).unicode(false).size_limit(PATTERN_BYTES_MAX).build()
}

/// An index query.
#[derive(Clone, Debug)]
pub struct IndexQuery {
    /// The bucket that is queried.
    pub bucket: Bucket,
    /// The entries or keys that are queried.
    pub range: QueryRange,
    /// The term (`None` for keys) and the key where the previous page ended.
    pub after: Option<(Option<IndexTerm>, Bytes)>,
    /// Maximum number of results.
    pub results_max: Option<usize>,
    /// A pattern that the term must match, or the key when keys are queried.
    pub pattern: Option<Regex>,
    /// For queries of keys: also return keys that are deleted but not reaped yet, if the node's
    /// configuration allows it.
    pub shows_tombstones: bool,
}

/// The range of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryRange {
    /// The entries of a field between two terms, both included.
    Terms {
        /// The name of the field, with its `_bin` or `_int`.
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

impl QueryRange {
    /// The name of the index: the field, or `$key` for keys.
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
    /// The term; `None` when keys were queried.
    pub term: Option<IndexTerm>,
    /// The key.
    pub key: Bytes,
}

/// The node's configuration of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryConfig {
    /// Time limit of queries that do not set one; zero means no limit.
    pub timeout: Duration,
    /// Whether queries of `$key` may return keys that are deleted but not reaped yet.
    pub shows_tombstones: bool,
    /// Whether each query is logged at its end.
    pub logs: bool,
    /// Whether folds find nothing, as in a node of Riak that keeps no trees.
    pub has_empty_folds: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the compiled pattern bounds the time for a text.
    #[test]
    fn a_pattern_that_would_be_slow_is_refused() {
        let pattern = |count: u32| compile_pattern(&format!("(?s)[ab]*a[ab]{{{count}}}c"));
        assert!(pattern(500).is_ok());
        assert!(matches!(pattern(5_000), Err(regex::Error::CompiledTooBig(_))));
        let words: Vec<_> = (0..300).map(|number| format!("word-{number}")).collect();
        assert!(compile_pattern(&words.join("|")).is_ok());
    }
}
