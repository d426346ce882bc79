//! The list of the namespaces of records in the metadata (docs/architecture/metadata-records.md).

use super::functions::NodeFunctions;
use ombak_api::NodeSecurity;
use ombak_api::security::SecurityNamespace;
use ombak_kv::buckets::{Namespaces, RecordNamespace};
use ombak_searching::{Search, namespace_without_search};
use std::sync::Arc;

/// The namespaces that this program knows.
pub fn of_node(functions: &NodeFunctions, security: &Arc<NodeSecurity>, search: Option<&Arc<Search>>) -> Namespaces {
    let mut namespaces: Vec<Arc<dyn RecordNamespace>> =
        vec![functions.namespace(), Arc::new(SecurityNamespace(Arc::clone(security)))];
    namespaces.push(search.map_or_else(namespace_without_search, |search| search.namespace()));
    Namespaces::new(namespaces)
}
