//! The indexes and schemas of the cluster: a namespace of records in the metadata.
//!
//! What it is: [`Catalog`] knows all records, checks new ones, and checks that buckets name indexes
//! that exist.
//!
//! What it is not: it changes no record. That is the business of the administration.
//!
//! Invariant: a record that cannot be read, because a later version wrote it, is left alone and
//! counts as absent on this node.

mod index_record;
mod names;
mod namespace;
mod schema_record;

pub(crate) use index_record::IndexRecord;
pub use names::NameProblem;
pub(crate) use names::{check_index_name, check_schema_name};
pub(crate) use namespace::{Catalog, index_key, schema_key};
pub use namespace::{NAMESPACE, namespace_without_search};
pub(crate) use schema_record::{BadRecord, SchemaRecord};
