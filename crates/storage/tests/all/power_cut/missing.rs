//! Starts that find durable data missing: a file, the end of a file, a newer copy of a file, the
//! store, or the root; after a clean stop, a kill and a loss of power, on every backend. The store
//! is refused and nothing is changed. When the data is put back, the store is whole. If the
//! operator accepts the loss, no wrong answer is given except where the store is known to be
//! incomplete.

use crate::common::{NOW_SECS, Random};
use crate::power_cut::ledgers::Ledgers;
use crate::power_cut::oracle::{Oracle, key_count, key_of, put};
use crate::power_cut::stores::{Kind, Options, PARTITION};
use crate::power_cut::{Disk, work};
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::fs::{FileSystem, OpenMode};
use ombak_storage::{Backend, ReadMode, StorageError, SyncStrategy};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const STEPS: u64 = 40;
/// Histories for each backend, each kind of stop and each fault.
const SEEDS: u64 = 6;

/// How the store was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Clean,
    Kill,
    PowerLoss,
}

const STOPS: [Stop; 3] = [Stop::Clean, Stop::Kill, Stop::PowerLoss];

/// A stopped store, and a snapshot of the disk at an earlier clean stop.
struct Stopped {
    disk: Disk,
    earlier: Arc<FaultyFs>,
    oracle: Oracle,
    random: Random,
    when: String,
}

impl Stopped {
    fn new(kind: Kind, stop: Stop, seed: u64) -> Self {
        let when = format!("{kind:?}, {stop:?}, seed {seed}");
        let mut disk = Disk::new(Options::of_seed(kind, SyncStrategy::OSync, seed), seed);
        let (mut oracle, mut random) = (Oracle::default(), Random::new(seed));
        run(&disk, &mut oracle, &mut random, &when).close().unwrap();
        disk.restart(Loss::Nothing);
        let earlier = disk.fs.snapshot();
        let ledgers = Ledgers::watch(&disk.fs, &disk.root());
        let store = run(&disk, &mut oracle, &mut random, &when);
        if stop == Stop::Clean {
            store.close().unwrap();
        }
        drop(store);
        if stop == Stop::PowerLoss {
            ledgers.lock().unwrap().crash(&mut random);
        }
        disk.restart(if stop == Stop::PowerLoss { Loss::Some } else { Loss::Nothing });
        Self { disk, earlier, oracle, random, when }
    }

    /// The promised data files. A loss of power may also bring back removed files.
    fn data_files(&self) -> Vec<PathBuf> {
        let files = files(&self.disk.fs, &self.disk.root());
        let is_promised = |path: &&PathBuf| {
            let inventory = path.parent().and_then(|dir| files.get(&dir.join("inventory")));
            let id = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            let is_data = path.extension().is_some_and(|extension| extension == "data");
            is_data && inventory.zip(id).is_some_and(|(inventory, id)| promised_ids(inventory).contains(&id))
        };
        files.keys().filter(is_promised).cloned().collect()
    }

    fn pick(&mut self, files: &[PathBuf]) -> PathBuf {
        files[self.random.below(files.len() as u64) as usize].clone()
    }

    /// Checks that the start is refused with an error that contains `words` and changes nothing;
    /// that everything is there after the data is put back; and that the missing data is known
    /// after the operator accepts the loss.
    fn check(mut self, whole: &Arc<FaultyFs>, words: &[&str]) {
        let Self { disk, when, .. } = &self;
        let before = files(&disk.fs, &disk.root());
        for _ in 0..2 {
            match disk.options.open(&disk.fs, &disk.root()) {
                Err(StorageError::Unusable { path, what }) => {
                    let said = format!("{}: {what}", path.display());
                    assert!(words.iter().all(|word| said.contains(word)), "{when}: {said}");
                }
                Err(error) => panic!("{when}: {error}"),
                Ok(_) => panic!("{when}: it starts"),
            }
            // A multi store opens its backends one after another; a node checks all of them before
            // it opens one.
            let after = files(&disk.fs, &disk.root());
            assert!(disk.options.kind == Kind::Multi || before == after, "{when}: changed by a start that was refused");
        }
        let broken = disk.fs.snapshot();
        self.accept(broken);
        // The missing data is put back.
        self.disk.fs = whole.clone();
        let durable = self.oracle.synced_seq;
        if self.disk.options.kind == Kind::Bitcask {
            let store = self.disk.must_open(&self.when);
            assert!(store.complete(), "{}", self.when);
            self.oracle.check(&*store, durable, &self.when);
        }
    }

