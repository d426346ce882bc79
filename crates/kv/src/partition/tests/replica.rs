//! Partitions as replicas of one key, for tests of histories.

use crate::config::ObjectLimits;
use crate::hooks::ValueKind;
use crate::partition::{Access, ActorSource, MergeRules, Partition, WriteRules, digest};
use ombak_storage::{BackendFactory, MemoryConfig, MemoryFactory};
use ombak_types::names::encode_storage_key;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, BucketProps, Object, Sibling, VectorClock};
use std::cell::Cell;
use std::sync::Arc;

/// One key on one partition.
pub(super) struct Replica {
    partition: Partition,
    props: BucketProps,
    key: Vec<u8>,
    now_secs: Cell<u64>,
    values: Option<Box<dyn ValueKind>>,
}

impl Replica {
    pub(super) fn new(id: u64) -> Self {
        let store = MemoryFactory::new(MemoryConfig::default()).open(0).unwrap();
        let partition = Partition::new(0, store, Arc::new(ActorSource::new(id << 32)));
        let props = BucketProps { allow_mult: true, dvv_enabled: true, ..BucketProps::default() };
        let mut key = Vec::new();
        encode_storage_key(&Bucket::untyped("b"), b"k", &mut key);
        Self { partition, props, key, now_secs: Cell::new(1), values: None }
    }

    fn rules<'a>(&'a self, limits: &'a ObjectLimits) -> WriteRules<'a> {
        WriteRules {
            props: &self.props,
            limits,
            now: UnixMicros::from_secs(self.now_secs.get()),
            values: self.values.as_deref(),
            deadline: None,
        }
    }

    pub(super) fn write(&self, sibling: Sibling, seen: &VectorClock) -> Object {
        let limits = ObjectLimits::default();
        let mut locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        if self.values.is_some() {
            locked.load().unwrap();
        } else {
            locked.load_for(seen, false).unwrap();
        }
        let incoming = Object { clock: seen.clone(), siblings: vec![sibling] };
        locked.coordinate(incoming, b"vtag", &self.rules(&limits)).unwrap().object
    }

    pub(super) fn put(&self, value: &'static str, seen: &VectorClock) -> Object {
        self.write(Sibling::new(value), seen)
    }

    pub(super) fn receive(&self, object: &Object) {
        self.receive_stored_at(object, None);
    }

    /// Receives a copy that was stored in these Unix seconds where it comes from.
    pub(super) fn receive_stored_at(&self, object: &Object, stored_secs: Option<u32>) {
        let limits = ObjectLimits::default();
        let mut locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        locked.load_for(&object.clock, false).unwrap();
        let rules = MergeRules { stored_secs, ..self.rules(&limits).merging() };
        locked.merge(object.clone(), &rules).unwrap();
    }

    /// From when the age of the present version counts, in Unix seconds.
    pub(super) fn stored_secs(&self) -> Option<u32> {
        self.partition.read(&self.key, Access::Blocking).unwrap().and_then(|found| found.stored_secs)
    }

    /// Takes the time from a tombstone.
    pub(super) fn take_time(&self, tombstone: &Object) {
        let locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        let now = UnixMicros::from_secs(self.now_secs.get());
        assert!(locked.take_time(digest(tombstone), now, || ()).unwrap().is_some());
    }

    /// What this replica answers to a coordinator.
    pub(super) fn get(&self) -> Option<Object> {
        self.partition.get(&self.key, Access::Blocking).unwrap()
    }

    pub(super) fn values(&self) -> Vec<String> {
        let object = self.get().unwrap_or_default();
        object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect()
    }

    /// Replaces the values that a tombstone hides. Returns the new version.
    pub(super) fn replace_hidden(&self) -> Option<Object> {
        let locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        let now = UnixMicros::from_secs(self.now_secs.get());
        locked.replace_hidden(now).unwrap().map(|written| written.object)
    }

    /// Simulates a disk that lost the key.
    pub(super) fn lose(&self) {
        self.partition.store().delete(&self.key).unwrap();
    }

    /// Removes the key if it holds exactly this version, which is a tombstone or has expired.
    pub(super) fn reap(&self, tombstone: &Object) -> bool {
        let locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        locked.reap(digest(tombstone), UnixMicros::from_secs(self.now_secs.get())).unwrap()
    }

    /// Removes the key, which has expired, together with its clock.
    pub(super) fn forget_expired(&self) {
        let expired = self.get().expect("a version that is kept");
        assert!(self.reap(&expired));
        assert_eq!(self.get(), None);
    }

    /// Lets values be of a kind.
    pub(super) fn set_kind(&mut self, kind: Box<dyn ValueKind>) {
        self.values = Some(kind);
    }

    pub(super) fn set_props(&mut self, props: BucketProps) {
        self.props = props;
    }

    /// Sets the time of this replica and of its store.
    pub(super) fn set_time(&self, now_secs: u64) {
        self.now_secs.set(now_secs);
        self.partition.store().maintain(now_secs).unwrap();
    }
}
