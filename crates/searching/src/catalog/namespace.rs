//! The records of search, as a node knows them.

use super::index_record::IndexRecord;
use super::names::{check_index_name, check_schema_name};
use super::schema_record::SchemaRecord;
use ombak_kv::buckets::{OpenRecord, PropsError, RecordBounds, RecordNamespace, RecordUpdate};
use ombak_types::props::{DONT_INDEX, PropErrors, PropMap};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::warn;

/// The namespace of search.
pub const NAMESPACE: &str = "search";

const INDEX: &str = "index/";
const SCHEMA: &str = "schema/";

/// The key of the record of an index.
pub(crate) fn index_key(name: &str) -> Vec<u8> {
    format!("{INDEX}{name}").into_bytes()
}

/// The key of the record of a schema.
pub(crate) fn schema_key(name: &str) -> Vec<u8> {
    format!("{SCHEMA}{name}").into_bytes()
}

/// All records of search that this node knows. Reading never waits for a change.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    now: RwLock<Records>,
    /// Whether search is off on this node. Then buckets may name indexes that do not exist, as on a
    /// Riak without search.
    is_off: bool,
}

#[derive(Debug, Default)]
struct Records {
    indexes: BTreeMap<String, Arc<IndexRecord>>,
    schemas: BTreeMap<String, Arc<SchemaRecord>>,
}

/// The records of search on a node on which it is off. Other members may have search, and a bucket
/// that has another n_val than its index would not be found whole there. So this node checks that,
/// too.
pub fn namespace_without_search() -> Arc<dyn RecordNamespace> {
    Arc::new(Catalog { is_off: true, ..Catalog::default() })
}

impl Catalog {
    /// The record of an index.
    pub(crate) fn index(&self, name: &str) -> Option<Arc<IndexRecord>> {
        self.now.read().indexes.get(name).cloned()
    }

    /// All indexes, by name.
    pub(crate) fn indexes(&self) -> BTreeMap<String, Arc<IndexRecord>> {
        self.now.read().indexes.clone()
    }

    /// The schemas that were uploaded, by name.
    pub(crate) fn schemas(&self) -> BTreeMap<String, Arc<SchemaRecord>> {
        self.now.read().schemas.clone()
    }

    /// The record of a schema.
    pub(crate) fn schema(&self, name: &str) -> Option<Arc<SchemaRecord>> {
        self.now.read().schemas.get(name).cloned()
    }
}

/// What a key names.
enum Named<'a> {
    Index(&'a str),
    Schema(&'a str),
}

fn named(key: &[u8]) -> Option<Named<'_>> {
    let key = std::str::from_utf8(key).ok()?;
    key.strip_prefix(INDEX).map(Named::Index).or_else(|| key.strip_prefix(SCHEMA).map(Named::Schema))
}

