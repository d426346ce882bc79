//! The stores of the histories, with options under which a short history meets everything.

use crate::common::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{
    BackendFactory, BitcaskFactory, Compression, CompressionPoint, HeadTerms, JournalConfig, LedgerConfig,
    LeveldbFactory, LeveledFactory, MemoryConfig, MemoryFactory, MergeConfig, MultiFactory, Selector, StorageError,
    SyncStrategy,
};
use std::path::Path;
use std::sync::Arc;

pub(super) const BUCKETS: [&[u8]; 3] = [b"\x02\0\x01a", b"\x02\0\x01b", b"\x02\0\x02ab"];

/// What a store may remove by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    None,
    Age,
    Size,
}

/// Heads in these tests: a mark, then lines of `field=term`.
pub(super) struct LineTerms;

pub(super) const MARK: &[u8] = b"terms\n";

impl HeadTerms for LineTerms {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        let Some(lines) = head.strip_prefix(MARK) else { return };
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let equals = line.iter().position(|byte| *byte == b'=').unwrap();
            visit(&line[..equals], &line[equals + 1..]);
        }
    }
}

pub(super) type Opener = fn(&Path, Arc<FaultyFs>, u64) -> Result<Box<dyn BackendFactory>, StorageError>;

pub(super) fn journal(now_secs: u64) -> JournalConfig {
    JournalConfig {
        sync: SyncStrategy::None,
        file_bytes_max: 2048,
        merge: eager_merges(),
        opened_at_secs: now_secs,
        sweep_interval_secs: 5,
        open_files_max: 4,
        ..JournalConfig::default()
    }
}

pub(super) fn ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 4 << 10, table_bytes: 4 << 10, ..LedgerConfig::default() }
}

pub(super) fn memory(_: &Path, _: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = MemoryConfig { opened_at_secs: now_secs, ..MemoryConfig::default() };
    Ok(Box::new(MemoryFactory::with_terms(config, Arc::new(LineTerms))))
}

/// Versions older than this expire in the stores with a limit of age.
pub(super) const AGE_SECS: u32 = 12;
/// The most that the memory store with a limit of size holds.
pub(super) const MEMORY_BYTES: u64 = 12_000;

pub(super) fn aged(now_secs: u64) -> JournalConfig {
    JournalConfig { expiry_secs: Some(AGE_SECS), ..journal(now_secs) }
}

pub(super) fn aging_memory(_: &Path, _: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = MemoryConfig { ttl_secs: Some(AGE_SECS), opened_at_secs: now_secs, ..MemoryConfig::default() };
    Ok(Box::new(MemoryFactory::with_terms(config, Arc::new(LineTerms))))
}

pub(super) fn small_memory(_: &Path, _: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = MemoryConfig { bytes_max: Some(MEMORY_BYTES), opened_at_secs: now_secs, ..MemoryConfig::default() };
    Ok(Box::new(MemoryFactory::with_terms(config, Arc::new(LineTerms))))
}

pub(super) fn aging_bitcask(
    dir: &Path,
    fs: Arc<FaultyFs>,
    now_secs: u64,
) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, aged(now_secs), &ledger(), Arc::new(LineTerms))?))
}

pub(super) fn aging_leveled(
    dir: &Path,
    fs: Arc<FaultyFs>,
    now_secs: u64,
) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveledFactory::new(fs, dir, aged(now_secs), ledger(), Arc::new(LineTerms))?))
}

pub(super) fn aging_leveldb(
    dir: &Path,
    fs: Arc<FaultyFs>,
    now_secs: u64,
) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveldbFactory::new(fs, dir, aged(now_secs), ledger(), Arc::new(LineTerms))?))
}

pub(super) fn bitcask(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, journal(now_secs), &ledger(), Arc::new(LineTerms))?))
}

pub(super) fn bitcask_lazy(
    dir: &Path,
    fs: Arc<FaultyFs>,
    now_secs: u64,
) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = JournalConfig { file_bytes_max: 64 << 10, merge: MergeConfig::default(), ..journal(now_secs) };
    let order = LedgerConfig::default();
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, config, &order, Arc::new(LineTerms))?))
}

pub(super) fn leveled(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveledFactory::new(fs, dir, journal(now_secs), ledger(), Arc::new(LineTerms))?))
}

/// Values are compressed when they are first merged.
pub(super) fn bitcask_compacting(
    dir: &Path,
    fs: Arc<FaultyFs>,
    now_secs: u64,
) -> Result<Box<dyn BackendFactory>, StorageError> {
    let (compression, compression_point) = (Compression::Zstd(3), CompressionPoint::OnCompact);
    let config = JournalConfig { compression, compression_point, ..journal(now_secs) };
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, config, &ledger(), Arc::new(LineTerms))?))
}

/// Values are compressed by another method after each start.
pub(super) fn leveled_compressing(
    dir: &Path,
    fs: Arc<FaultyFs>,
    now_secs: u64,
) -> Result<Box<dyn BackendFactory>, StorageError> {
    let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1)][now_secs as usize % 3];
    let config = JournalConfig { compression, ..journal(now_secs) };
    Ok(Box::new(LeveledFactory::new(fs, dir, config, ledger(), Arc::new(LineTerms))?))
}

pub(super) fn leveled_lazy(
    dir: &Path,
    fs: Arc<FaultyFs>,
    now_secs: u64,
) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = JournalConfig { file_bytes_max: 64 << 10, merge: MergeConfig::default(), ..journal(now_secs) };
    Ok(Box::new(LeveledFactory::new(fs, dir, config, LedgerConfig::default(), Arc::new(LineTerms))?))
}

pub(super) fn leveldb(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveldbFactory::new(fs, dir, journal(now_secs), ledger(), Arc::new(LineTerms))?))
}

/// Bucket `a` is on bitcask, `b` on leveled, the rest on leveldb.
pub(super) struct ByBucket;

impl Selector for ByBucket {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(BUCKETS.iter().position(|bucket| key.starts_with(bucket)).unwrap_or(0))
    }
}

pub(super) fn multi(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let backends = vec![
        ("a".to_owned(), Arc::from(bitcask(&dir.join("bitcask"), fs.clone(), now_secs)?)),
        ("b".to_owned(), Arc::from(leveled(&dir.join("leveled"), fs.clone(), now_secs)?)),
        ("c".to_owned(), Arc::from(leveldb(&dir.join("leveldb"), fs, now_secs)?)),
    ];
    Ok(Box::new(MultiFactory::new(backends, Arc::new(ByBucket))))
}
