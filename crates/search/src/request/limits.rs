//! How much a search may ask for. Solr has none of these limits.

/// Parameters of a request.
pub const PARAMETERS_MAX: usize = 1_024;

/// Bytes of the names and values of a request's parameters.
pub const PARAMETERS_BYTES_MAX: usize = 1 << 20;

/// Documents of an answer. A cursor reads more, page by page.
pub const ROWS_MAX: usize = 10_000;

/// Documents before the first one of an answer. Every node sorts all of them, and a cursor needs
/// none.
pub const START_MAX: usize = 100_000;

/// Filters (`fq`).
pub const FILTERS_MAX: usize = 64;

/// Keys to sort by.
pub const SORT_KEYS_MAX: usize = 16;

/// Names and patterns of fields to return.
pub const FIELDS_MAX: usize = 1_024;

/// Patterns of names among them.
pub const FIELD_PATTERNS_MAX: usize = 16;

/// Bytes of such a pattern.
pub const FIELD_PATTERN_BYTES_MAX: usize = 256;

/// Facets of a request, of all kinds together.
pub const FACETS_MAX: usize = 64;

/// Values that a facet of a field tells (`facet.limit`), if it does not tell all (-1).
pub const FACET_LIMIT_MAX: usize = 10_000;

/// Ranges of a range facet.
pub const FACET_RANGES_MAX: usize = 10_000;

/// Characters of a stranger's text that an error repeats.
pub(crate) const SHOWN_CHARS_MAX: usize = 64;