impl RecordNamespace for Catalog {
    fn name(&self) -> &'static str {
        NAMESPACE
    }

    fn bounds(&self) -> RecordBounds {
        RecordBounds { records_max: 2_000, values_bytes_max: 16 << 20 }
    }

    fn validate(&self, key: &[u8], value: &str) -> Result<(), PropsError> {
        let bad = |why: &dyn std::fmt::Display| PropsError::BadRecord(why.to_string());
        match named(key) {
            Some(Named::Index(name)) => {
                check_index_name(name).map_err(|why| bad(&why))?;
                IndexRecord::read(value).map(drop).map_err(|why| bad(&why))
            }
            Some(Named::Schema(name)) => {
                check_schema_name(name).map_err(|why| bad(&why))?;
                SchemaRecord::read(value).map(drop).map_err(|why| bad(&why))
            }
            None => Err(bad(&"a record of search is an index or a schema")),
        }
    }

    fn changed(&self, RecordUpdate { key, new, .. }: RecordUpdate<'_>) {
        let mut now = self.now.write();
        let unreadable = |why: &dyn std::fmt::Display| {
            warn!(record = %key.escape_ascii(), %why, "a record of search has no effect on this node");
        };
        match named(key) {
            Some(Named::Index(name)) => {
                now.indexes.remove(name);
                match new.map(|record| IndexRecord::read(&record.value)) {
                    Some(Ok(record)) => drop(now.indexes.insert(name.to_owned(), Arc::new(record))),
                    Some(Err(why)) => unreadable(&why),
                    None => {}
                }
            }
            Some(Named::Schema(name)) => {
                now.schemas.remove(name);
                match new.map(|record| SchemaRecord::read(&record.value)) {
                    Some(Ok(record)) => drop(now.schemas.insert(name.to_owned(), Arc::new(record))),
                    Some(Err(why)) => unreadable(&why),
                    None => {}
                }
            }
            None => {}
        }
    }

    /// A bucket or type can only name an index that exists and has its n_val.
    fn check_props(&self, effective: &PropMap, changes: &PropMap) -> Result<(), PropErrors> {
        if !changes.contains_key("search_index") && !changes.contains_key("n_val") {
            return Ok(());
        }
        let wanted = effective.get("search_index").and_then(serde_json::Value::as_str);
        let Some(wanted) = wanted.filter(|name| *name != DONT_INDEX) else { return Ok(()) };
        let Some(record) = self.index(wanted) else {
            if self.is_off {
                return Ok(());
            }
            return Err(PropErrors::of_text("search_index", format!("{wanted} does not exist")));
        };
        let n_val = effective.get("n_val").and_then(serde_json::Value::as_u64);
        if n_val != Some(u64::from(record.n_val)) {
            let text = format!("n_val has to be {}, the n_val of the index {wanted}", record.n_val);
            return Err(PropErrors::of_text("search_index", text));
        }
        Ok(())
    }

    fn conflict(&self, key: &[u8], own: &OpenRecord, of_cluster: Option<&OpenRecord>) -> Option<String> {
        let what = match named(key) {
            Some(Named::Index(name)) => format!("the search index '{name}'"),
            Some(Named::Schema(name)) => format!("the search schema '{name}'"),
            None => return None,
        };
        match of_cluster {
            Some(of_cluster) if of_cluster.value == own.value => None,
            Some(_) => Some(format!("{what} is another one in the cluster. Delete it here.")),
            None => Some(format!("{what} does not exist in the cluster. Create it there first, or delete it here.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;

    fn catalog() -> Catalog {
        with_index(Catalog::default())
    }

    fn with_index(catalog: Catalog) -> Catalog {
        let record = IndexRecord { schema: "s".into(), xml: b"<schema/>".to_vec(), n_val: 3, incarnation: 1, build: 0 };
        let record = OpenRecord { value: record.to_value().unwrap().into(), version: 1 };
        let key = Bytes::from(index_key("famous"));
        catalog.changed(RecordUpdate { key: &key, old: None, new: Some(&record) });
        catalog
    }

    fn check(effective: serde_json::Value, changes: serde_json::Value) -> Result<(), String> {
        let map = |value: serde_json::Value| value.as_object().unwrap().clone();
        catalog().check_props(&map(effective), &map(changes)).map_err(|errors| errors.to_lines())
    }

    #[test]
    fn a_node_without_search_checks_indexes_that_exist() {
        let catalog = with_index(Catalog { is_off: true, ..Catalog::default() });
        let check = |n_val: u32, index: &str| {
            let props = json!({"n_val": n_val, "search_index": index});
            catalog.check_props(props.as_object().unwrap(), props.as_object().unwrap()).is_ok()
        };
        assert!(check(3, "famous") && !check(5, "famous"));
        assert!(check(5, "none"), "Riak without search takes every name");
    }

    #[test]
    fn buckets_name_an_index_that_exists_and_has_their_n_val() {
        let changes = json!({"search_index": "famous"});
        assert_eq!(check(json!({"n_val": 3, "search_index": "famous"}), changes.clone()), Ok(()));
        let why = check(json!({"n_val": 5, "search_index": "famous"}), changes.clone()).unwrap_err();
        assert_eq!(why, "search_index: n_val has to be 3, the n_val of the index famous");
        let why = check(json!({"n_val": 5, "search_index": "famous"}), json!({"n_val": 5})).unwrap_err();
        assert_eq!(why, "search_index: n_val has to be 3, the n_val of the index famous");
        let why = check(json!({"n_val": 3, "search_index": "none"}), changes).unwrap_err();
        assert_eq!(why, "search_index: none does not exist");
        assert_eq!(check(json!({"n_val": 5, "search_index": "_dont_index_"}), json!({"n_val": 5})), Ok(()));
        // Other properties of a bucket whose index was deleted can be changed.
        assert_eq!(check(json!({"n_val": 3, "search_index": "none"}), json!({"allow_mult": true})), Ok(()));
    }

    #[test]
    fn records_are_checked_before_they_are_proposed() {
        let catalog = catalog();
        let valid = SchemaRecord { xml: b"<schema/>".to_vec() }.to_value().unwrap();
        assert_eq!(catalog.validate(&schema_key("s"), &valid), Ok(()));
        assert!(catalog.validate(&schema_key("a/b"), &valid).is_err());
        assert!(catalog.validate(&index_key("s"), &valid).is_err());
        assert!(catalog.validate(b"other", &valid).is_err());
    }
}
