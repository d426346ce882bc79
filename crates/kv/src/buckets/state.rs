//! The state of the registry, and the effective properties that follow from it.

use super::class_map::{ClassMap, ClassMaps, Prints, add_print, exclusion_print_of, print_of};
use super::open_record::{OpenRecord, OpenRecords, RecordName};
use bytes::Bytes;
use imbl::{HashMap, OrdMap};
use ombak_types::names::{DEFAULT_TYPE, encode_bucket_prefix, split_storage_key};
use ombak_types::props::{BucketProps, PropMap, created_type_defaults, default_type_defaults};
use ombak_types::{Bucket, Error};
use serde_json::Value;
use std::collections::BTreeSet;
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

/// A created type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeRecord {
    /// Whether the type is in use; then it stays in use for ever.
    pub active: bool,
    /// Its differences from the defaults.
    pub overrides: Arc<PropMap>,
    /// The number of the change that made it so; 0 without a cluster.
    pub version: u64,
}

/// A bucket with properties of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct BucketRecord {
    /// Its differences from its type.
    pub overrides: Arc<PropMap>,
    /// The number of the change that made it so; 0 without a cluster.
    pub version: u64,
}

/// A record that has changed, or is to be changed; without a record, there is none any more.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordChange {
    /// A bucket type.
    Type(Bytes, Option<TypeRecord>),
    /// A bucket.
    Bucket(Bucket, Option<BucketRecord>),
    /// A record of a namespace.
    Open(RecordName, Option<OpenRecord>),
}

/// Everything that is stored, ordered so that equal states give equal files. A clone shares
/// everything with its origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Records {
    pub types: OrdMap<Bytes, TypeRecord>,
    pub buckets: OrdMap<Bucket, BucketRecord>,
    pub open: OpenRecords,
}

impl Records {
    /// The record that a change replaces, as a change.
    pub fn present(&self, change: &RecordChange) -> RecordChange {
        match change {
            RecordChange::Type(name, _) => RecordChange::Type(name.clone(), self.types.get(name).cloned()),
            RecordChange::Bucket(bucket, _) => RecordChange::Bucket(bucket.clone(), self.buckets.get(bucket).cloned()),
            RecordChange::Open(name, _) => RecordChange::Open(name.clone(), self.open.named(name).cloned()),
        }
    }

    pub fn apply(&mut self, change: RecordChange) {
        match change {
            RecordChange::Type(name, Some(record)) => drop(self.types.insert(name, record)),
            RecordChange::Type(name, None) => drop(self.types.remove(&name)),
            RecordChange::Bucket(bucket, Some(record)) => drop(self.buckets.insert(bucket, record)),
            RecordChange::Bucket(bucket, None) => drop(self.buckets.remove(&bucket)),
            RecordChange::Open(name, record) => self.open.set(name, record),
        }
    }

    /// The buckets of a type that have properties of their own.
    fn buckets_of<'a>(&'a self, bucket_type: &'a Bytes) -> impl Iterator<Item = (&'a Bucket, &'a BucketRecord)> {
        let first = Bucket { bucket_type: bucket_type.clone(), name: Bytes::new() };
        self.buckets.range(first..).take_while(move |(bucket, _)| bucket.bucket_type == *bucket_type)
    }
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
    map: Arc<PropMap>,
    props: Arc<BucketProps>,
}

impl Effective {
    fn new(map: PropMap) -> Self {
        let props = Arc::new(BucketProps::from_map(&map));
        Self { map: Arc::new(map), props }
    }
}

/// A created type with its effective properties.
#[derive(Clone, Debug)]
struct CreatedType {
    active: bool,
    effective: Effective,
}

/// One consistent state with the effective properties of every bucket computed. Requests read it. A
/// clone shares everything with its origin, and one change costs O(log n), whatever the number of
/// buckets; the change of a type also costs something for each bucket of the type.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) records: Records,
    default_type: Effective,
    types: OrdMap<Bytes, CreatedType>,
    buckets: HashMap<Bucket, Arc<BucketProps>>,
    /// The properties of buckets with properties of their own, by the prefix of their storage keys.
    by_prefix: HashMap<Vec<u8>, Arc<BucketProps>>,
    /// Which keys are in which class and on which backend.
    class_maps: ClassMaps,
    /// Which keys are not in kept trees, by their n.
    exclusion_maps: ClassMaps,
    /// Whether some bucket may have commit hooks. It stays set when the last of them is gone.
    pub(crate) may_have_hooks: bool,
    /// The n_vals of changes that are decided, and that no request sees yet.
    pub(super) expected_n_vals: Arc<BTreeSet<u32>>,
}

