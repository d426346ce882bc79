//! No sequence number is given twice: not after losses of power, one after the other, and not after
//! the files of a store were set back to an earlier moment of the same run.

use crate::common::*;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory,
    MemoryFactory, MultiFactory, NoTerms, Selector, StorageError,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// How many numbers a start skips at least.
const JUMP: u64 = 1 << 26;
const PARTITION: u32 = 5;
/// A key for each store of a partition with two stores.
const KEYS: [&[u8]; 2] = [b"key 0", b"key 1"];

/// The last byte of a key selects the backend.
struct ByLastByte;

impl Selector for ByLastByte {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(usize::from(key.last().is_some_and(|byte| byte % 2 == 1)))
    }
}

fn config() -> JournalConfig {
    JournalConfig { file_bytes_max: 2000, merge: eager_merges(), opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

fn bitcask(fs: &Arc<FaultyFs>, root: &str) -> BitcaskFactory {
    BitcaskFactory::new(fs.clone(), root, config()).unwrap()
}

/// The store of a partition on a disk.
fn one(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    bitcask(fs, "/data").open(PARTITION).unwrap()
}

/// A partition of two stores, on a disk each.
fn two(disks: [&Arc<FaultyFs>; 2]) -> Arc<dyn Backend> {
    let backends: Vec<(String, Arc<dyn BackendFactory>)> =
        vec![("a".into(), Arc::new(bitcask(disks[0], "/a"))), ("b".into(), Arc::new(bitcask(disks[1], "/b")))];
    MultiFactory::new(backends, Arc::new(ByLastByte)).open(PARTITION).unwrap()
}

/// The numbers that the stores of a partition have given.
#[derive(Default)]
struct Given(BTreeSet<u64>);

impl Given {
    fn put(&mut self, store: &dyn Backend, key: &[u8]) -> u64 {
        let seq = put(store, key, b"value").unwrap().seq;
        self.note(store, seq);
        seq
    }

    fn note(&mut self, store: &dyn Backend, seq: u64) {
        assert!(self.0.insert(seq), "{seq} is given for the second time");
        assert!(seq >= store.first_seq());
        assert_eq!(store.last_seq(), seq);
    }
}

#[test]
fn a_tail_that_is_lost_again_and_again_leaves_no_number_for_later_appends() {
    let mut given = Given::default();
    let mut fs = FaultyFs::new(1);
    let kept = {
        let store = one(&fs);
        let kept = given.put(&*store, b"kept");
        store.sync(kept).unwrap();
        kept
    };
    for _ in 0..4 {
        // Each of these starts finds the same last append.
        fs = fs.restart(Loss::Everything);
        let store = one(&fs);
        assert_eq!((store.last_seq(), store.synced_seq()), (kept, kept), "what is there decides");
        assert!(store.first_seq() > kept + JUMP);
        for _ in 0..5 {
            given.put(&*store, b"lost");
        }
        assert_eq!(store.found_seq(), kept, "later appends do not change that");
    }
}

/// The start that finds the loss ends in order and has no append. So the next one finds what it
/// found.
#[test]
fn an_orderly_end_without_appends_forgets_no_loss() {
    let mut given = Given::default();
    let fs = FaultyFs::new(1);
    let store = one(&fs);
    store.sync(given.put(&*store, b"kept")).unwrap();
    store.close().unwrap();
    drop(store);
    let store = one(&fs);
    given.put(&*store, b"lost");
    drop(store);
    let fs = fs.restart(Loss::Everything);
    for _ in 0..3 {
        let store = one(&fs);
        store.maintain(NOW_SECS).unwrap();
        store.close().unwrap();
    }
    given.put(&*one(&fs), b"key");
}

#[test]
fn a_store_that_lost_everything_goes_on_behind_it() {
    let mut given = Given::default();
    let fs = FaultyFs::new(1);
    let store = one(&fs);
    assert_eq!(given.put(&*store, b"lost"), 1, "a new store begins at the beginning");
    let id = store.identity().store_id;
    drop(store);
    let store = one(&fs.restart(Loss::Everything));
    assert_eq!((store.last_seq(), store.identity().store_id), (0, id), "it is empty, and the same");
    assert!(given.put(&*store, b"key") > JUMP);
}

#[test]
fn a_disk_that_is_set_back_within_a_run_leaves_no_number_for_later_appends() {
    for has_appended in [false, true] {
        let mut given = Given::default();
        let mut fs = FaultyFs::new(1);
        let store = one(&fs);
        store.sync(given.put(&*store, b"key")).unwrap();
        store.close().unwrap();
        drop(store);
        for _ in 0..3 {
            let store = one(&fs);
            if has_appended {
                given.put(&*store, b"key");
            }
            let earlier = fs.snapshot();
            // These are durable, and the disk forgets them nevertheless.
            (0..5).for_each(|_| store.sync(given.put(&*store, b"key")).unwrap());
            drop(store);
            fs = earlier;
        }
    }
}

#[test]
fn a_start_without_appends_uses_up_nothing() {
    let fs = FaultyFs::new(1);
    let store = one(&fs);
    let last = put(&*store, b"key", b"value").unwrap().seq;
    store.close().unwrap();
    drop(store);
    let mut firsts = BTreeSet::new();
    for _ in 0..4 {
        let store = one(&fs);
        firsts.insert(store.first_seq());
        assert_eq!(store.last_seq(), last);
        store.close().unwrap();
    }
    assert_eq!(firsts.len(), 1);
    let store = one(&fs);
    assert_eq!(firsts.first(), Some(&put(&*store, b"key", b"value").unwrap().seq));
}

/// One store of the partition has a higher base than the other, and ends in order without an
/// append. The other one has given numbers above that base, and loses them.
#[test]
fn each_store_of_a_partition_knows_the_base_of_all() {
    for high in [0, 1] {
        let mut disks = [FaultyFs::new(1), FaultyFs::new(2)];
        let mut given = Given::default();
        let store = two([&disks[0], &disks[1]]);
        KEYS.iter().for_each(|key| store.sync(given.put(&*store, key)).unwrap());
        drop(store);
        for _ in 0..3 {
            let root = ["/a", "/b"][high];
            disks[high] = disks[high].restart(Loss::Everything);
            let store = bitcask(&disks[high], root).open(PARTITION).unwrap();
            store.sync(given.put(&*store, KEYS[high])).unwrap();
        }
        let low = 1 - high;
        disks = disks.map(|fs| fs.restart(Loss::Everything));
        let store = two([&disks[0], &disks[1]]);
        given.put(&*store, KEYS[low]);
        disks[low].cut_power_at(1);
        assert!(store.close().is_err(), "one of two");
        drop(store);
        disks[low] = disks[low].restart(Loss::Everything);
        let store = two([&disks[0], &disks[1]]);
        given.put(&*store, KEYS[low]);
        given.put(&*store, KEYS[high]);
    }
}

/// Whoever is told the last number compares it with what the next start finds.
#[test]
fn an_append_that_fails_is_not_the_last_one() {
    let mut disks = [FaultyFs::new(1), FaultyFs::new(2)];
    let mut given = Given::default();
    let store = two([&disks[0], &disks[1]]);
    KEYS.iter().for_each(|key| store.sync(given.put(&*store, key)).unwrap());
    let last = store.last_seq();
    disks[0].fail_at(Call::Write, 1);
    assert!(put(&*store, KEYS[0], b"value").is_err());
    assert_eq!(store.last_seq(), last);
    drop(store);
    disks = disks.map(|fs| fs.restart(Loss::Nothing));
    let store = two([&disks[0], &disks[1]]);
    assert_eq!(store.last_seq(), last);
    given.put(&*store, KEYS[1]);
}

#[test]
fn stores_with_ledgers_skip_numbers_too() {
    let open = |dir: &Path, inline: bool| -> Arc<dyn Backend> {
        let fs = Arc::new(ombak_storage::fs::RealFs);
        let (ledger, terms) = (LedgerConfig::default(), Arc::new(NoTerms));
        if inline {
            LeveldbFactory::new(fs, dir, config(), ledger, terms).unwrap().open(PARTITION).unwrap()
        } else {
            LeveledFactory::new(fs, dir, config(), ledger, terms).unwrap().open(PARTITION).unwrap()
        }
    };
    for inline in [false, true] {
        let (dir, mut given) = (scratch_dir(), Given::default());
        for is_closed in [true, false, true] {
            let store = open(dir.path(), inline);
            let found = store.last_seq();
            assert_eq!(store.first_seq() > found + JUMP, found > 0);
            for key in [b"one", b"two"] {
                given.put(&*store, key);
            }
            if is_closed {
                store.close().unwrap();
            }
        }
    }
}

/// The ordered index is written after many appends. Numbers that a start skips are no appends.
#[test]
fn a_start_does_not_write_the_ordered_index_for_the_numbers_that_it_skips() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let open = || BitcaskFactory::new(fs.clone(), dir.path().join("data"), config()).unwrap().open(PARTITION).unwrap();
    let store = open();
    put(&*store, b"key", b"value").unwrap();
    drop(store.ordered_snapshot(b"").unwrap());
    store.close().unwrap();
    drop(store);
    for n in 0..3 {
        let store = open();
        put(&*store, format!("key {n}").as_bytes(), b"value").unwrap();
        let written_bytes = || store.status().ledger.expect("an ordered index").written_bytes;
        let before = written_bytes();
        (0..5).for_each(|_| store.maintain(NOW_SECS).unwrap());
        assert_eq!(written_bytes(), before);
    }
}

#[test]
fn a_memory_store_is_another_one_at_each_start() {
    let factory = MemoryFactory::default();
    let open = || {
        let store = factory.open(PARTITION).unwrap();
        assert_eq!((store.last_seq(), store.first_seq()), (0, 1));
        assert_eq!(put(&*store, b"key", b"value").unwrap().seq, 1);
        store.identity().store_id
    };
    assert_ne!(open(), open());
}

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Sync,
    Maintain,
    /// The store ends in order and is opened again.
    Close,
    /// The process or the machine ends and comes back.
    End(Loss),
    /// An image of the disk is taken.
    Image,
    /// An image of this run takes the place of the disk.
    SetBack(usize, Loss),
}

