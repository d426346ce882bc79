//! Chooses which of several backends stores the objects of a bucket (docs/riak/backends.md §6).
//!
//! What it is: the rules of the choice. Prefixes of untyped buckets come first, then the property
//! `backend` of the bucket or of its type, then the default backend. Each lookup reads the
//! properties as they are at that moment. A bucket whose type the node does not know has no
//! backend: the default one may be wrong.
//!
//! What it is not: it moves no objects when a property changes.

use super::BucketRegistry;
use bytes::Bytes;
use ombak_storage::{Selector, StorageError};
use ombak_types::names::{DEFAULT_TYPE, split_storage_key};
use std::sync::{Arc, OnceLock};
use xxhash_rust::xxh3::xxh3_64;

/// The backends of a node that has several, and the rules that assign buckets to them.
#[derive(Debug)]
pub struct BackendChoice {
    names: Vec<Bytes>,
    default: usize,
    prefixes: Vec<(Vec<u8>, usize)>,
    buckets: OnceLock<Arc<BucketRegistry>>,
}

impl BackendChoice {
    /// Creates the rules for backends with these `names`. `default` is the index of the backend for
    /// buckets that name none. `prefixes` holds prefixes of untyped buckets, each with the index of
    /// its backend; the first prefix that matches decides.
    pub fn new(names: Vec<Bytes>, default: usize, prefixes: Vec<(Vec<u8>, usize)>) -> Self {
        Self { names, default, prefixes, buckets: OnceLock::new() }
    }

    /// The names that the property `backend` may hold.
    pub fn names(&self) -> &[Bytes] {
        &self.names
    }

    /// Sets the registry in which properties are looked up. Until then, `select` finds a backend
    /// only by prefix.
    pub fn use_properties(&self, buckets: Arc<BucketRegistry>) {
        // A second registry would mean a second engine over the same stores, so the first one
        // stays.
        let _ = self.buckets.set(buckets);
    }

    /// A number over the rules. Where it differs, some bucket may be on another backend.
    pub(crate) fn print(&self) -> u64 {
        xxh3_64(format!("{:?}", (&self.names, self.default, &self.prefixes)).as_bytes())
    }

    fn by_prefix(&self, bucket_type: &[u8], bucket: &[u8]) -> Option<usize> {
        let untyped = bucket_type == DEFAULT_TYPE;
        self.prefixes.iter().find(|(prefix, _)| untyped && bucket.starts_with(prefix)).map(|(_, at)| *at)
    }
}

impl Selector for BackendChoice {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        let (bucket_type, bucket, user_key) =
            split_storage_key(key).map_err(|error| StorageError::NoBackend(error.to_string()))?;
        if let Some(at) = self.by_prefix(bucket_type, bucket) {
            return Ok(at);
        }
        let Some(buckets) = self.buckets.get() else {
            return Err(StorageError::NoBackend("the properties of buckets are not known yet".into()));
        };
        let snapshot = buckets.snapshot();
        let wanted = match snapshot.backend_of(bucket_type, &key[..key.len() - user_key.len()]) {
            Some(Some(wanted)) => wanted,
            Some(None) => return Ok(self.default),
            None => return Err(StorageError::NoBackend(unknown_type(bucket_type))),
        };
        self.names
            .iter()
            .position(|name| name == wanted)
            .ok_or_else(|| StorageError::NoBackend(self.unknown(bucket, wanted)))
    }
}

/// A node of a cluster may get copies before it hears of their type. It refuses them, and gets them
/// again from whoever sent them.
#[cold]
fn unknown_type(bucket_type: &[u8]) -> String {
    format!(
        "this node does not know the bucket type '{}' yet, so it does not know its backend",
        bucket_type.escape_ascii()
    )
}

impl BackendChoice {
    #[cold]
    fn unknown(&self, bucket: &[u8], wanted: &[u8]) -> String {
        let names = self.names.iter().map(|name| name.escape_ascii().to_string()).collect::<Vec<_>>().join(", ");
        format!(
            "the property 'backend' of bucket '{}' is '{}', which is not configured (there are {names}): configure \
             multi_backend.{}.storage_backend again, or change the property",
            bucket.escape_ascii(),
            wanted.escape_ascii(),
            wanted.escape_ascii()
        )
    }
}
