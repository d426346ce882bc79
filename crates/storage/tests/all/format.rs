//! Directories that earlier versions wrote stay readable: one fixture for each format version.

use crate::common::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::fs::{FileSystem, OpenMode, RealFs};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, StorageError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PARTITION: u32 = 17;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn open(root: &Path) -> Result<Arc<dyn Backend>, StorageError> {
    let config = JournalConfig { file_bytes_max: 2000, ..JournalConfig::default() };
    BitcaskFactory::new(Arc::new(RealFs), root, config)?.open(PARTITION)
}

fn value(n: u32) -> Vec<u8> {
    format!("value {n} ").repeat(n as usize).into_bytes()
}

/// The content of the fixtures: 20 keys, every third deleted and every fifth overwritten. The last
/// file has no hint file.
fn write_sample(store: &dyn Backend) {
    for n in 0..20 {
        put(store, format!("key {n}").as_bytes(), &value(n)).unwrap();
    }
    for n in (0..20).step_by(3) {
        store.delete(format!("key {n}").as_bytes()).unwrap();
    }
    for n in (0..20).step_by(5) {
        put(store, format!("key {n}").as_bytes(), &value(n + 1)).unwrap();
    }
}

fn check_sample(store: &dyn Backend) {
    for n in 0..20 {
        let expected = match n {
            n if n % 5 == 0 => Some(value(n + 1)),
            n if n % 3 == 0 => None,
            n => Some(value(n)),
        };
        assert_eq!(get(store, format!("key {n}").as_bytes()).unwrap(), expected, "key {n}");
    }
    assert!(store.complete());
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The directory of the fixture that [`write_fixture`] writes. A new format version gets a new one.
const NEW_FIXTURE: &str = "bitcask-new";

/// Writes a fixture in the current format into the source tree: `cargo test -p ombak-storage --test
/// format -- --ignored`. Rename the directory to that of the format version, as `bitcask-v1`. An
/// existing fixture is never overwritten.
#[test]
#[ignore = "writes into the source tree"]
fn write_fixture() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path()).unwrap();
    write_sample(&*store);
    // The first files get hint files. The last file stays as a kill would leave it.
    for _ in 0..10 {
        store.maintain(NOW_SECS).unwrap();
    }
    let to = fixture(NEW_FIXTURE);
    assert!(!to.exists(), "{} is there already", to.display());
    copy(&root.path().join(PARTITION.to_string()), &to);
}

#[test]
fn format_1_is_read() {
    let root = tempfile::tempdir().unwrap();
    copy(&fixture("bitcask-v1"), &root.path().join(PARTITION.to_string()));
    let names = RealFs.list(&fixture("bitcask-v1")).unwrap();
    assert!(names.iter().any(|name| name.ends_with(".hint")) && names.iter().filter(|n| n.ends_with("a")).count() > 2);
    let store = open(root.path()).unwrap();
    check_sample(&*store);
    put(&*store, b"new", b"value").unwrap();
    store.close().unwrap();
    drop(store);
    let store = open(root.path()).unwrap();
    check_sample(&*store);
    assert_eq!(get(&*store, b"new").unwrap().unwrap(), b"value");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join(PARTITION.to_string());
    copy(&fixture("bitcask-v1"), &dir);
    let path = dir.join("0000000001.data");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 9;
    let crc = crc32fast::hash(&bytes[..36]).to_le_bytes();
    bytes[36..40].copy_from_slice(&crc);
    std::fs::write(&path, bytes).unwrap();
    let error = open(root.path()).err().unwrap().to_string();
    assert!(error.contains("format 9") && error.contains("0000000001.data"), "{error}");
}

/// Any bytes in a store's files give an error or a store, never a panic.
#[test]
fn arbitrary_bytes_are_survived() {
    let sample: Vec<(String, Vec<u8>)> = RealFs
        .list(&fixture("bitcask-v1"))
        .unwrap()
        .into_iter()
        .map(|name| (name.clone(), std::fs::read(fixture("bitcask-v1").join(name)).unwrap()))
        .collect();
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let fs = FaultyFs::new(seed);
        let dir = Path::new("/data").join(PARTITION.to_string());
        fs.create_dir_all(&dir).unwrap();
        for (name, bytes) in &sample {
            let mut bytes = bytes.clone();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = random.below(256) as u8,
                    _ => bytes[at..].iter_mut().take(64).for_each(|byte| *byte = random.below(256) as u8),
                }
            }
            let file = fs.open(&dir.join(name), OpenMode::CreateNew).unwrap();
            file.write_at(&bytes, 0).unwrap();
        }
        let merged = fs.open(&dir.join("0000000099.merged"), OpenMode::CreateNew).unwrap();
        merged.write_at(&vec![seed as u8; random.below(100) as usize], 0).unwrap();
        let factory = BitcaskFactory::new(fs, "/data", JournalConfig::default()).unwrap();
        let store = factory.open(PARTITION).unwrap();
        for n in 0..20 {
            if let Ok(Some(stored)) = store.get(format!("key {n}").as_bytes(), ombak_storage::ReadMode::Blocking) {
                let found = value_of(Some(stored)).unwrap();
                assert!(found == value(n) || found == value(n + 1), "seed {seed}: key {n}");
            }
        }
        put(&*store, b"new", b"value").unwrap();
        store.close().unwrap();
    }
}