impl Snapshot {
    pub(super) fn new(settings: &Settings, records: Records) -> Self {
        let mut defaults = default_type_defaults();
        defaults.extend(settings.default_overrides.clone());
        defaults.sort_keys();
        let default_type = Effective::new(defaults);
        let mut snapshot = Self {
            records: Records::default(),
            may_have_hooks: has_hooks(&default_type.props),
            default_type,
            types: OrdMap::new(),
            buckets: HashMap::new(),
            by_prefix: HashMap::new(),
            class_maps: ClassMaps::default(),
            exclusion_maps: ClassMaps::default(),
            expected_n_vals: Arc::default(),
        };
        let mut prints = Prints::new();
        let default = &snapshot.default_type.props;
        add_print(&mut prints, default.n_val, print_of(DEFAULT_TYPE, default));
        snapshot.class_maps.change(&Prints::new(), &prints);
        if default.aae_tree_exclude {
            let mut prints = Prints::new();
            add_print(&mut prints, default.n_val, exclusion_print_of(DEFAULT_TYPE));
            snapshot.exclusion_maps.change(&Prints::new(), &prints);
        }
        let Records { types, buckets, open } = records;
        snapshot.records.open = open;
        for (name, record) in types {
            snapshot.apply(settings, RecordChange::Type(name, Some(record)));
        }
        for (bucket, record) in buckets {
            snapshot.apply(settings, RecordChange::Bucket(bucket, Some(record)));
        }
        snapshot
    }

    /// Applies one change.
    pub(super) fn apply(&mut self, settings: &Settings, change: RecordChange) {
        let (before, excluded_before) = (self.class_prints_of(&change), self.exclusion_prints_of(&change));
        match &change {
            RecordChange::Type(name, record) => {
                match record {
                    Some(record) => {
                        let effective = Effective::new(type_map(record, &settings.node_name));
                        self.may_have_hooks |= has_hooks(&effective.props);
                        self.types.insert(name.clone(), CreatedType { active: record.active, effective });
                    }
                    None => drop(self.types.remove(name)),
                }
                let buckets: Vec<(Bucket, BucketRecord)> =
                    self.records.buckets_of(name).map(|(bucket, record)| (bucket.clone(), record.clone())).collect();
                buckets.iter().for_each(|(bucket, record)| self.set_bucket(bucket, Some(record)));
            }
            RecordChange::Bucket(bucket, record) => self.set_bucket(bucket, record.as_ref()),
            RecordChange::Open(..) => {}
        }
        let (after, excluded_after) = (self.class_prints_of(&change), self.exclusion_prints_of(&change));
        self.class_maps.change(&before, &after);
        self.exclusion_maps.change(&excluded_before, &excluded_after);
        self.records.apply(change);
    }

    /// The parts of the prints of the class maps that a change can alter.
    fn class_prints_of(&self, change: &RecordChange) -> Prints {
        let mut prints = Prints::new();
        match change {
            RecordChange::Type(name, _) => {
                if let Some(created) = self.types.get(name) {
                    let props = &created.effective.props;
                    add_print(&mut prints, props.n_val, print_of(name, props));
                }
                self.records.buckets_of(name).for_each(|(bucket, _)| self.add_prints_of_bucket(bucket, &mut prints));
            }
            RecordChange::Bucket(bucket, _) => self.add_prints_of_bucket(bucket, &mut prints),
            RecordChange::Open(..) => {}
        }
        prints
    }

    /// Adds nothing if the bucket has the class and the backend of its type. Otherwise its keys are
    /// in classes of their own, and missing in those of the type.
    fn add_prints_of_bucket(&self, bucket: &Bucket, prints: &mut Prints) {
        let Some(own) = self.buckets.get(bucket) else { return };
        let of_type = self.of_type(&bucket.bucket_type).map(|of_type| &of_type.props);
        if of_type.is_some_and(|of_type| ClassMap::places_alike(of_type, own)) {
            return;
        }
        let mut prefix = Vec::new();
        encode_bucket_prefix(bucket, &mut prefix);
        let print = print_of(&prefix, own);
        add_print(prints, own.n_val, print);
        if let Some(of_type) = of_type.filter(|of_type| of_type.n_val != own.n_val) {
            add_print(prints, of_type.n_val, print);
        }
    }

