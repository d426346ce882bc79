//! A partition with sums over each kind of store.

use crate::buckets::{BackendChoice, BucketRegistry};
use crate::config::ObjectLimits;
use crate::head_terms;
use crate::partition::{Access, ActorSource, Locked, Partition, WriteRules};
use crate::routing::is_of_class;
use crate::sums::{Sums, SumsSetup, SumsState, SumsStep, SumsWalk, WalkEnd};
use ombak_storage::fs::RealFs;
use ombak_storage::{
    BackendFactory, BitcaskFactory, Detail, IndexedVersion, JournalConfig, LedgerConfig, LeveldbFactory,
    LeveledFactory, MemoryConfig, MemoryFactory, MultiFactory, Scope, Write,
};
use ombak_types::names::encode_storage_key;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, BucketProps, Object, PropMap, Sibling, VectorClock};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// The beginning of time in these tests, in Unix seconds.
pub(in crate::partition::tests) const BEGIN_SECS: u64 = 1_800_000_000;
/// The age at which stores with a configured age forget their versions.
const AGE_SECS: u32 = 50;
/// The names of the stores of a store of several.
pub(in crate::partition::tests) const NAMES: [&str; 2] = ["one", "two"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::partition::tests) enum Kind {
    Memory,
    MemoryWithAge,
    MemoryWithSize,
    Bitcask,
    BitcaskWithAge,
    Leveled,
    LeveledWithAge,
    Leveldb,
    Multi,
}

impl Kind {
    fn open(self, dir: &Path, choice: &Arc<BackendChoice>) -> Arc<dyn BackendFactory> {
        let ledger = LedgerConfig { memory_bytes_max: 16 << 10, table_bytes: 16 << 10, ..LedgerConfig::default() };
        let memory = MemoryConfig { opened_at_secs: BEGIN_SECS, ..MemoryConfig::default() };
        let journal =
            JournalConfig { file_bytes_max: 16 << 10, opened_at_secs: BEGIN_SECS, ..JournalConfig::default() };
        let with_age = JournalConfig { expiry_secs: Some(AGE_SECS), sweep_interval_secs: 1, ..journal };
        let bitcask = |name: &str, journal| BitcaskFactory::new(Arc::new(RealFs), dir.join(name), journal).unwrap();
        let leveled = |name: &str, journal| {
            LeveledFactory::new(Arc::new(RealFs), dir.join(name), journal, ledger, head_terms()).unwrap()
        };
        match self {
            Self::Memory => Arc::new(MemoryFactory::new(memory)),
            Self::MemoryWithAge => Arc::new(MemoryFactory::new(MemoryConfig { ttl_secs: Some(AGE_SECS), ..memory })),
            Self::MemoryWithSize => Arc::new(MemoryFactory::new(MemoryConfig { bytes_max: Some(4_000), ..memory })),
            Self::Bitcask => Arc::new(bitcask("bitcask", journal)),
            Self::BitcaskWithAge => Arc::new(bitcask("bitcask", with_age)),
            Self::Leveled => Arc::new(leveled("leveled", journal)),
            Self::LeveledWithAge => Arc::new(leveled("leveled", with_age)),
            Self::Leveldb => {
                let dir = dir.join("leveldb");
                Arc::new(LeveldbFactory::new(Arc::new(RealFs), dir, journal, ledger, head_terms()).unwrap())
            }
            Self::Multi => {
                let one: Arc<dyn BackendFactory> = Arc::new(bitcask("one", journal));
                let two: Arc<dyn BackendFactory> = Arc::new(leveled("two", journal));
                let named = NAMES.map(str::to_owned).into_iter().zip([one, two]).collect();
                Arc::new(MultiFactory::new(named, choice.clone()))
            }
        }
    }
}

/// What is open between two restarts.
pub(in crate::partition::tests) struct Run {
    pub(in crate::partition::tests) registry: Arc<BucketRegistry>,
    partition: Partition,
    _factory: Arc<dyn BackendFactory>,
}