fn step() -> impl Strategy<Value = Step> {
    let loss = || prop_oneof![Just(Loss::Everything), Just(Loss::Some), Just(Loss::Nothing), Just(Loss::Remount)];
    prop_oneof![
        10 => (0..12u8, 0..200u8).prop_map(|(key, bytes)| Step::Put(key, bytes)),
        3 => (0..12u8).prop_map(Step::Delete),
        2 => Just(Step::Sync),
        2 => Just(Step::Maintain),
        1 => Just(Step::Close),
        2 => loss().prop_map(Step::End),
        3 => Just(Step::Image),
        2 => (0..4usize, loss()).prop_map(|(which, loss)| Step::SetBack(which, loss)),
    ]
}

/// One or two stores on one disk, and what they have given.
struct History {
    has_two: bool,
    fs: Arc<FaultyFs>,
    /// None while it is opened anew.
    store: Option<Arc<dyn Backend>>,
    images: Vec<Arc<FaultyFs>>,
    given: Given,
    store_id: u64,
}

impl History {
    /// A partition whose stores have been written to, so that they keep their ids.
    fn new(has_two: bool) -> Self {
        let (fs, images, given) = (FaultyFs::new(1), Vec::new(), Given::default());
        let mut history = Self { has_two, fs, store: None, images, given, store_id: 0 };
        history.open();
        KEYS.iter().for_each(|key| history.put(key, 1));
        history.store_id = history.store().identity().store_id;
        history
    }