    /// The parts of the prints of the exclusion maps that a change can alter.
    fn exclusion_prints_of(&self, change: &RecordChange) -> Prints {
        let mut prints = Prints::new();
        match change {
            RecordChange::Type(name, _) => {
                if let Some(created) = self.types.get(name).filter(|created| created.effective.props.aae_tree_exclude) {
                    add_print(&mut prints, created.effective.props.n_val, exclusion_print_of(name));
                }
                let buckets = self.records.buckets_of(name);
                buckets.for_each(|(bucket, _)| self.add_exclusion_print_of_bucket(bucket, &mut prints));
            }
            RecordChange::Bucket(bucket, _) => self.add_exclusion_print_of_bucket(bucket, &mut prints),
            RecordChange::Open(..) => {}
        }
        prints
    }

    /// Adds nothing if the print of its type, which has the same n_val, says whether the bucket is
    /// excluded from kept trees.
    fn add_exclusion_print_of_bucket(&self, bucket: &Bucket, prints: &mut Prints) {
        let Some(own) = self.buckets.get(bucket) else { return };
        let of_type = self.of_type(&bucket.bucket_type);
        let is_of_class = |of_type: &Effective| of_type.props.n_val == own.n_val && of_type.props.aae_tree_exclude;
        if own.aae_tree_exclude != of_type.is_some_and(is_of_class) {
            let mut prefix = Vec::new();
            encode_bucket_prefix(bucket, &mut prefix);
            add_print(prints, own.n_val, exclusion_print_of(&prefix));
        }
    }

    /// Which keys of the classes with this n are not in kept trees, beside [`Self::class_map`]: two
    /// states in which both maps are equal have the same keys in kept trees.
    pub(crate) fn exclusion_map(&self, n: u32) -> ClassMap {
        self.exclusion_maps.of(n)
    }

    /// A number for the classes with this n: states of the registry with equal numbers have the
    /// same keys in them, also after a restart.
    pub fn class_print(&self, n: u32) -> u64 {
        self.class_maps.of(n).print
    }

    /// Which keys are in the classes with this n, and on which backend.
    pub(crate) fn class_map(&self, n: u32) -> ClassMap {
        self.class_maps.of(n)
    }

    /// Takes the place of another state, from which it was not made.
    pub(super) fn succeed(&mut self, earlier: &Self) {
        self.class_maps = self.class_maps.succeeding(&earlier.class_maps);
        self.exclusion_maps = self.exclusion_maps.succeeding(&earlier.exclusion_maps);
    }

    fn set_bucket(&mut self, bucket: &Bucket, record: Option<&BucketRecord>) {
        let mut prefix = Vec::new();
        encode_bucket_prefix(bucket, &mut prefix);
        let base = self.of_type(&bucket.bucket_type);
        match record.zip(base) {
            Some((record, base)) => {
                let props = Arc::new(BucketProps::from_map(&bucket_map(bucket, &base.map, &record.overrides)));
                self.by_prefix.insert(prefix, props.clone());
                self.may_have_hooks |= has_hooks(&props);
                self.buckets.insert(bucket.clone(), props);
            }
            None => {
                self.by_prefix.remove(&prefix);
                self.buckets.remove(bucket);
            }
        }
    }

    /// The state of a type; `None` when the type is undefined. What this node knows of a type was
    /// decided, so every member knows it or will.
    pub fn status(&self, bucket_type: &[u8]) -> Option<TypeStatus> {
        if bucket_type == DEFAULT_TYPE {
            return Some(TypeStatus::Active);
        }
        let created = self.types.get(bucket_type)?;
        Some(if created.active { TypeStatus::Active } else { TypeStatus::Ready })
    }

    /// The effective properties of a type, active or not.
    pub fn type_map(&self, bucket_type: &[u8]) -> Option<&PropMap> {
        self.of_type(bucket_type).map(|e| &*e.map)
    }

    /// The effective properties of the buckets of a type, active or not, that have none of their
    /// own.
    pub(super) fn props_of_type(&self, bucket_type: &[u8]) -> Option<&Arc<BucketProps>> {
        self.of_type(bucket_type).map(|of_type| &of_type.props)
    }