/// A partition that keeps sums.
pub(in crate::partition::tests) struct World {
    pub(in crate::partition::tests) kind: Kind,
    pub(in crate::partition::tests) dir: TempDir,
    run: Option<Run>,
    runs: u64,
    pub(in crate::partition::tests) now_secs: u64,
    props: BucketProps,
    limits: ObjectLimits,
    /// Whether sums that are wrong do not end the test.
    tolerates_differences: bool,
}

impl World {
    pub(in crate::partition::tests) fn new(kind: Kind) -> Self {
        Self::of(kind, false)
    }

    /// A partition whose sums may be wrong.
    pub(in crate::partition::tests) fn with_differences(kind: Kind) -> Self {
        Self::of(kind, true)
    }

    fn of(kind: Kind, tolerates_differences: bool) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let props = BucketProps { allow_mult: true, dvv_enabled: true, ..BucketProps::default() };
        let limits = ObjectLimits::default();
        let (run, now_secs) = (None, BEGIN_SECS);
        let mut world = Self { kind, dir, run, runs: 0, now_secs, props, limits, tolerates_differences };
        world.start(true);
        world
    }

    /// Opens the partition. Without sums it is as if an earlier version of the program ran.
    pub(in crate::partition::tests) fn start(&mut self, with_sums: bool) {
        assert!(self.run.is_none());
        self.runs += 1;
        let (fs, dir) = (Arc::new(RealFs), self.dir.path());
        let names = NAMES.map(|name| bytes::Bytes::from_static(name.as_bytes()));
        let choice = Arc::new(BackendChoice::new(names.to_vec(), 0, Vec::new()));
        let registry = BucketRegistry::open(fs.clone(), dir, "n@h", &PropMap::new()).unwrap().with_backends(&names);
        let registry = Arc::new(registry);
        choice.use_properties(registry.clone());
        let factory = self.kind.open(&dir.join("stores"), &choice);
        let store = factory.open(0).unwrap();
        let partition = Partition::new(0, store, Arc::new(ActorSource::new(self.runs << 32)));
        let (buckets, data_dir) = (registry.clone(), dir.to_owned());
        let (choice_print, tolerates_differences) = (choice.print(), self.tolerates_differences);
        let setup = SumsSetup { buckets, fs, data_dir, choice_print, tolerates_differences };
        let partition = if with_sums { partition.with_trees(&setup).with_sums(&setup) } else { partition };
        partition.store().maintain(self.now_secs).unwrap();
        self.run = Some(Run { registry, partition, _factory: factory });
    }

    pub(in crate::partition::tests) fn stop(&mut self, is_clean: bool) {
        let run = self.run.take().unwrap();
        if is_clean {
            run.partition.close().unwrap();
        }
    }

    pub(in crate::partition::tests) fn restart(&mut self, is_clean: bool) {
        self.stop(is_clean);
        self.start(true);
    }

    pub(in crate::partition::tests) fn run(&self) -> &Run {
        self.run.as_ref().unwrap()
    }

    pub(in crate::partition::tests) fn partition(&self) -> &Partition {
        &self.run().partition
    }

    pub(in crate::partition::tests) const fn now(&self) -> UnixMicros {
        UnixMicros::from_secs(self.now_secs)
    }

    pub(in crate::partition::tests) fn rules(&self) -> WriteRules<'_> {
        WriteRules { props: &self.props, limits: &self.limits, now: self.now(), values: None, deadline: None }
    }

    pub(in crate::partition::tests) fn set_bucket(&self, bucket: &str, property: &str, value: serde_json::Value) {
        set_bucket_in(&self.run().registry, bucket, property, value);
    }

    /// Changes a property without a start of the store.
    pub(in crate::partition::tests) fn set_bucket_while_stopped(
        &self,
        bucket: &str,
        property: &str,
        value: serde_json::Value,
    ) {
        assert!(self.run.is_none());
        let registry = BucketRegistry::open(Arc::new(RealFs), self.dir.path(), "n@h", &PropMap::new()).unwrap();
        set_bucket_in(&registry, bucket, property, value);
    }

    pub(in crate::partition::tests) fn put(&self, key: &[u8], sibling: Sibling, seen: &VectorClock) -> u64 {
        let mut locked = self.lock(key);
        locked.load_for(seen, false).unwrap();
        let incoming = Object { clock: seen.clone(), siblings: vec![sibling] };
        locked.coordinate(incoming, b"vtag", &self.rules()).unwrap().seq
    }

    pub(in crate::partition::tests) fn put_over(&self, key: &[u8], sibling: Sibling) -> u64 {
        let seen = self.partition().head(key, Access::Blocking).unwrap().map(|found| found.clock).unwrap_or_default();
        self.put(key, sibling, &seen)
    }

    pub(in crate::partition::tests) fn lock<'a>(&'a self, key: &'a [u8]) -> Locked<'a> {
        self.partition().lock(key, Access::Blocking).unwrap()
    }

    /// The digest of the present version, as the store has it.
    pub(in crate::partition::tests) fn digest_of(&self, key: &[u8]) -> Option<u64> {
        self.partition().read_head(key, Access::Blocking).unwrap().map(|found| found.digest)
    }

    /// The sums of a class, from the store.
    pub(in crate::partition::tests) fn folded(&self, n: u32) -> Sums {
        let (mut sums, mut view) = (Sums::default(), self.partition().snapshot().unwrap());
        let buckets = self.run().registry.snapshot();
        let scope = Scope { since_seq: self.partition().set_aside_to(), ..Scope::EVERYTHING };
        loop {
            let entries = view.next(&scope, Detail::Keys, 5).unwrap();
            if entries.is_empty() {
                return sums;
            }
            for entry in entries.iter().filter(|entry| is_of_class(&buckets, &entry.key, n)) {
                let (digest, seq, expires_secs) = (entry.digest, entry.seq, entry.expires_secs);
                sums.add(&entry.key, IndexedVersion { digest, seq, expires_secs });
            }
        }
    }

    /// If the sums of a class are exact, they are those of the store.
    pub(in crate::partition::tests) fn check(&self, n: u32) {
        let cut = self.partition().cut_of_class(n);
        assert_eq!(cut.is_some(), self.partition().sums_state(n) == SumsState::Exact);
        if let Some(cut) = cut {
            assert_eq!(cut.seq, self.partition().store().last_seq());
            assert!(cut.sums == self.folded(n), "{:?}: the sums of n = {n} are wrong", self.kind);
        }
    }

    /// Begins a walk that begins at once.
    pub(in crate::partition::tests) fn begin(&self, n: u32) -> SumsWalk {
        self.partition().begin_sums_walk(n).unwrap().expect("nothing else is under way")
    }

    /// Makes the sums of a class exact.
    pub(in crate::partition::tests) fn walk(&self, n: u32) -> WalkEnd {
        let mut walk = self.begin(n);
        loop {
            if let SumsStep::Ended(end) = walk.step(3).unwrap() {
                return end;
            }
        }
    }
}

/// A write of bytes that the layers above do not understand.
pub(in crate::partition::tests) fn raw<'a>(
    key: &'a [u8],
    body: &'a [&'a [u8]],
    digest: u64,
    expires_secs: u32,
) -> Write<'a> {
    let tstamp_secs = BEGIN_SECS as u32;
    Write { key, head: b"plain", body, digest, tstamp_secs, expires_secs, has_terms: false }
}

pub(in crate::partition::tests) fn storage_key(bucket: &str, key: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_storage_key(&Bucket::untyped(bucket.to_owned()), key.as_bytes(), &mut bytes);
    bytes
}

pub(in crate::partition::tests) fn value(expires_secs: Option<u32>) -> Sibling {
    let mut sibling = Sibling::new("value");
    sibling.meta.expires_secs = expires_secs;
    sibling
}

fn set_bucket_in(registry: &BucketRegistry, bucket: &str, property: &str, value: serde_json::Value) {
    let changes = json!({ property: value }).as_object().cloned().unwrap();
    registry.set_bucket(&Bucket::untyped(bucket.to_owned()), &changes).unwrap();
}
