//! The file with bucket types to create before an import. Riak keeps its bucket types in cluster
//! metadata, not with the data.
//!
//! An example: `{"carts": {"props": {"n_val": 3}}, "visits": {"props": {"datatype": "counter"}}}`

use ombak_kv::BucketRegistry;
use ombak_kv::buckets::{PropsError, TypeStatus};
use ombak_types::PropMap;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeEntry {
    #[serde(default)]
    props: PropMap,
}

/// Creates and activates the types of a file. A type that is already active stays as it is.
pub fn create_types(path: &Path, registry: &BucketRegistry) -> Result<(), String> {
    let text = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let types: BTreeMap<String, TypeEntry> = serde_json::from_slice(&text).map_err(|e| {
        format!("{}: {e}; it has to look like {{\"carts\": {{\"props\": {{\"n_val\": 3}}}}}}", path.display())
    })?;
    for (name, TypeEntry { props }) in &types {
        if matches!(registry.type_status(name.as_bytes()), Some((TypeStatus::Active, _))) {
            continue;
        }
        registry
            .create_type(name.as_bytes(), props)
            .and_then(|()| registry.activate_type(name.as_bytes()))
            .map_err(|e| format!("{}: bucket type {name}: {}", path.display(), reason(&e)))?;
    }
    Ok(())
}

fn reason(error: &PropsError) -> String {
    match error {
        PropsError::Invalid(errors) => errors.to_lines(),
        other => other.to_string(),
    }
}
