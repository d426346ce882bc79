//! Stores of every backend with small files, so that files are closed and merged during a test.

use ombak_kv::head_terms;
use ombak_storage::fs::RealFs;
use ombak_storage::{
    BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, MemoryConfig,
    MemoryFactory, MergeConfig, MultiFactory, Selector, StorageError,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A directory of the real file system, in memory where possible, so that no test waits for a disk.
pub fn scratch_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Copies a directory with everything in it.
pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if from.is_dir() {
            copy_dir(&from, &to.join(name));
        } else {
            fs::copy(&from, to.join(name)).unwrap();
        }
    }
}

pub type Opener = fn(&Path) -> Arc<dyn BackendFactory>;

fn journal() -> JournalConfig {
    let merge = MergeConfig { check_interval_secs: 0, io_bytes_per_sec: 1 << 40, ..MergeConfig::default() };
    JournalConfig { file_bytes_max: 16 << 10, merge, ..JournalConfig::default() }
}

fn ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 16 << 10, table_bytes: 16 << 10, ..LedgerConfig::default() }
}

pub fn memory(_: &Path) -> Arc<dyn BackendFactory> {
    Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()))
}

pub fn bitcask(dir: &Path) -> Arc<dyn BackendFactory> {
    let opened = BitcaskFactory::with_terms(Arc::new(RealFs), dir.join("bitcask"), journal(), &ledger(), head_terms());
    Arc::new(opened.unwrap())
}

pub fn leveled(dir: &Path) -> Arc<dyn BackendFactory> {
    Arc::new(LeveledFactory::new(Arc::new(RealFs), dir.join("leveled"), journal(), ledger(), head_terms()).unwrap())
}

pub fn leveldb(dir: &Path) -> Arc<dyn BackendFactory> {
    Arc::new(LeveldbFactory::new(Arc::new(RealFs), dir.join("leveldb"), journal(), ledger(), head_terms()).unwrap())
}

/// Buckets of the default type are on bitcask, buckets of other types on leveled.
struct ByType;

impl Selector for ByType {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        let (bucket_type, _, _) = ombak_types::names::split_storage_key(key).unwrap();
        Ok(usize::from(bucket_type != ombak_types::names::DEFAULT_TYPE))
    }
}

pub fn multi(dir: &Path) -> Arc<dyn BackendFactory> {
    let backends = vec![("bitcask".to_owned(), bitcask(dir)), ("leveled".to_owned(), leveled(dir))];
    Arc::new(MultiFactory::new(backends, Arc::new(ByType)))
}