    /// The operator accepts the loss. What is there now is there at later starts as well.
    fn accept(&mut self, broken: Arc<FaultyFs>) {
        self.disk.fs = broken;
        let accepted = self.disk.options.open_accepting_loss(&self.disk.fs, &self.disk.root());
        // Values that are only in a tree of leveldb are lost with the journal; that start is
        // refused with an error of its own.
        let Ok(store) = accepted else {
            assert!(self.disk.options.kind.has_data_in_ledger(), "{}: {:?}", self.when, accepted.err());
            return;
        };
        assert!(!store.complete(), "{}: a loss is not told of", self.when);
        let durable = self.oracle.synced_seq;
        self.oracle.check_damaged(&*store, durable, &self.when);
        let answers = answers(&*store);
        drop(store);
        for loss in [Loss::Everything, Loss::Nothing] {
            self.disk.restart(loss);
            let store = self.disk.must_open(&format!("{}, after it was accepted", self.when));
            assert!(!store.complete(), "{}: a loss is forgotten", self.when);
            self.oracle.check_damaged(&*store, durable, &self.when);
            assert_eq!(self::answers(&*store), answers, "{}: another start answers something else", self.when);
            let _ = store.maintain(NOW_SECS);
            let _ = store.close();
        }
    }
}

/// The ids of the data files in an inventory; the layout is in `inventory/record.rs`.
fn promised_ids(inventory: &[u8]) -> Vec<u32> {
    let number = |at: usize| u32::from_le_bytes(inventory[at..at + 4].try_into().unwrap());
    (0..number(12) as usize).map(|place| number(48 + 24 * place)).collect()
}

/// Opens the store and works with it. The last writes are in the inventory.
fn run(disk: &Disk, oracle: &mut Oracle, random: &mut Random, when: &str) -> Arc<dyn Backend> {
    let store = disk.must_open(when);
    work(disk, &*store, oracle, random, STEPS, false);
    store.maintain(NOW_SECS).unwrap();
    store.maintain(NOW_SECS).unwrap();
    // Few enough that a tree of leveldb is not written, because its journal would then be removed.
    let every = if disk.options.kind.has_data_in_ledger() { 4 } else { 1 };
    for number in (0..key_count()).step_by(every) {
        let (key, value) = (key_of(number), format!("{} in the end", random.below(1000)).into_bytes());
        let seq = put(&*store, &key, &value).unwrap().seq;
        oracle.record(&key, Some(seq), Some(value));
        store.sync(seq).unwrap();
        oracle.synced_seq = seq;
    }
    store.maintain(NOW_SECS).unwrap();
    store
}

/// The answer for each key; none for an error.
fn answers(store: &dyn Backend) -> Vec<Option<Option<Vec<u8>>>> {
    let answer =
        |number| store.get(&key_of(number), ReadMode::Blocking).ok().map(|found| found.map(|f| f.head.to_vec()));
    (0..key_count()).map(answer).collect()
}

/// Every file below a directory except locks, with its content.
fn files(fs: &FaultyFs, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for name in fs.list(dir).unwrap_or_default() {
        let path = dir.join(&name);
        match fs.open(&path, OpenMode::Read) {
            Ok(_) if name == "lock" => {}
            Ok(file) => {
                let mut bytes = vec![0; file.length().unwrap() as usize];
                file.read_at(&mut bytes, 0, ReadMode::Blocking).unwrap();
                found.insert(path, bytes);
            }
            Err(_) => found.extend(files(fs, &path)),
        }
    }
    found
}

/// Replaces the content of a file.
fn replace(fs: &FaultyFs, path: &Path, bytes: &[u8]) {
    let file = fs.open(path, OpenMode::Write).unwrap();
    file.truncate(0).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
}

