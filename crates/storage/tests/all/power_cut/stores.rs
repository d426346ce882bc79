//! The stores of the power-cut tests: every backend with files, and their options.

use crate::common::NOW_SECS;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, Compression, CompressionPoint, HeadTerms, InventoryConfig, JournalConfig,
    LedgerConfig, LeveldbFactory, LeveledFactory, MergeConfig, MultiFactory, Selector, StorageError, SyncStrategy,
};
use std::path::Path;
use std::sync::Arc;

pub const PARTITION: u32 = 5;
pub const BUCKETS: [&[u8]; 3] = [b"\x02\0\x01a", b"\x02\0\x01b", b"\x02\0\x01c"];
pub const FIELD: &[u8] = b"f_bin";

/// The whole head is one index entry.
struct WholeHead;

impl HeadTerms for WholeHead {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        visit(FIELD, head);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bitcask,
    Leveled,
    Leveldb,
    /// All three behind one store.
    Multi,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Bitcask, Self::Leveled, Self::Leveldb, Self::Multi];

    /// Whether some data is only in a ledger.
    pub fn has_data_in_ledger(self) -> bool {
        matches!(self, Self::Leveldb | Self::Multi)
    }
}

/// The options of a store; all limits are small.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub kind: Kind,
    pub sync: SyncStrategy,
    /// Whether merges start at a low threshold.
    pub is_eager: bool,
    pub compression: Compression,
    pub accepts_loss: bool,
}

impl Options {
    pub fn of_seed(kind: Kind, sync: SyncStrategy, seed: u64) -> Self {
        let compression = [Compression::None, Compression::Lz4, Compression::None, Compression::Zstd(1)];
        let compression = compression[seed as usize / 2 % 4];
        Self { kind, sync, is_eager: seed.is_multiple_of(2), compression, accepts_loss: false }
    }

    fn journal(&self) -> JournalConfig {
        // Lazy merging leaves dead versions in files outside a merge, which tombstones must hide.
        let (trigger_fragmentation_percent, threshold_fragmentation_percent) =
            if self.is_eager { (30, 10) } else { (60, 50) };
        JournalConfig {
            sync: self.sync,
            file_bytes_max: 3000,
            merge: MergeConfig {
                check_interval_secs: 0,
                trigger_fragmentation_percent,
                threshold_fragmentation_percent,
                threshold_small_file_bytes: 0,
                io_bytes_per_sec: 1 << 40,
                ..MergeConfig::default()
            },
            compression: self.compression,
            compression_point: if self.is_eager { CompressionPoint::OnReceipt } else { CompressionPoint::OnCompact },
            open_files_max: 3,
            opened_at_secs: NOW_SECS,
            ..JournalConfig::default()
        }
    }

    pub fn open(&self, fs: &Arc<FaultyFs>, root: &Path) -> Result<Arc<dyn Backend>, StorageError> {
        self.factory(fs, root)?.open(PARTITION)
    }

    /// Opens the store for an operator who accepts that something is missing.
    pub fn open_accepting_loss(&self, fs: &Arc<FaultyFs>, root: &Path) -> Result<Arc<dyn Backend>, StorageError> {
        Self { accepts_loss: true, ..*self }.open(fs, root)
    }

    /// How inventories are kept: the second copy is in a directory beside the root.
    pub fn inventory(&self, root: &Path) -> InventoryConfig {
        let mut node_dir = root.as_os_str().to_owned();
        node_dir.push(".inventory");
        InventoryConfig { node_dir: Some(node_dir.into()), accepts_loss: self.accepts_loss }
    }

    fn factory(&self, fs: &Arc<FaultyFs>, root: &Path) -> Result<Box<dyn BackendFactory>, StorageError> {
        let (fs, journal) = (fs.clone(), self.journal());
        // A ledger is written every few puts.
        let ledger =
            LedgerConfig { memory_bytes_max: 2000, table_bytes: 2000, cache_bytes: 1 << 20, ..LedgerConfig::default() };
        let (terms, inventory) = (Arc::new(WholeHead), self.inventory(root));
        Ok(match self.kind {
            Kind::Bitcask => {
                Box::new(BitcaskFactory::with_terms(fs, root, journal, &ledger, terms)?.with_inventory(inventory))
            }
            Kind::Leveled => Box::new(LeveledFactory::new(fs, root, journal, ledger, terms)?.with_inventory(inventory)),
            Kind::Leveldb => Box::new(LeveldbFactory::new(fs, root, journal, ledger, terms)?.with_inventory(inventory)),
            Kind::Multi => {
                let parts = [Kind::Bitcask, Kind::Leveled, Kind::Leveldb];
                let open = |kind: Kind| {
                    let name = format!("{kind:?}");
                    let factory = Self { kind, ..*self }.factory(&fs, &root.join(&name))?;
                    Ok((name, Arc::from(factory)))
                };
                let backends = parts.into_iter().map(open).collect::<Result<_, StorageError>>()?;
                Box::new(MultiFactory::new(backends, Arc::new(ByBucket)))
            }
        })
    }
}

struct ByBucket;

impl Selector for ByBucket {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(BUCKETS.iter().position(|bucket| key.starts_with(bucket)).unwrap_or(0))
    }
}