    fn store(&self) -> Arc<dyn Backend> {
        self.store.clone().expect("it is open")
    }

    fn open(&mut self) {
        self.images.clear();
        self.store = Some(if self.has_two { two([&self.fs, &self.fs]) } else { one(&self.fs) });
        let id = self.store().identity().store_id;
        assert!(self.store_id == 0 || self.store_id == id, "it is the same store");
    }

    fn put(&mut self, key: &[u8], bytes: u8) {
        let store = self.store();
        let appended = put(&*store, key, &vec![7; usize::from(bytes)]).unwrap();
        self.given.note(&*store, appended.seq);
    }

    fn take(&mut self, step: &Step) {
        let store = self.store();
        match step {
            Step::Put(key, bytes) => self.put(format!("key {key}").as_bytes(), *bytes),
            Step::Delete(key) => {
                if let Some(appended) = store.delete(format!("key {key}").as_bytes()).unwrap() {
                    self.given.note(&*store, appended.seq);
                }
            }
            Step::Sync => store.sync(store.last_seq()).unwrap(),
            Step::Maintain => (0..5).for_each(|_| store.maintain(NOW_SECS).unwrap()),
            Step::Image => self.images.push(self.fs.snapshot()),
            Step::Close => {
                store.close().unwrap();
                drop((store, self.store.take()));
                self.open();
            }
            Step::End(loss) => {
                drop((store, self.store.take()));
                self.fs = self.fs.restart(*loss);
                self.open();
            }
            Step::SetBack(which, loss) => {
                let Some(image) = self.images.get(*which).cloned() else { return };
                drop((store, self.store.take()));
                self.fs = image.restart(*loss);
                self.open();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_number_is_given_twice(has_two in any::<bool>(), steps in prop::collection::vec(step(), 1..80)) {
        let mut history = History::new(has_two);
        steps.iter().for_each(|step| history.take(step));
    }
}
