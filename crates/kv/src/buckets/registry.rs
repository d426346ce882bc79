//! The registry of bucket types and bucket properties.

use super::authority::{PropertyAuthority, ProposedChange, Undecided};
use super::error::PropsError;
use super::file::{RegistryFile, text_of};
use super::namespaces::Namespaces;
use super::open_record::OpenRecords;
use super::state::{BucketRecord, RecordChange, Records, Settings, Snapshot, TypeRecord, TypeStatus, TypeSummary};
use crate::open_error::OpenError;
use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use ombak_storage::fs::FileSystem;
use ombak_types::names::{DEFAULT_TYPE, NAME_BYTES_MAX};
use ombak_types::props::{
    BucketProps, PropErrors, PropMap, PropScope, check, created_type_defaults, default_type_defaults,
};
use ombak_types::{Bucket, Error};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Maximum number of types. Operators create types and types are never deleted; clients cannot
/// create them.
const TYPES_MAX: usize = 10_000;
/// Maximum number of buckets with properties of their own.
const BUCKETS_MAX: usize = 100_000;
/// So often a change is tried that others overtake.
const TRIES_MAX: usize = 16;

/// The bucket types, bucket properties and records of namespaces of a node. Reading never waits for
/// a change. A change blocks until it is on disk, or decided by the nodes of the cluster: not for
/// network threads.
#[derive(Debug)]
pub struct BucketRegistry {
    settings: Settings,
    current: ArcSwap<Snapshot>,
    /// Locked while a change is made.
    file: Mutex<RegistryFile>,
    /// Decides changes in place of the file, once the node is part of a cluster.
    authority: OnceLock<Arc<dyn PropertyAuthority>>,
    /// Learn of changes of records. Told in the order of the changes, while the file is locked.
    namespaces: Namespaces,
}

impl BucketRegistry {
    /// Opens the registry of a data directory; without a file it starts empty. `default_overrides`
    /// are the properties of untyped buckets that the configuration sets (`buckets.default.*`).
    pub fn open(
        fs: Arc<dyn FileSystem>,
        data_dir: &Path,
        node_name: &str,
        default_overrides: &PropMap,
    ) -> Result<Self, OpenError> {
        let default_overrides = check(PropScope::Bucket, &default_type_defaults(), default_overrides)
            .map_err(|errors| OpenError::Config(format!("buckets.default: {}", errors.to_lines())))?;
        let settings = Settings { node_name: node_name.to_owned(), default_overrides, backends: None };
        let (file, records) = RegistryFile::open(fs, data_dir)?;
        let current = ArcSwap::from_pointee(Snapshot::new(&settings, records));
        let namespaces = Namespaces::default();
        namespaces.tell(&OpenRecords::default(), &current.load().records.open);
        Ok(Self { settings, current, file: Mutex::new(file), authority: OnceLock::new(), namespaces })
    }

    /// Knows these namespaces in place of the default ones, and tells them all records.
    #[must_use]
    pub fn with_namespaces(self, namespaces: Namespaces) -> Self {
        namespaces.tell(&OpenRecords::default(), &self.current.load().records.open);
        Self { namespaces, ..self }
    }

