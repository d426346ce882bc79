//! The list of the namespaces of records in the metadata (docs/architecture/metadata-records.md).

use super::functions::NodeFunctions;
use ombak_api::NodeSecurity;
use ombak_api::security::SecurityNamespace;
use ombak_kv::buckets::Namespaces;
use std::sync::Arc;

/// The namespaces that this program knows.
pub fn of_node(functions: &NodeFunctions, security: &Arc<NodeSecurity>) -> Namespaces {
    Namespaces::new(vec![functions.namespace(), Arc::new(SecurityNamespace(Arc::clone(security)))])
}
