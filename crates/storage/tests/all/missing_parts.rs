//! Parts of a store that are missing although its data files are there, and keys that are known to
//! be lost. A start misses the small files and the directory of a partition; ordered queries go on.

use crate::common::*;
use ombak_storage::fs::RealFs;
use ombak_storage::verify::{StoreKind, StoreRoot, StoreRootConfig};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, HeadTerms, InventoryConfig, JournalConfig, KeyRange, LedgerConfig,
    LeveldbFactory, LeveledFactory, StorageError, TermRange, Write, check_root,
};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KINDS: [StoreKind; 3] = [StoreKind::Bitcask, StoreKind::Leveled, StoreKind::Leveldb];
const BUCKET: &[u8] = b"\x02\0\x01b";
const FIELD: &[u8] = b"f_bin";
const PARTITION: u32 = 7;

/// The whole head is one term.
struct WholeHead;

impl HeadTerms for WholeHead {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        visit(FIELD, head);
    }
}

/// A root of stores, and the directory of the node with the second copy of their inventories.
struct Root {
    kind: StoreKind,
    dir: tempfile::TempDir,
}

impl Root {
    fn new(kind: StoreKind) -> Self {
        Self { kind, dir: scratch_dir() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("stores")
    }

    fn partition(&self) -> PathBuf {
        self.path().join(PARTITION.to_string())
    }

    fn inventory(&self, accepts_loss: bool) -> InventoryConfig {
        InventoryConfig { node_dir: Some(self.dir.path().join("node")), accepts_loss }
    }

    fn open_with(&self, inventory: InventoryConfig) -> Result<Arc<dyn Backend>, StorageError> {
        let (fs, path, terms) = (Arc::new(RealFs), self.path(), Arc::new(WholeHead));
        let (journal, ledger) = (JournalConfig::default(), LedgerConfig::default());
        let factory: Box<dyn BackendFactory> = match self.kind {
            StoreKind::Bitcask => {
                Box::new(BitcaskFactory::with_terms(fs, path, journal, &ledger, terms)?.with_inventory(inventory))
            }
            StoreKind::Leveled => {
                Box::new(LeveledFactory::new(fs, path, journal, ledger, terms)?.with_inventory(inventory))
            }
            StoreKind::Leveldb => {
                Box::new(LeveldbFactory::new(fs, path, journal, ledger, terms)?.with_inventory(inventory))
            }
        };
        factory.open(PARTITION)
    }

    fn open(&self) -> Arc<dyn Backend> {
        self.open_with(self.inventory(false)).unwrap()
    }

    /// The start is refused, by the store and by the look at the whole root, and changes nothing.
    #[track_caller]
    fn check_refused(&self, words: &[&str]) {
        self.check_refused_with(self.inventory(false), words);
    }

    #[track_caller]
    fn check_refused_with(&self, inventory: InventoryConfig, words: &[&str]) {
        let before = files(&self.path());
        let checked = check_root(&RealFs, &self.path(), self.kind, &inventory).err();
        for error in [checked, self.open_with(inventory).err()] {
            let error = error.unwrap_or_else(|| panic!("{:?}: it starts", self.kind)).to_string();
            let general = ["partition 7", "--accept-loss", "--repair"];
            for word in words.iter().chain(&general) {
                assert!(error.contains(word), "{:?}: no {word:?} in: {error}", self.kind);
            }
        }
        assert_eq!(files(&self.path()), before, "{:?}: changed", self.kind);
    }

    fn repair(&self) {
        let config = StoreRootConfig {
            kind: self.kind,
            journal: JournalConfig::default(),
            ledger: LedgerConfig::default(),
            terms: Arc::new(WholeHead),
            inventory: self.inventory(false),
        };
        let mut root = StoreRoot::open(Arc::new(RealFs), self.path(), config).unwrap().unwrap();
        assert_eq!(root.partitions().unwrap(), [PARTITION]);
        let (before, after) = root.repair(PARTITION, &mut |_| true).unwrap();
        assert!(!before.findings.is_empty(), "{:?}: nothing was found", self.kind);
        assert!(after.findings.is_empty(), "{:?}: {:?}", self.kind, after.findings);
    }
}

/// Every file below but locks, with its content.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if !path.ends_with("lock") {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

fn key(n: u32) -> Vec<u8> {
    [BUCKET, format!("key{n:03}").as_bytes()].concat()
}

fn put_all(store: &dyn Backend, keys: std::ops::Range<u32>, term: &[u8]) {
    for n in keys {
        let (key, body) = (key(n), format!("value {n}").into_bytes());
        let write = Write {
            key: &key,
            head: term,
            body: &[&body],
            digest: u64::from(n),
            tstamp_secs: 1,
            expires_secs: 0,
            has_terms: true,
        };
        store.put(&write).unwrap();
    }
}

fn readable(store: &dyn Backend, keys: std::ops::Range<u32>) -> Vec<Option<bool>> {
    let read = |n| store.get(&key(n), ombak_storage::ReadMode::Blocking);
    keys.map(|n| read(n).ok().map(|found| found.is_some())).collect()
}

type Keys = Vec<Vec<u8>>;

/// The keys that an ordered listing finds, and those that an index query finds.
fn query(store: &dyn Backend) -> Result<(Keys, Keys), StorageError> {
    let mut ordered = store.ordered_snapshot(BUCKET)?;
    let all = KeyRange { bucket: BUCKET, from: Bound::Unbounded, to: Bound::Unbounded };
    let keys = ordered.keys_in_order(&all, 1000)?.into_iter().map(|entry| entry.key.to_vec()).collect();
    let range = TermRange { bucket: BUCKET, field: FIELD, from: b"", to: b"\xff", after: None };
    let terms =
        ordered.terms_in_order(&range, 1000)?.into_iter().map(|entry| [BUCKET, &entry.key[..]].concat()).collect();
    Ok((keys, terms))
}

/// What a store of each kind has beside its data files once it has lost something and merged.
fn small_files(kind: StoreKind) -> &'static [&'static str] {
    match kind {
        StoreKind::Leveldb => &["identity", "lost", "covered"],
        _ => &["identity", "lost"],
    }
}

