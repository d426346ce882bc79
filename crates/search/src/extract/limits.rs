//! How much a value can have for an index.

/// Bytes of a value that is read.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// Pairs of a value.
pub const PAIRS_MAX: usize = 16_384;

/// Bytes of a name, with those of what lies around it.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Tags of an object.
pub const TAGS_MAX: usize = 256;
