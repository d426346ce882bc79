//! What a search may cost.

use ombak_search::merge::FACET_VALUES_MAX;

/// Terms that the prefixes, patterns, regular expressions, fuzzy words and ranges of texts of a
/// search match together. Prefixes and ranges of strings need not look at terms one by one, so they
/// have no such bound.
pub const MATCHED_TERMS_MAX: usize = 1_000_000;

/// Bytes that an automaton of a regular expression takes.
pub const REGEX_BYTES_MAX: usize = 1 << 20;

/// Bytes of the sets of documents that ranges, patterns and loose phrases find in a segment.
pub const SET_BYTES_MAX: usize = 128 << 20;

/// Bytes of the stored fields of all documents that one node tells.
pub const TOLD_BYTES_MAX: usize = 256 << 20;

/// Steps of one loose phrase in one document, if it has a word twice.
pub(crate) const PHRASE_STEPS_MAX: usize = 10_000;

/// The limits of a search. Tests make them smaller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) matched_terms: usize,
    pub(crate) set_bytes: usize,
    pub(crate) facet_values: usize,
    pub(crate) told_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            matched_terms: MATCHED_TERMS_MAX,
            set_bytes: SET_BYTES_MAX,
            facet_values: FACET_VALUES_MAX,
            told_bytes: TOLD_BYTES_MAX,
        }
    }
}