#[test]
fn a_small_file_that_is_gone_is_missed() {
    for kind in KINDS {
        for name in small_files(kind) {
            for is_repaired in [false, true] {
                let root = Root::new(kind);
                let store = root.open();
                put_all(&*store, 0..20, b"term");
                store.note_loss(1).unwrap();
                store.close().unwrap();
                drop(store);
                let path = root.partition().join(name);
                let aside = root.dir.path().join("aside");
                fs::rename(&path, &aside).unwrap_or_else(|e| panic!("{kind:?}: no {name}: {e}"));
                root.check_refused(&[&format!("{} is missing", path.display())]);

                fs::rename(&aside, &path).unwrap();
                let store = root.open();
                assert_eq!(readable(&*store, 0..20), [Some(true); 20], "{kind:?}, {name} put back");
                store.close().unwrap();
                drop(store);

                fs::remove_file(&path).unwrap();
                root.check_refused(&[name]);
                if is_repaired {
                    root.repair();
                } else {
                    let store = root.open_with(root.inventory(true)).unwrap();
                    assert!(!store.complete(), "{kind:?}, {name}: the loss is not told of");
                    store.close().unwrap();
                }
                let store = root.open();
                assert!(!store.complete(), "{kind:?}, {name}: the loss is forgotten");
                assert_eq!(readable(&*store, 0..20), [Some(true); 20], "{kind:?}, {name}, repaired: {is_repaired}");
            }
        }
    }
}

fn with_keys(kind: StoreKind, keys: std::ops::Range<u32>) -> Root {
    let root = Root::new(kind);
    let store = root.open();
    put_all(&*store, keys, b"term");
    store.close().unwrap();
    root
}

/// The file of another store is longer, and whole. Its fingerprint tells that it is not the one.
#[test]
fn another_file_under_the_name_of_a_data_file_is_refused() {
    for kind in [StoreKind::Bitcask, StoreKind::Leveled] {
        let (root, other) = (with_keys(kind, 0..20), with_keys(kind, 0..40));
        let is_data = |path: &PathBuf| path.extension() == Some("data".as_ref());
        let path = files(&root.partition()).into_keys().find(is_data).unwrap();
        let copied = fs::copy(other.partition().join(path.file_name().unwrap()), &path).unwrap();
        assert!(copied > 0, "{kind:?}");
        root.check_refused(&[&format!("{} is another file than the one that was there", path.display())]);
    }
}

#[test]
fn a_store_that_is_gone_is_refused_as_a_whole() {
    for kind in KINDS {
        let root = with_keys(kind, 0..20);
        fs::remove_dir_all(root.partition()).unwrap();
        let _ = fs::remove_dir_all(root.path().join(format!("{PARTITION}.ledger")));
        let inventory = root.inventory(false);
        let error = root.open_with(inventory.clone()).err().unwrap().to_string();
        assert!(error.contains("the store is gone, or its file system is not mounted"), "{kind:?}: {error}");
        let error = check_root(&RealFs, &root.path(), kind, &inventory).err().unwrap().to_string();
        assert!(error.contains("the stores of 1 partitions were in this directory"), "{kind:?}: {error}");
    }
}

#[test]
fn the_store_of_another_node_is_refused() {
    for kind in KINDS {
        let (root, other) = (with_keys(kind, 0..20), with_keys(kind, 0..20));
        fs::remove_dir_all(root.path()).unwrap();
        copy_dir(&other.path(), &root.path());
        root.check_refused(&["is of another store than the one that this node has used here"]);
        // Its own node starts it.
        let store = other.open();
        assert_eq!(readable(&*store, 0..20), [Some(true); 20], "{kind:?}");
    }
}

