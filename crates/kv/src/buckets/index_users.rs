//! Which bucket types and buckets name which search indexes.

use super::state::Snapshot;
use bytes::Bytes;
use ombak_types::Bucket;
use ombak_types::names::DEFAULT_TYPE;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who names a search index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUsers {
    /// Bucket types.
    pub types: Vec<Bytes>,
    /// Buckets that name it by their own properties, of other types.
    pub buckets: Vec<Bucket>,
    /// Buckets of these types that name another index by their own properties, or none.
    pub excluded: Vec<Bucket>,
}

impl IndexUsers {
    /// Whether nobody names the index.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty() && self.buckets.is_empty()
    }
}

impl Snapshot {
    /// Who names each search index.
    pub fn index_users(&self) -> BTreeMap<Arc<str>, IndexUsers> {
        let mut users: BTreeMap<Arc<str>, IndexUsers> = BTreeMap::new();
        for name in std::iter::once(Bytes::from_static(DEFAULT_TYPE)).chain(self.records.types.keys().cloned()) {
            if let Some(index) = self.props_of_type(&name).and_then(|props| props.search_index.clone()) {
                users.entry(index).or_default().types.push(name);
            }
        }
        for bucket in self.records.buckets.keys() {
            let Ok(props) = self.props(bucket) else { continue };
            let of_type = self.props_of_type(&bucket.bucket_type).and_then(|props| props.search_index.clone());
            if props.search_index == of_type {
                continue;
            }
            if let Some(index) = &props.search_index {
                users.entry(index.clone()).or_default().buckets.push(bucket.clone());
            }
            if let Some(index) = of_type {
                users.entry(index).or_default().excluded.push(bucket.clone());
            }
        }
        users
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::{BucketRegistry, Namespaces};
    use ombak_storage::fs::RealFs;
    use serde_json::json;

    #[test]
    fn types_buckets_and_exceptions_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let registry = BucketRegistry::open(Arc::new(RealFs), dir.path(), "n", &Default::default()).unwrap();
        let registry = registry.with_namespaces(Namespaces::new(Vec::new()));
        let map = |value: serde_json::Value| value.as_object().unwrap().clone();
        registry.create_type(b"t", &map(json!({"search_index": "a"}))).unwrap();
        registry.activate_type(b"t").unwrap();
        let set = |bucket: &Bucket, index: &str| {
            registry.set_bucket(bucket, &map(json!({"search_index": index}))).unwrap();
        };
        let (same, other, none) = (Bucket::typed("t", "same"), Bucket::typed("t", "other"), Bucket::typed("t", "none"));
        set(&same, "a");
        set(&other, "b");
        set(&none, "_dont_index_");
        set(&Bucket::untyped("own"), "b");
        registry.set_bucket(&Bucket::untyped("plain"), &map(json!({"n_val": 2}))).unwrap();
        let users = registry.snapshot().index_users();
        let a = IndexUsers {
            types: vec![Bytes::from_static(b"t")],
            buckets: Vec::new(),
            excluded: vec![none.clone(), other.clone()],
        };
        let b = IndexUsers { buckets: vec![Bucket::untyped("own"), other], ..IndexUsers::default() };
        assert_eq!(users, [("a".into(), a), ("b".into(), b)].into());
    }
}
