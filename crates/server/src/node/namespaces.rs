//! The list of the namespaces of records in the metadata (docs/architecture/metadata-records.md).

use super::functions::NodeFunctions;
use ombak_kv::buckets::Namespaces;

/// The namespaces that this program knows.
pub fn of_node(functions: &NodeFunctions) -> Namespaces {
    Namespaces::new(vec![functions.namespace()])
}