/// A node that was killed has closed nothing; what it had written is promised nevertheless.
#[test]
fn a_small_file_that_is_gone_is_missed_after_a_kill() {
    for kind in KINDS {
        let root = Root::new(kind);
        let store = root.open();
        put_all(&*store, 0..20, b"term");
        store.note_loss(1).unwrap();
        store.sync(store.last_seq()).unwrap();
        store.maintain(NOW_SECS).unwrap();
        drop(store);
        for name in ["identity", "lost"] {
            let (path, aside) = (root.partition().join(name), root.dir.path().join("aside"));
            fs::rename(&path, &aside).unwrap();
            root.check_refused(&[&format!("{} is missing", path.display())]);
            fs::rename(&aside, &path).unwrap();
        }
        drop(root.open());
    }
}

/// The node has lost its own copy of the inventory, or never had one. The ledger says that there
/// was something.
#[test]
fn a_partition_directory_that_is_gone_is_missed_by_its_ledger() {
    for kind in KINDS {
        for is_repaired in [false, true] {
            let root = Root::new(kind);
            let store = root.open();
            put_all(&*store, 0..20, b"term");
            query(&*store).unwrap();
            store.close().unwrap();
            drop(store);
            fs::remove_dir_all(root.partition()).unwrap();
            let partition = root.partition().display().to_string();
            let without_node = InventoryConfig { node_dir: None, accepts_loss: false };
            root.check_refused_with(without_node, &[&format!("{partition} is missing")]);
            fs::remove_dir_all(root.dir.path().join("node")).unwrap();
            root.check_refused(&[&format!("{partition} is missing")]);
            if is_repaired {
                root.repair();
            } else {
                let store = root.open_with(root.inventory(true)).unwrap();
                assert!(!store.complete(), "{kind:?}: the loss is not told of");
                store.close().unwrap();
            }
            let store = root.open();
            assert!(!store.complete(), "{kind:?}: the loss is forgotten");
            put_all(&*store, 20..30, b"later");
            let (keys, terms) = query(&*store).unwrap();
            assert!((20..30).all(|n| keys.contains(&key(n)) && terms.contains(&key(n))), "{kind:?}: {keys:?}");
        }
    }
}

/// A partition that was dropped, or never written to, has a ledger and no directory.
#[test]
fn a_partition_that_has_nothing_is_not_missed() {
    for kind in KINDS {
        let root = Root::new(kind);
        let store = root.open();
        put_all(&*store, 0..5, b"term");
        query(&*store).unwrap();
        store.drop_partition().unwrap();
        drop(store);
        for _ in 0..2 {
            let without_node = InventoryConfig { node_dir: None, accepts_loss: false };
            check_root(&RealFs, &root.path(), kind, &without_node).unwrap();
            let store = root.open_with(without_node).unwrap();
            query(&*store).unwrap();
            assert!(store.complete(), "{kind:?}");
            store.close().unwrap();
        }
    }
}

#[test]
fn an_ordered_query_goes_on_over_keys_with_accepted_loss() {
    for kind in [StoreKind::Bitcask, StoreKind::Leveled] {
        // An order of keys that was made before the loss has its entries, another one is made after
        // it.
        for (is_shortened, is_queried) in [(false, true), (true, true), (false, false), (true, false)] {
            let root = Root::new(kind);
            for (keys, term) in [(0..20, &b"old"[..]), (10..30, b"new")] {
                let store = root.open();
                put_all(&*store, keys.clone(), term);
                if is_queried {
                    let (_, terms) = query(&*store).unwrap();
                    assert!(keys.clone().all(|n| terms.contains(&key(n))), "{kind:?}: {terms:?}");
                }
                store.close().unwrap();
            }
            let newest = files(&root.partition()).into_keys().filter(|path| path.extension() == Some("data".as_ref()));
            let newest = newest.max().unwrap();
            if is_shortened {
                let length = newest.metadata().unwrap().len();
                fs::File::options().write(true).open(&newest).unwrap().set_len(length / 2).unwrap();
            } else {
                fs::remove_file(&newest).unwrap();
            }
            for inventory in [root.inventory(true), root.inventory(false)] {
                let place = format!("{kind:?}, shortened: {is_shortened}, queried: {is_queried}, {inventory:?}");
                let store = root.open_with(inventory).unwrap();
                let readable = readable(&*store, 0..30);
                assert!(readable[..10].iter().all(|found| *found == Some(true)), "{place}: {readable:?}");
                assert!(readable[10..].contains(&None), "{place}: nothing is lost");
                let (keys, terms) = query(&*store).unwrap_or_else(|error| panic!("{place}: {error}"));
                // Every key is listed, and no key has an index entry of an older version.
                assert_eq!(keys, (0..30).map(key).collect::<Vec<_>>(), "{place}");
                for n in (0..30).filter(|n| readable[*n as usize] == Some(true)) {
                    assert!(terms.contains(&key(n)), "{place}: key {n} has no index entry");
                }
                // Queries go on after more was written, too.
                put_all(&*store, 40..45, b"later");
                let (_, terms) = query(&*store).unwrap();
                assert!((40..45).all(|n| terms.contains(&key(n))), "{place}");
                for n in 40..45 {
                    store.delete(&key(n)).unwrap();
                }
                store.close().unwrap();
            }
        }
    }
}
