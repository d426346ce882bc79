//! The state of the registry, and the effective properties that follow from it.

use bytes::Bytes;
use ombak_types::names::{DEFAULT_TYPE, encode_bucket_prefix};
use ombak_types::props::{BucketProps, PropMap, created_type_defaults, default_type_defaults};
use ombak_types::{Bucket, Error};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// The state of a bucket type in its life cycle (docs/riak/semantics.md §2.3). `Display` is the
/// text of `bucket-type status` after the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeStatus {
    /// This node knows the type; another node may not know it yet.
    Created,
    /// All nodes know the type: it can be activated.
    Ready,
    /// The type is in use, for ever.
    Active,
}

impl fmt::Display for TypeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "has been created but cannot be activated yet",
            Self::Ready => "has been created and may be activated",
            Self::Active => "is active",
        })
    }
}

/// A line of `bucket-type list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeSummary {
    /// The type's name.
    pub name: Bytes,
    /// The state of the type.
    pub status: TypeStatus,
}

impl fmt::Display for TypeSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let active = if self.status == TypeStatus::Active { "active" } else { "not active" };
        write!(f, "{} ({active})", self.name.escape_ascii())
    }
}

/// A created type. `overrides` are its differences from the defaults.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TypeRecord {
    pub active: bool,
    pub overrides: PropMap,
}

/// Everything that is stored on disk, ordered so that equal states give equal files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Records {
    pub types: BTreeMap<Bytes, TypeRecord>,
    pub buckets: BTreeMap<Bucket, PropMap>,
}

/// Settings of this node that do not depend on the records.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Shown as the claimant of types.
    pub node_name: String,
    /// The properties of untyped buckets that the configuration sets (`buckets.default.*`) and that
    /// differ from Riak's defaults.
    pub default_overrides: PropMap,
    /// The values that the property `backend` may have. `None` means that this node has one backend
    /// and ignores the property.
    pub backends: Option<Vec<Bytes>>,
}

/// Effective properties, as names with JSON values and as typed properties.
#[derive(Clone, Debug)]
struct Effective {
    map: PropMap,
    props: Arc<BucketProps>,
}

impl Effective {
    fn new(map: PropMap) -> Self {
        let props = Arc::new(BucketProps::from_map(&map));
        Self { map, props }
    }
}

/// One consistent state with all effective properties computed. Requests read it.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) records: Records,
    default_type: Effective,
    types: HashMap<Bytes, Effective>,
    buckets: HashMap<Bucket, Effective>,
    /// The backends of buckets with properties of their own, by the prefix of their storage keys.
    bucket_backends: HashMap<Vec<u8>, Option<Bytes>>,
}

impl Snapshot {
    pub(super) fn new(settings: &Settings, records: Records) -> Self {
        let mut defaults = default_type_defaults();
        defaults.extend(settings.default_overrides.clone());
        defaults.sort_keys();
        let mut snapshot = Self {
            records: Records::default(),
            default_type: Effective::new(defaults),
            types: HashMap::new(),
            buckets: HashMap::new(),
            bucket_backends: HashMap::new(),
        };
        for (name, record) in &records.types {
            let map = type_map(record, &settings.node_name);
            snapshot.types.insert(name.clone(), Effective::new(map));
        }
        for (bucket, overrides) in &records.buckets {
            if let Some(base) = snapshot.of_type(&bucket.bucket_type) {
                let effective = Effective::new(bucket_map(bucket, &base.map, overrides));
                let mut prefix = Vec::new();
                encode_bucket_prefix(bucket, &mut prefix);
                snapshot.bucket_backends.insert(prefix, effective.props.backend.clone());
                snapshot.buckets.insert(bucket.clone(), effective);
            }
        }
        snapshot.records = records;
        snapshot
    }

    /// The state of a type; `None` when the type is undefined. With one node, a created type is
    /// known everywhere.
    pub fn status(&self, bucket_type: &[u8]) -> Option<TypeStatus> {
        if bucket_type == DEFAULT_TYPE {
            return Some(TypeStatus::Active);
        }
        let record = self.records.types.get(bucket_type)?;
        Some(if record.active { TypeStatus::Active } else { TypeStatus::Ready })
    }

    /// The effective properties of a type, active or not.
    pub fn type_map(&self, bucket_type: &[u8]) -> Option<&PropMap> {
        self.of_type(bucket_type).map(|e| &e.map)
    }

    /// The effective properties of a bucket; `None` when its type is not active.
    pub fn bucket_map(&self, bucket: &Bucket) -> Option<&PropMap> {
        self.of_bucket(bucket).map(|e| &e.map)
    }

    /// The effective properties of a bucket. Fails with [`Error::NoType`] when its type is not
    /// active. Every request calls this.
    pub fn props(&self, bucket: &Bucket) -> Result<&Arc<BucketProps>, Error> {
        self.of_bucket(bucket).map(|e| &e.props).ok_or_else(|| Error::NoType(bucket.clone()))
    }

    /// The property `backend` of the bucket whose storage keys begin with `prefix` and whose type
    /// is `bucket_type`. With several backends, every access to a store calls this.
    pub(crate) fn backend_of(&self, bucket_type: &[u8], prefix: &[u8]) -> Option<&Bytes> {
        if !self.bucket_backends.is_empty()
            && let Some(own) = self.bucket_backends.get(prefix)
        {
            return own.as_ref();
        }
        self.of_type(bucket_type)?.props.backend.as_ref()
    }

    fn of_bucket(&self, bucket: &Bucket) -> Option<&Effective> {
        if !self.buckets.is_empty()
            && let Some(own) = self.buckets.get(bucket)
        {
            return Some(own);
        }
        if bucket.is_default_type() {
            return Some(&self.default_type);
        }
        self.types.get(&bucket.bucket_type).filter(|_| self.status(&bucket.bucket_type) == Some(TypeStatus::Active))
    }

    fn of_type(&self, bucket_type: &[u8]) -> Option<&Effective> {
        if bucket_type == DEFAULT_TYPE { Some(&self.default_type) } else { self.types.get(bucket_type) }
    }
}

/// The properties of a type in the order of Riak's answers: the defaults, the type's own, whether
/// it is active, and its claimant.
fn type_map(record: &TypeRecord, claimant: &str) -> PropMap {
    let mut map = created_type_defaults();
    map.extend(record.overrides.clone());
    map.insert("active".into(), Value::Bool(record.active));
    map.insert("claimant".into(), Value::from(claimant));
    map
}

fn bucket_map(bucket: &Bucket, base: &PropMap, overrides: &PropMap) -> PropMap {
    let mut map = base.clone();
    map.extend(overrides.clone());
    if bucket.is_default_type() {
        map.sort_keys();
    }
    map
}