    pub(super) const fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// Puts a state in force. The caller holds the lock of the file. Observers come first: whoever
    /// sees a hook in the new state finds the function that it names.
    fn put_in_force(&self, next: Snapshot) {
        self.namespaces.tell(&self.current.load().records.open, &next.records.open);
        self.current.store(Arc::new(next));
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Allows only these values of the property `backend` in later changes. Values that were set
    /// before stay unchanged.
    #[must_use]
    pub fn with_backends(self, names: &[Bytes]) -> Self {
        Self { settings: Settings { backends: Some(names.to_vec()), ..self.settings }, ..self }
    }

    /// Lets an authority decide all later changes, and takes over what it has decided so far. The
    /// file is not written any more.
    pub fn follow(&self, authority: Arc<dyn PropertyAuthority>, decided: Vec<RecordChange>) {
        let _changing = self.file.lock();
        let mut records = Records::default();
        decided.into_iter().for_each(|change| records.apply(change));
        let mut next = Snapshot::new(&self.settings, records);
        next.succeed(&self.current.load());
        self.put_in_force(next);
        // A second authority would belong to a second cluster over the same stores, so the first
        // one stays.
        let _ = self.authority.set(authority);
    }

    /// Lets [`Snapshot::all_n_vals`] know the n_vals of changes that are about to be adopted. What
    /// depends on them, as the roles of the node, can then be taken before any request uses them.
    pub fn expect_n_vals(&self, decided: &[RecordChange]) {
        if decided.is_empty() {
            return;
        }
        let _changing = self.file.lock();
        let mut next = Snapshot::clone(&self.current.load());
        let mut expecting = next.clone();
        decided.iter().cloned().for_each(|change| next.apply(&self.settings, change));
        expecting.expected_n_vals = Arc::new(next.all_n_vals());
        self.current.store(Arc::new(expecting));
    }

    /// The n of the classes to which keys come, or which they leave, by changes that are about to
    /// be adopted. A new type has no keys yet.
    pub fn n_vals_of_moving_keys(&self, decided: &[RecordChange]) -> BTreeSet<u32> {
        let now = self.current.load();
        let is_new = |change: &RecordChange| {
            matches!(change, RecordChange::Type(name, _) if now.status(name).is_none())
                || matches!(change, RecordChange::Open(..))
        };
        let mut next = Snapshot::clone(&now);
        let moving = decided.iter().filter(|change| !is_new(change)).cloned();
        moving.for_each(|change| next.apply(&self.settings, change));
        let ns: BTreeSet<u32> = now.all_n_vals().into_iter().chain(next.all_n_vals()).collect();
        ns.into_iter().filter(|n| now.class_map(*n) != next.class_map(*n)).collect()
    }

    /// Takes over changes that the authority has decided.
    pub fn adopt(&self, decided: Vec<RecordChange>) {
        if decided.is_empty() {
            return;
        }
        let _changing = self.file.lock();
        let mut next = Snapshot::clone(&self.current.load());
        decided.into_iter().for_each(|change| next.apply(&self.settings, change));
        next.expected_n_vals = Arc::default();
        self.put_in_force(next);
    }

    /// All records, types first.
    pub fn records(&self) -> Vec<RecordChange> {
        let now = self.current.load();
        let types =
            now.records.types.iter().map(|(name, record)| RecordChange::Type(name.clone(), Some(record.clone())));
        let buckets = now.records.buckets.iter();
        let buckets = buckets.map(|(bucket, record)| RecordChange::Bucket(bucket.clone(), Some(record.clone())));
        let open = now.records.open.iter().map(|(name, record)| RecordChange::Open(name, Some(record.clone())));
        types.chain(buckets).chain(open).collect()
    }

    /// The records as the text of the file of a node that is alone; `None` when there are none.
    pub fn to_file_text(&self) -> io::Result<Option<Vec<u8>>> {
        let now = self.current.load();
        if now.records == Records::default() { Ok(None) } else { text_of(&now.records).map(Some) }
    }

    /// Puts the file aside, after an authority has taken over its records.
    pub fn put_file_aside(&self) -> io::Result<()> {
        self.file.lock().put_aside()
    }

    /// The current state, for the duration of a request. It needs no reference count that threads
    /// share.
    pub fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// The effective properties of a bucket, for a caller that keeps them. Fails with
    /// [`Error::NoType`] when its type is not active.
    pub fn props(&self, bucket: &Bucket) -> Result<Arc<BucketProps>, Error> {
        self.snapshot().props(bucket).cloned()
    }

    /// The effective properties of a bucket as names and JSON values, in the order of Riak's
    /// answers and without `name`. Fails with [`Error::NoType`] when its type is not active.
    pub fn bucket_map(&self, bucket: &Bucket) -> Result<PropMap, Error> {
        self.current.load().bucket_map(bucket).ok_or_else(|| Error::NoType(bucket.clone()))
    }

    /// Sets properties of one bucket; other properties keep their values.
    pub fn set_bucket(&self, bucket: &Bucket, changes: &PropMap) -> Result<(), PropsError> {
        if bucket.name.is_empty() || bucket.name.len() > NAME_BYTES_MAX {
            return Err(PropsError::BadName("a bucket's name has 1 to 65535 bytes"));
        }
        self.change(|now| {
            let effective = now.bucket_map(bucket).ok_or(PropsError::NoType)?;
            let checked = self.check_references(&effective, check(PropScope::Bucket, &effective, changes)?)?;
            let present = now.records.buckets.get(bucket);
            let mut overrides = present.map_or_else(PropMap::new, |record| (*record.overrides).clone());
            overrides.extend(checked);
            if overrides.is_empty() {
                return Ok(None);
            }
            if present.is_none() && now.records.buckets.len() >= BUCKETS_MAX {
                return Err(PropsError::TooMany(BUCKETS_MAX));
            }
            Ok(Some(RecordChange::Bucket(bucket.clone(), Some(bucket_record(overrides)))))
        })
    }

    /// Resets one bucket to the properties of its type.
    pub fn reset_bucket(&self, bucket: &Bucket) -> Result<(), PropsError> {
        self.change(|now| {
            now.bucket_map(bucket).ok_or(PropsError::NoType)?;
            Ok(Some(RecordChange::Bucket(bucket.clone(), None)))
        })
    }

    /// The properties of an active type, in the order of Riak's answers. Fails with
    /// [`Error::NoType`] for any other type.
    pub fn type_map(&self, bucket_type: &[u8]) -> Result<PropMap, Error> {
        match self.type_status(bucket_type) {
            Some((TypeStatus::Active, map)) => Ok(map),
            _ => Err(Error::NoType(Bucket::typed(Bytes::copy_from_slice(bucket_type), Bytes::new()))),
        }
    }

    /// The state of a type and its properties; `None` when the type is undefined.
    pub fn type_status(&self, bucket_type: &[u8]) -> Option<(TypeStatus, PropMap)> {
        let now = self.current.load();
        Some((now.status(bucket_type)?, now.type_map(bucket_type)?.clone()))
    }

    /// All types: the default type first, then the others by name.
    pub fn list_types(&self) -> Vec<TypeSummary> {
        let now = self.current.load();
        std::iter::once(Bytes::from_static(DEFAULT_TYPE))
            .chain(now.records.types.keys().cloned())
            .filter_map(|name| now.status(&name).map(|status| TypeSummary { name, status }))
            .collect()
    }

    /// Creates a type. Until the type is activated it can be created again, which replaces its
    /// properties.
    pub fn create_type(&self, bucket_type: &[u8], props: &PropMap) -> Result<(), PropsError> {
        if bucket_type.is_empty() || bucket_type.len() > NAME_BYTES_MAX {
            return Err(PropsError::BadName("a bucket type's name has 1 to 65535 bytes"));
        }
        self.change(|now| {
            if now.status(bucket_type) == Some(TypeStatus::Active) {
                return Err(PropsError::AlreadyActive);
            }
            let defaults = created_type_defaults();
            let overrides = self.check_references(&defaults, check(PropScope::CreateType, &defaults, props)?)?;
            if !now.records.types.contains_key(bucket_type) && now.records.types.len() >= TYPES_MAX {
                return Err(PropsError::TooMany(TYPES_MAX));
            }
            Ok(Some(type_change(bucket_type, false, overrides)))
        })
    }

    /// Activates a created type. Activating it again changes nothing.
    pub fn activate_type(&self, bucket_type: &[u8]) -> Result<(), PropsError> {
        self.change(|now| match now.records.types.get(bucket_type) {
            Some(record) => Ok(Some(type_change(bucket_type, true, (*record.overrides).clone()))),
            None if bucket_type == DEFAULT_TYPE => Ok(None),
            None => Err(PropsError::NoType),
        })
    }

    /// Changes properties of an active type; other properties keep their values.
    pub fn update_type(&self, bucket_type: &[u8], changes: &PropMap) -> Result<(), PropsError> {
        self.change_active_type(bucket_type, |effective, overrides| {
            let checked = check(PropScope::UpdateType { active: true }, effective, changes)?;
            let checked = self.check_references(effective, checked)?;
            overrides.extend(checked);
            Ok(())
        })
    }

    /// Resets an active type to the defaults of created types. Fails when that would change an
    /// immutable property.
    pub fn reset_type(&self, bucket_type: &[u8]) -> Result<(), PropsError> {
        self.change_active_type(bucket_type, |effective, overrides| {
            check(PropScope::UpdateType { active: true }, effective, &created_type_defaults())?;
            self.namespaces.check_props(effective, &created_type_defaults())?;
            // A property without a default was fixed when the type was created (a data type, for
            // instance) and stays.
            let defaults = created_type_defaults();
            overrides.retain(|name, _| !defaults.contains_key(name));
            Ok(())
        })
    }

    fn change_active_type(
        &self,
        bucket_type: &[u8],
        edit: impl Fn(&PropMap, &mut PropMap) -> Result<(), PropsError>,
    ) -> Result<(), PropsError> {
        if bucket_type == DEFAULT_TYPE {
            return Err(PropsError::DefaultType);
        }
        self.change(|now| {
            let effective = now.type_map(bucket_type).ok_or(PropsError::NoType)?;
            let record = now.records.types.get(bucket_type).ok_or(PropsError::NoType)?;
            if !record.active {
                return Err(PropsError::NotActive);
            }
            let mut overrides = (*record.overrides).clone();
            edit(effective, &mut overrides)?;
            Ok(Some(type_change(bucket_type, true, overrides)))
        })
    }

    /// Checks that backends and records exist that a change of properties names. `effective` is
    /// what held before.
    fn check_references(&self, effective: &PropMap, checked: PropMap) -> Result<PropMap, PropsError> {
        self.namespaces.check_props(effective, &checked)?;
        self.check_backend_exists(checked)
    }

    /// Refuses a backend that this node does not have.
    fn check_backend_exists(&self, checked: PropMap) -> Result<PropMap, PropsError> {
        let wanted = checked.get("backend").and_then(serde_json::Value::as_str);
        let (Some(wanted), Some(names)) = (wanted, &self.settings.backends) else { return Ok(checked) };
        if names.iter().any(|name| name == wanted.as_bytes()) {
            return Ok(checked);
        }
        let names: Vec<_> = names.iter().map(|name| name.escape_ascii().to_string()).collect();
        Err(PropErrors::of_text("backend", format!("undefined_backend: it is one of {}", names.join(", "))).into())
    }

    /// Makes a change durable, then visible. `next` computes it from the current state.
    pub(super) fn change(
        &self,
        next: impl Fn(&Snapshot) -> Result<Option<RecordChange>, PropsError>,
    ) -> Result<(), PropsError> {
        self.change_if(false, next)
    }

    /// As [`Self::change`]. With `unless_named`, a deletion of a function has no effect if a hook
    /// names the function when the deletion is decided.
    pub(super) fn change_if(
        &self,
        unless_named: bool,
        next: impl Fn(&Snapshot) -> Result<Option<RecordChange>, PropsError>,
    ) -> Result<(), PropsError> {
        match self.authority.get() {
            Some(authority) => self.change_with(&**authority, unless_named, next),
            None => self.change_here(next),
        }
    }

    /// The change is computed under the lock, so concurrent changes do not overwrite each other.
    fn change_here(
        &self,
        next: impl Fn(&Snapshot) -> Result<Option<RecordChange>, PropsError>,
    ) -> Result<(), PropsError> {
        let mut file = self.file.lock();
        let now = self.current.load_full();
        let Some(change) = next(&now)? else { return Ok(()) };
        if is_present(&now, &change) {
            return Ok(());
        }
        let mut changed = Snapshot::clone(&now);
        changed.apply(&self.settings, change);
        file.save(&changed.records).map_err(|e| PropsError::Storage(e.to_string()))?;
        self.put_in_force(changed);
        Ok(())
    }

    /// The change is computed again when somebody else was faster. It is decided even if it changes
    /// nothing as far as this node knows: another node may have changed the same properties since.
    fn change_with(
        &self,
        authority: &dyn PropertyAuthority,
        unless_named: bool,
        next: impl Fn(&Snapshot) -> Result<Option<RecordChange>, PropsError>,
    ) -> Result<(), PropsError> {
        let mut is_up_to_date = false;
        let mut named = BTreeSet::new();
        for _ in 0..TRIES_MAX {
            let now = self.current.load_full();
            let change = match next(&now) {
                Ok(Some(change)) => change,
                Ok(None) => return Ok(()),
                // The caller may know more than this node, because another node has told it.
                Err(
                    PropsError::NoType
                    | PropsError::NotActive
                    | PropsError::NoFunction
                    | PropsError::FunctionExists
                    | PropsError::Refused(_),
                ) if !is_up_to_date => {
                    authority.catch_up();
                    is_up_to_date = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let proposed = ProposedChange::new(&now, &self.settings, change, unless_named);
            named.extend(proposed.functions.iter().cloned());
            // A hook may name a function that was never registered. This one was deleted meanwhile.
            if let Some(gone) = named.iter().find(|name| now.function(name).is_none()) {
                return Err(PropsError::FunctionGone(gone.clone()));
            }
            match authority.decide(proposed) {
                Ok(()) => return Ok(()),
                Err(Undecided::Overtaken) => authority.catch_up(),
                Err(Undecided::Refused(why)) => return Err(PropsError::Refused(why)),
                Err(Undecided::Failed(why)) => return Err(PropsError::Storage(why)),
            }
        }
        Err(PropsError::Storage("others change the same properties all the time".into()))
    }
}

fn bucket_record(overrides: PropMap) -> BucketRecord {
    BucketRecord { overrides: Arc::new(overrides), version: 0 }
}

fn type_change(name: &[u8], active: bool, overrides: PropMap) -> RecordChange {
    let record = TypeRecord { active, overrides: Arc::new(overrides), version: 0 };
    RecordChange::Type(Bytes::copy_from_slice(name), Some(record))
}

/// Whether a change would change nothing.
fn is_present(now: &Snapshot, change: &RecordChange) -> bool {
    match (now.records.present(change), change) {
        (RecordChange::Type(_, present), RecordChange::Type(_, wanted)) => {
            let parts = |record: &TypeRecord| (record.active, record.overrides.clone());
            present.as_ref().map(parts) == wanted.as_ref().map(parts)
        }
        (RecordChange::Bucket(_, present), RecordChange::Bucket(_, wanted)) => {
            present.map(|record| record.overrides) == wanted.as_ref().map(|record| record.overrides.clone())
        }
        (RecordChange::Open(_, present), RecordChange::Open(_, wanted)) => {
            present.as_ref().map(|record| &record.value) == wanted.as_ref().map(|record| &record.value)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_node_files::saved_json::with_checksum;
    use ombak_storage::fs::RealFs;
    use ombak_storage::fs::sim::{FaultyFs, Loss};
    use serde_json::json;
    use std::fs;

    fn map(value: serde_json::Value) -> PropMap {
        value.as_object().cloned().unwrap()
    }

    fn open(dir: &Path) -> BucketRegistry {
        BucketRegistry::open(Arc::new(RealFs), dir, "n@h", &PropMap::new()).unwrap()
    }

    fn refusal(dir: &Path, defaults: &PropMap) -> String {
        BucketRegistry::open(Arc::new(RealFs), dir, "n@h", defaults).err().unwrap().to_string()
    }

    fn with_active_type(dir: &Path, name: &[u8], props: serde_json::Value) -> BucketRegistry {
        let registry = open(dir);
        registry.create_type(name, &map(props)).unwrap();
        registry.activate_type(name).unwrap();
        registry
    }

    #[test]
    fn an_untyped_bucket_has_riaks_defaults_and_shares_them() {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(dir.path());
        let (a, b) = (registry.props(&Bucket::untyped("a")).unwrap(), registry.props(&Bucket::untyped("b")).unwrap());
        assert!(Arc::ptr_eq(&a, &b));
        assert_eq!(*a, BucketProps::default());
        assert_eq!(registry.bucket_map(&Bucket::untyped("a")).unwrap(), default_type_defaults());
        assert_eq!(registry.props(&Bucket::typed("t", "a")), Err(Error::NoType(Bucket::typed("t", "a"))));
    }

    #[test]
    fn configured_defaults_hold_for_untyped_buckets_only() {
        let dir = tempfile::tempdir().unwrap();
        let defaults = map(json!({"allow_mult": true, "n_val": 5}));
        let registry = BucketRegistry::open(Arc::new(RealFs), dir.path(), "n@h", &defaults).unwrap();
        registry.create_type(b"t", &PropMap::new()).unwrap();
        registry.activate_type(b"t").unwrap();
        let untyped = registry.props(&Bucket::untyped("a")).unwrap();
        assert_eq!((untyped.allow_mult, untyped.n_val), (true, 5));
        assert_eq!(registry.props(&Bucket::typed("t", "a")).unwrap().n_val, 3);
        assert_eq!(refusal(dir.path(), &map(json!({"n_val": 0}))), "buckets.default: n_val: not_integer");
    }

    #[test]
    fn a_type_comes_to_life_step_by_step() {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(dir.path());
        let bucket = Bucket::typed("t", "b");
        assert_eq!(registry.type_status(b"t"), None);
        assert_eq!(registry.activate_type(b"t"), Err(PropsError::NoType));
        assert_eq!(registry.update_type(b"t", &PropMap::new()), Err(PropsError::NoType));

        registry.create_type(b"t", &map(json!({"n_val": 5}))).unwrap();
        registry.create_type(b"t", &map(json!({"r": 1}))).unwrap();
        let (status, shown) = registry.type_status(b"t").unwrap();
        assert_eq!(status, TypeStatus::Ready);
        assert_eq!((&shown["n_val"], &shown["r"], &shown["active"]), (&json!(3), &json!(1), &json!(false)));
        assert!(registry.props(&bucket).is_err() && registry.type_map(b"t").is_err(), "not active yet");
        assert_eq!(registry.set_bucket(&bucket, &PropMap::new()), Err(PropsError::NoType));
        assert_eq!(registry.update_type(b"t", &PropMap::new()), Err(PropsError::NotActive));

        registry.activate_type(b"t").unwrap();
        registry.activate_type(b"t").unwrap();
        assert_eq!(registry.create_type(b"t", &PropMap::new()), Err(PropsError::AlreadyActive));
        assert_eq!(registry.type_status(b"t").unwrap().0, TypeStatus::Active);
        registry.update_type(b"t", &map(json!({"n_val": 2}))).unwrap();
        let props = registry.props(&bucket).unwrap();
        assert_eq!((props.n_val, props.r, props.allow_mult), (2, ombak_types::Quorum::Count(1), true));
        registry.reset_type(b"t").unwrap();
        assert_eq!(registry.props(&bucket).unwrap().n_val, 3);
    }

    #[test]
    fn what_a_type_is_stays_when_it_is_reset() {
        let dir = tempfile::tempdir().unwrap();
        let registry = with_active_type(dir.path(), b"c", json!({"datatype": "counter", "n_val": 5}));
        registry.reset_type(b"c").unwrap();
        let shown = registry.type_map(b"c").unwrap();
        assert_eq!((&shown["datatype"], &shown["n_val"]), (&json!("counter"), &json!(3)));
    }

    #[test]
    fn the_default_type_is_not_for_changing() {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(dir.path());
        assert_eq!(registry.create_type(b"default", &PropMap::new()), Err(PropsError::AlreadyActive));
        assert_eq!(registry.update_type(b"default", &PropMap::new()), Err(PropsError::DefaultType));
        assert_eq!(registry.reset_type(b"default"), Err(PropsError::DefaultType));
        assert_eq!(registry.activate_type(b"default"), Ok(()));
        assert!(matches!(registry.create_type(b"", &PropMap::new()), Err(PropsError::BadName(_))));
    }

    #[test]
    fn keys_move_between_the_classes_of_the_former_and_the_next_n_val() {
        let dir = tempfile::tempdir().unwrap();
        let registry = with_active_type(dir.path(), b"t", json!({"n_val": 3}));
        let of_type = |name: &[u8], n: u32| type_change(name, true, map(json!({"n_val": n})));
        let moving = |change| registry.n_vals_of_moving_keys(&[change]).into_iter().collect::<Vec<_>>();
        assert_eq!(moving(of_type(b"t", 2)), [2, 3]);
        let none = Vec::<u32>::new();
        assert_eq!(moving(of_type(b"t", 3)), none);
        assert_eq!(moving(of_type(b"new", 2)), none, "it has no keys");
        let own = Some(bucket_record(map(json!({"n_val": 5}))));
        assert_eq!(moving(RecordChange::Bucket(Bucket::typed("t", "b"), own)), [3, 5]);
        let other = Some(bucket_record(map(json!({"allow_mult": false}))));
        assert_eq!(moving(RecordChange::Bucket(Bucket::typed("t", "b"), other)), none, "another property");
    }

    #[test]
    fn a_bucket_overrides_its_type_until_it_is_reset() {
        let dir = tempfile::tempdir().unwrap();
        let registry = with_active_type(dir.path(), b"t", json!({}));
        let (bucket, other) = (Bucket::typed("t", "b"), Bucket::typed("t", "c"));
        registry.set_bucket(&bucket, &map(json!({"n_val": 1}))).unwrap();
        registry.set_bucket(&bucket, &map(json!({"r": "all"}))).unwrap();
        registry.update_type(b"t", &map(json!({"n_val": 5, "w": 1}))).unwrap();
        let props = registry.props(&bucket).unwrap();
        assert_eq!((props.n_val, props.r, props.w), (1, ombak_types::Quorum::All, ombak_types::Quorum::Count(1)));
        assert_eq!(registry.props(&other).unwrap().n_val, 5);
        registry.reset_bucket(&bucket).unwrap();
        assert_eq!(registry.props(&bucket).unwrap(), registry.props(&other).unwrap());
    }

    #[test]
    fn one_wrong_property_refuses_all() {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(dir.path());
        let bucket = Bucket::untyped("b");
        let refused = registry.set_bucket(&bucket, &map(json!({"allow_mult": true, "n_val": "x"}))).unwrap_err();
        assert_eq!(refused.to_string(), "[{n_val,not_integer}]");
        assert!(!registry.props(&bucket).unwrap().allow_mult);
        assert!(!dir.path().join("buckets.json").exists(), "nothing to keep");
    }

    #[test]
    fn answers_have_riaks_order() {
        let dir = tempfile::tempdir().unwrap();
        let registry = with_active_type(dir.path(), b"t", json!({"datatype": "counter"}));
        registry.set_bucket(&Bucket::untyped("b"), &map(json!({"backend": "other", "r": 1}))).unwrap();
        let untyped = registry.bucket_map(&Bucket::untyped("b")).unwrap();
        assert!(untyped.keys().is_sorted() && untyped.contains_key("backend"));
        let typed: Vec<String> = registry.bucket_map(&Bucket::typed("t", "b")).unwrap().keys().cloned().collect();
        assert_eq!(typed[..2], ["young_vclock", "w"]);
        assert_eq!(typed[typed.len() - 4..], ["allow_mult", "datatype", "active", "claimant"]);
    }

    #[test]
    fn everything_is_there_after_a_restart_whatever_the_names_are() {
        let dir = tempfile::tempdir().unwrap();
        let odd = Bucket::typed(&b"100%\xff \n"[..], &b"\x00\"b\\"[..]);
        let registry = with_active_type(dir.path(), &odd.bucket_type, json!({"n_val": 2}));
        registry.create_type(b"waiting", &PropMap::new()).unwrap();
        registry.set_bucket(&odd, &map(json!({"r": 1}))).unwrap();
        registry.set_bucket(&Bucket::untyped("b"), &map(json!({"allow_mult": true}))).unwrap();
        let before = (registry.list_types(), registry.bucket_map(&odd).unwrap());
        drop(registry);
        let registry = open(dir.path());
        assert_eq!((registry.list_types(), registry.bucket_map(&odd).unwrap()), before);
        assert!(registry.props(&Bucket::untyped("b")).unwrap().allow_mult);
        let lines: Vec<String> = registry.list_types().iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["default (active)", "100%\\xff \\n (active)", "waiting (not active)"]);
    }

    #[test]
    fn a_damaged_file_is_named_together_with_what_helps() {
        let dir = tempfile::tempdir().unwrap();
        let registry = with_active_type(dir.path(), b"t", json!({}));
        registry.set_bucket(&Bucket::typed("t", "b"), &map(json!({"n_val": 2}))).unwrap();
        drop(registry);
        let path = dir.path().join("buckets.json");
        let good = fs::read_to_string(&path).unwrap();
        let flipped = good.replace("\"n_val\": 2", "\"n_val\": 3");
        fs::write(&path, &flipped).unwrap();
        let error = refusal(dir.path(), &PropMap::new());
        assert!(flipped != good && error.contains("does not match its checksum"), "{error}");
        let mut good: serde_json::Value = serde_json::from_str(&good).unwrap();
        good.as_object_mut().unwrap().remove("checksum");
        let good = serde_json::to_string_pretty(&good).unwrap();
        for (bad, why) in [
            (good[..good.len() / 2].to_owned(), "is damaged"),
            (good.replace("\"format\": 2", "\"format\": 9"), "has format 9"),
            (good.replace("\"active\": true", "\"active\": false"), "which is not active"),
            (good.replace("\"b\"", "\"%g\""), "does not decode"),
            (String::new(), "is damaged"),
        ] {
            fs::write(&path, with_checksum(bad.as_bytes())).unwrap();
            let error = refusal(dir.path(), &PropMap::new());
            assert!(error.contains(why) && error.contains("buckets.json.previous"), "{error}");
        }
        fs::remove_file(&path).unwrap();
        let error = refusal(dir.path(), &PropMap::new());
        assert!(error.contains("is missing"), "{error}");
        fs::copy(dir.path().join("buckets.json.previous"), &path).unwrap();
        let registry = open(dir.path());
        assert_eq!(registry.props(&Bucket::typed("t", "b")).unwrap().n_val, 3, "one generation back");
    }

    #[test]
    fn a_change_that_cannot_be_kept_has_no_effect() {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(dir.path());
        fs::create_dir(dir.path().join("buckets.json.new")).unwrap();
        let refused = registry.set_bucket(&Bucket::untyped("b"), &map(json!({"n_val": 2})));
        assert!(matches!(refused, Err(PropsError::Storage(_))), "{refused:?}");
        assert_eq!(registry.props(&Bucket::untyped("b")).unwrap().n_val, 3);
    }

    /// After a power loss an acknowledged change is present; an unacknowledged change is present as
    /// a whole or not at all; and the file of the previous generation is always readable.
    #[test]
    fn the_power_may_go_at_every_call() {
        let dir = Path::new("/data");
        let open = |fs: &Arc<FaultyFs>| BucketRegistry::open(fs.clone(), dir, "n@h", &PropMap::new());
        let n_val = |registry: &BucketRegistry| registry.props(&Bucket::untyped("b")).unwrap().n_val;
        for call in 1..60 {
            for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
                let fs = FaultyFs::new(call);
                fs.create_dir_all(dir).unwrap();
                fs.sync_dir(Path::new("/")).unwrap();
                fs.cut_power_at(call);
                let (mut acknowledged, mut tried) = (3, 3);
                if let Ok(registry) = open(&fs) {
                    for n in 4..9 {
                        tried = n;
                        if registry.set_bucket(&Bucket::untyped("b"), &map(json!({"n_val": n}))).is_err() {
                            break;
                        }
                        acknowledged = n;
                    }
                }
                let fs = fs.restart(loss);
                let found = n_val(&open(&fs).unwrap_or_else(|e| panic!("call {call}, {loss:?}: {e}")));
                assert!((acknowledged..=tried).contains(&found), "call {call}, {loss:?}: {found}, not {acknowledged}");
                open(&fs).unwrap().set_bucket(&Bucket::untyped("b"), &map(json!({"n_val": 11}))).unwrap();
                assert_eq!(n_val(&open(&fs.restart(Loss::Everything)).unwrap()), 11);
            }
        }
    }

    #[test]
    fn a_full_disk_refuses_a_change_and_keeps_what_is_there() {
        let fs = FaultyFs::new(1);
        fs.create_dir_all(Path::new("/data")).unwrap();
        let registry = BucketRegistry::open(fs.clone(), Path::new("/data"), "n@h", &PropMap::new()).unwrap();
        registry.set_bucket(&Bucket::untyped("b"), &map(json!({"n_val": 4}))).unwrap();
        fs.set_free_bytes(Some(10));
        let refused = registry.set_bucket(&Bucket::untyped("b"), &map(json!({"n_val": 5})));
        assert!(matches!(refused, Err(PropsError::Storage(_))), "{refused:?}");
        assert_eq!(registry.props(&Bucket::untyped("b")).unwrap().n_val, 4);
        fs.set_free_bytes(None);
        let registry = BucketRegistry::open(fs, Path::new("/data"), "n@h", &PropMap::new()).unwrap();
        assert_eq!(registry.props(&Bucket::untyped("b")).unwrap().n_val, 4);
        registry.set_bucket(&Bucket::untyped("b"), &map(json!({"n_val": 5}))).unwrap();
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(dir.path());
        std::thread::scope(|scope| {
            for n in 0..4u8 {
                let registry = &registry;
                scope.spawn(move || {
                    for i in 0..5 {
                        let bucket = Bucket::untyped(format!("b{n}-{i}"));
                        registry.set_bucket(&bucket, &map(json!({"n_val": 2}))).unwrap();
                    }
                });
            }
        });
        drop(registry);
        let registry = open(dir.path());
        for n in 0..4u8 {
            for i in 0..5 {
                assert_eq!(registry.props(&Bucket::untyped(format!("b{n}-{i}"))).unwrap().n_val, 2);
            }
        }
    }
}
