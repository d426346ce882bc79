//! Why a text is no query.

use super::limits::{
    CLAUSES_MAX, DEPTH_MAX, FIELD_BYTES_MAX, GROUP_CLAUSES_MAX, PATTERN_CHARS_MAX, PATTERNS_MAX, QUERY_BYTES_MAX,
    TERM_BYTES_MAX, WILDCARDS_MAX,
};

/// A text is no query: where that shows, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at character {offset_chars}: {problem}")]
pub struct QueryError {
    /// How many characters lie before the place.
    pub offset_chars: usize,
    /// What is wrong there.
    pub problem: QueryProblem,
}

/// What is wrong with a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryProblem {
    /// There is nothing but spaces.
    #[error("the query is empty; *:* finds all documents")]
    Empty,
    /// Something else has to stand here.
    #[error("{found} cannot stand here; {wanted} is needed")]
    Unexpected {
        /// The beginning of what stands here.
        found: String,
        /// What could.
        wanted: &'static str,
    },
    /// A word has neither a field nor a default field.
    #[error("a word without a field needs a default field (parameter df); otherwise write field:word")]
    NoField,
    /// `*:` is followed by something else than `*`.
    #[error("the field * can only be asked for everything, as *:*")]
    AnyField,
    /// A quote, a slash or a bracket is not closed.
    #[error("{0} opens something that is never closed; put \\ before it if it is part of a word")]
    Unclosed(char),
    /// A backslash ends the query.
    #[error("\\ has no character behind it; write \\\\ for a backslash")]
    LoneBackslash,
    /// `\u` without a character of Unicode.
    #[error("\\u needs four hexadecimal digits that are a character, such as \\u0041")]
    BadUnicodeEscape,
    /// No usable number after `^`.
    #[error("^ needs a number directly behind it, such as ^2 or ^0.5")]
    BadBoost,
    /// A number of edits that is not whole.
    #[error("a number of edits is whole, such as ~2; a similarity is less than 1, such as ~0.8")]
    FractionalEdits,
    /// The inside of a range.
    #[error("a range is written [a TO b], with {{ or }} where a bound is excluded and * for no bound")]
    BadRange,
    /// Solr's local parameters.
    #[error("local parameters {{!...}} are not supported")]
    LocalParameters,
    /// Solr's comments, or a regular expression that begins with a repetition.
    #[error("/* begins no regular expression, and comments are not supported")]
    Comment,
    /// `//`
    #[error("a regular expression has at least one character; write \\/ for a slash in a word")]
    EmptyRegex,
    /// A regular expression that cannot be used.
    #[error("{0}")]
    BadRegex(super::lucene_regex::BadRegex),
    /// More bytes than a query has.
    #[error("a query has at most {QUERY_BYTES_MAX} bytes")]
    TooLong,
    /// Too many groups inside each other.
    #[error("at most {DEPTH_MAX} groups can lie inside each other")]
    TooDeep,
    /// Too many clauses in a group.
    #[error("a group has at most {GROUP_CLAUSES_MAX} clauses")]
    TooManyClausesInGroup,
    /// Too many clauses.
    #[error("a query has at most {CLAUSES_MAX} clauses")]
    TooManyClauses,
    /// The name of a field is too long.
    #[error("the name of a field has at most {FIELD_BYTES_MAX} bytes")]
    FieldTooLong,
    /// A word, a phrase or a bound is too long.
    #[error("a word, a phrase or a bound has at most {TERM_BYTES_MAX} bytes")]
    TermTooLong,
    /// A pattern is too long.
    #[error("a prefix, a fuzzy word, a regular expression or a pattern has at most {PATTERN_CHARS_MAX} characters")]
    PatternTooLong,
    /// A pattern has too many wildcards.
    #[error("a pattern has at most {WILDCARDS_MAX} wildcards")]
    TooManyWildcards,
    /// Too many patterns.
    #[error("a query has at most {PATTERNS_MAX} prefixes, fuzzy words, regular expressions and patterns")]
    TooManyPatterns,
}

impl QueryProblem {
    /// The error at a place of a text.
    pub(super) fn at(self, text: &str, offset_bytes: usize) -> QueryError {
        let before = text.char_indices().take_while(|(at, _)| *at < offset_bytes);
        QueryError { offset_chars: before.count(), problem: self }
    }
}
