//! The schema of indexes that name none.

use super::problem::SchemaError;
use super::tree::Schema;

/// Its name.
pub const DEFAULT_SCHEMA_NAME: &str = "_yz_default";

/// Its text. It has the fields and dynamic fields of Riak's default schema.
pub const DEFAULT_SCHEMA_XML: &str = include_str!("default_schema.xml");

/// The schema of indexes that name none.
///
/// # Errors
/// None: a test reads it.
pub fn default_schema() -> Result<Schema, SchemaError> {
    Schema::read(DEFAULT_SCHEMA_XML.as_bytes())
}
