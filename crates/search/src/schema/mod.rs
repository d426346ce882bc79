//! Solr's XML schemas.
//!
//! ```text
//!  XML --read--> types, fields, dynamic fields, copies = Schema
//!  name of a value --resolve--> field: exact name, else the longest pattern
//!                  --copies---> other names that get the same value
//! ```
//!
//! What it is: the reader of a schema, and the answer to which field a name is. [`default_schema`]
//! is `_yz_default`, what an index has that names no schema.
//!
//! What it is not: analyzers are data here; nothing is split into words.
//!
//! Invariants:
//! * A schema has the fields that Riak needs ([`YZ_FIELDS`]), or it is refused.
//! * What a schema asks and Ombak cannot do is a problem with its line, and the schema is refused.
//!   What has another effect than in Solr, or is in a type that no field uses, is a note with its
//!   line.
//! * Everything is bounded ([`limits`]).

mod analyzer;
#[cfg(test)]
mod cases;
mod copy_field;
mod default_schema;
mod field;
mod field_type;
pub mod limits;
mod name_pattern;
mod problem;
mod properties;
mod reader;
mod tree;
mod yz_fields;

pub use analyzer::{Analyzer, Component};
pub use copy_field::{Copied, CopyField};
pub use default_schema::{DEFAULT_SCHEMA_NAME, DEFAULT_SCHEMA_XML, default_schema};
pub use field::Field;
pub use field_type::{FieldType, Kind};
pub use name_pattern::NamePattern;
pub use problem::{Remark, SchemaError};
pub use properties::Properties;
pub use tree::Schema;
pub use yz_fields::{UNIQUE_KEY, YZ_FIELDS};