    /// The effective properties of untyped buckets that have none of their own.
    pub(super) fn default_type_props(&self) -> &Arc<BucketProps> {
        &self.default_type.props
    }

    /// The effective properties of a bucket; `None` when its type is not active.
    pub fn bucket_map(&self, bucket: &Bucket) -> Option<PropMap> {
        let base = self.of_active_type(&bucket.bucket_type)?;
        Some(match self.records.buckets.get(bucket) {
            Some(record) => bucket_map(bucket, &base.map, &record.overrides),
            None => (*base.map).clone(),
        })
    }

    /// The effective properties of a bucket. Fails with [`Error::NoType`] when its type is not
    /// active. Every request calls this.
    pub fn props(&self, bucket: &Bucket) -> Result<&Arc<BucketProps>, Error> {
        self.of_bucket(bucket).ok_or_else(|| Error::NoType(bucket.clone()))
    }

    /// The n_val of each class that buckets of a type can have, ascending.
    pub(crate) fn n_vals(&self, bucket_type: &[u8]) -> Vec<u32> {
        let own = self.buckets.iter().filter(|(bucket, _)| bucket.bucket_type == bucket_type);
        let own = own.map(|(_, props)| props.n_val);
        let all: BTreeSet<u32> = self.of_type(bucket_type).map(|e| e.props.n_val).into_iter().chain(own).collect();
        all.into_iter().collect()
    }

    /// The property `backend` of the bucket whose storage keys begin with `prefix` and whose type
    /// is `bucket_type`, if there is one; `None` when this node does not know the type. With
    /// several backends, every access to a store calls this.
    pub(crate) fn backend_of(&self, bucket_type: &[u8], prefix: &[u8]) -> Option<Option<&Bytes>> {
        if !self.by_prefix.is_empty()
            && let Some(own) = self.by_prefix.get(prefix)
        {
            return Some(own.backend.as_ref());
        }
        Some(self.of_type(bucket_type)?.props.backend.as_ref())
    }

    /// The properties of the bucket of a storage key, whether its type is active or not; `None`
    /// when this node does not know the type.
    pub fn props_of_key(&self, key: &[u8]) -> Option<&Arc<BucketProps>> {
        let (bucket_type, _, user_key) = split_storage_key(key).ok()?;
        let prefix = key.get(..key.len() - user_key.len())?;
        if !self.by_prefix.is_empty()
            && let Some(own) = self.by_prefix.get(prefix)
        {
            return Some(own);
        }
        self.of_type(bucket_type).map(|of_type| &of_type.props)
    }

    /// The n_vals of all types and buckets, also of those that are about to be in force.
    pub fn all_n_vals(&self) -> BTreeSet<u32> {
        let types = self.types.values().map(|created| &created.effective.props).chain([&self.default_type.props]);
        let in_force = types.chain(self.buckets.values()).map(|props| props.n_val);
        in_force.chain(self.expected_n_vals.iter().copied()).collect()
    }

    fn of_bucket(&self, bucket: &Bucket) -> Option<&Arc<BucketProps>> {
        if !self.buckets.is_empty()
            && let Some(own) = self.buckets.get(bucket)
        {
            return Some(own);
        }
        self.of_active_type(&bucket.bucket_type).map(|effective| &effective.props)
    }

    fn of_active_type(&self, bucket_type: &[u8]) -> Option<&Effective> {
        if bucket_type == DEFAULT_TYPE {
            return Some(&self.default_type);
        }
        self.types.get(bucket_type).filter(|created| created.active).map(|created| &created.effective)
    }

    fn of_type(&self, bucket_type: &[u8]) -> Option<&Effective> {
        if bucket_type == DEFAULT_TYPE {
            return Some(&self.default_type);
        }
        self.types.get(bucket_type).map(|created| &created.effective)
    }
}

fn has_hooks(props: &BucketProps) -> bool {
    !props.precommit.is_empty() || !props.postcommit.is_empty()
}

/// The properties of a type in the order of Riak's answers: the defaults, the type's own, whether
/// it is active, and its claimant.
fn type_map(record: &TypeRecord, claimant: &str) -> PropMap {
    let mut map = created_type_defaults();
    map.extend((*record.overrides).clone());
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
