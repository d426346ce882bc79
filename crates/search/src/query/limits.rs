//! What a query may ask for. Lucene bounds clauses only. The other limits keep the query of a
//! stranger from costing more than its length justifies.

/// Bytes of a query.
pub const QUERY_BYTES_MAX: usize = 65_536;

/// Groups inside each other.
pub const DEPTH_MAX: usize = 32;

/// Clauses of one group, as in Lucene.
pub const GROUP_CLAUSES_MAX: usize = 1_024;

/// Clauses of all groups of a query together.
pub const CLAUSES_MAX: usize = 4_096;

/// Bytes of the name of a field. Each clause of a group has the name of the group's field.
pub const FIELD_BYTES_MAX: usize = 1_024;

/// Bytes of a word, a phrase, a prefix or a bound of a range: Lucene indexes no longer term.
pub const TERM_BYTES_MAX: usize = 32_766;

/// Characters of a pattern with wildcards, of a regular expression, of a prefix or of a fuzzy word.
pub const PATTERN_CHARS_MAX: usize = 256;

/// Wildcards of one pattern, after neighbouring `*` have become one.
pub const WILDCARDS_MAX: usize = 16;

/// Patterns, regular expressions, prefixes and fuzzy words of a query.
pub const PATTERNS_MAX: usize = 64;

/// Edits of a fuzzy word, as in Lucene.
pub const EDITS_MAX: u8 = 2;
