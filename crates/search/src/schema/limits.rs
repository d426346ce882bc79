//! How large a schema can be. Riak's default schema has 43 KB, 120 fields and 60 types.

/// Bytes of a schema.
pub const SCHEMA_BYTES_MAX: usize = 1_048_576;

/// Fields, dynamic fields, copies and types of a schema, each.
pub const ENTRIES_MAX: usize = 4_096;

/// Filters of an analyzer, and those for characters.
pub const FILTERS_MAX: usize = 32;

/// Bytes of a name, and of an attribute's value.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Problems that are told, and notes. There can be more.
pub const REMARKS_MAX: usize = 32;