/// Runs a fault on every backend after each kind of stop. The fault returns the words that the
/// error must contain, or none if there was nothing to damage.
fn on_all(fault: impl Fn(&mut Stopped) -> Option<Vec<String>>) {
    for kind in Kind::ALL {
        for stop in STOPS {
            let mut shown = 0;
            for seed in 0..SEEDS {
                let mut stopped = Stopped::new(kind, stop, seed);
                let whole = stopped.disk.fs.snapshot();
                let Some(words) = fault(&mut stopped) else { continue };
                shown += 1;
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                stopped.check(&whole, &words);
            }
            // Leveldb has no data files after a clean stop.
            assert!(shown > 0 || (kind == Kind::Leveldb && stop == Stop::Clean), "{kind:?}, {stop:?}: it never showed");
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_file_is_gone() {
    on_all(|stopped| {
        let files = stopped.data_files();
        if files.is_empty() {
            return None;
        }
        let path = stopped.pick(&files);
        stopped.disk.fs.remove_file(&path).unwrap();
        stopped.disk.fs.sync_dir(path.parent().unwrap()).unwrap();
        stopped.when += &format!(", without {}", path.display());
        Some(vec![name_of(&path), "is missing".into(), format!("partition {PARTITION} "), "--accept-loss".into()])
    });
}

#[test]
fn a_file_is_shorter() {
    on_all(|stopped| {
        let files = stopped.data_files();
        if files.is_empty() {
            return None;
        }
        let path = stopped.pick(&files);
        // For the active file, the inventory knows only the beginning.
        let length = stopped.random.below(100);
        let file = stopped.disk.fs.open(&path, OpenMode::Write).unwrap();
        file.truncate(length).unwrap();
        file.sync_data().unwrap();
        stopped.when += &format!(", {} cut to {length}", path.display());
        Some(vec![name_of(&path), format!("has {length} bytes"), "--repair".into()])
    });
}

/// An older copy of a file was put back.
#[test]
fn a_file_is_an_older_copy() {
    on_all(|stopped| {
        let inside = stopped.disk.root();
        let (now, earlier) = (files(&stopped.disk.fs, &inside), files(&stopped.earlier, &inside));
        let is_older = |(path, bytes): &(&PathBuf, &Vec<u8>)| {
            path.extension().is_some_and(|extension| extension == "data")
                && now.get(*path).is_some_and(|now| now != *bytes)
        };
        // A closed file never changes. If no file has an older copy, the newest file is cut to its
        // header.
        let found = earlier.iter().find(is_older).map(|(path, bytes)| (path.clone(), bytes.clone()));
        let (path, bytes) = found.or_else(|| {
            let path = stopped.data_files().pop()?;
            Some((path.clone(), now[&path][..40].to_vec()))
        })?;
        replace(&stopped.disk.fs, &path, &bytes);
        stopped.when += &format!(", an older copy of {}", path.display());
        Some(vec![name_of(&path)])
    });
}

/// All files of the store are as they were at an earlier stop.
#[test]
fn the_store_is_an_older_copy() {
    on_all(|stopped| {
        let root = stopped.disk.root();
        let (mut now, mut earlier) = (files(&stopped.disk.fs, &root), files(&stopped.earlier, &root));
        // The node's copies of inventories are on another disk.
        let is_of_store = |path: &PathBuf| !path.to_str().unwrap().contains(".inventory");
        now.retain(|path, _| is_of_store(path));
        earlier.retain(|path, _| is_of_store(path));
        for path in now.keys().filter(|path| !earlier.contains_key(*path)) {
            stopped.disk.fs.remove_file(path).unwrap();
        }
        for (path, bytes) in &earlier {
            if !now.contains_key(path) {
                stopped.disk.fs.open(path, OpenMode::CreateNew).unwrap();
            }
            replace(&stopped.disk.fs, path, bytes);
            stopped.disk.fs.sync_dir(path.parent().unwrap()).unwrap();
        }
        stopped.when += ", all of it older";
        Some(vec!["is an older copy of the store".into()])
    });
}

#[test]
fn the_root_is_not_mounted() {
    on_all(|stopped| {
        let root = stopped.disk.root();
        let (fs, aside) = (&stopped.disk.fs, root.with_extension("aside"));
        fs.rename(&root, &aside).unwrap();
        fs.sync_dir(root.parent().unwrap()).unwrap();
        if stopped.disk.options.kind == Kind::Multi {
            // The inventories of the backends are beside their roots, and stay in place when those
            // are not mounted.
            fs.create_dir_all(&root).unwrap();
            for name in fs.list(&aside).unwrap().iter().filter(|name| name.ends_with(".inventory")) {
                fs.rename(&aside.join(name), &root.join(name)).unwrap();
            }
            fs.sync_dir(&root).unwrap();
            fs.sync_dir(root.parent().unwrap()).unwrap();
        }
        stopped.when += ", not mounted";
        Some(vec!["not mounted".into(), "--accept-loss".into()])
    });
}
