//! What a ledger has on disk: its checkpoint, and for leveldb its files.

use super::index::{CHECKPOINT, LedgerIndex, SIZES};
use super::keys::note;
use super::opening::begin_anew;
use super::tree::LedgerFiles;
use crate::error::StorageError;
use crate::journal::{Checkpoint, PersistentIndex};
use bytes::Bytes;
use std::sync::atomic::Ordering;

/// Writers wait when the memory holds this many times the bytes that are written at once: one part
/// is being written, and two parts have gathered meanwhile.
const MEMORY_TABLES_MAX_FACTOR: u64 = 3;

impl<const HAS_VALUES: bool> PersistentIndex for LedgerIndex<HAS_VALUES> {
    fn durable_checkpoint(&self) -> Option<Bytes> {
        self.tree.get(&note(CHECKPOINT)).ok().flatten()
    }

    fn may_expire(&self) -> bool {
        self.expires.load(Ordering::Relaxed)
    }

    fn wants_checkpoint(&self) -> bool {
        self.tree.memory_bytes() >= self.shared.memory_bytes_max
    }

    fn is_behind(&self) -> bool {
        self.has_many_tables.load(Ordering::Relaxed)
            || self.tree.memory_bytes() >= MEMORY_TABLES_MAX_FACTOR * self.shared.memory_bytes_max
    }

    fn has_unwritten(&self) -> bool {
        self.tree.has_rotated()
    }

    fn take_checkpoint(&self, state: Bytes) {
        let _writes = self.writes.lock();
        let sizes = [&self.keys, &self.key_bytes, &self.version_bytes]
            .map(|count| count.load(Ordering::Relaxed).to_le_bytes())
            .concat();
        self.tree.apply([(note(CHECKPOINT), Some(state)), (note(SIZES), Some(sizes.into()))]);
        self.tree.rotate();
    }

    fn flush(&self) -> Result<(), StorageError> {
        self.tree.flush()?;
        self.note_tables();
        Ok(())
    }
}

/// What only the ledger of leveled does: the journal has everything that it has.
impl LedgerIndex<false> {
    /// Empties the ledger, because its files on disk do not match the journal.
    pub(crate) fn rebuild(&mut self) -> Result<(), StorageError> {
        *self = Self::with_tree(begin_anew(&self.dir, &self.shared.trees)?, &self.dir, &self.shared)?;
        Ok(())
    }
}

/// What only the ledger of leveldb does: it has the values.
impl LedgerIndex<true> {
    /// The files of the ledger on disk, as the last [`flush`](PersistentIndex::flush) left them:
    /// the path and the content of each, and a value that keeps them in place while it lives.
    pub(crate) fn files(&self) -> Result<LedgerFiles, StorageError> {
        self.tree.files()
    }

    /// Bytes of the current versions as records of a journal.
    pub(crate) fn version_bytes(&self) -> u64 {
        self.version_bytes.load(Ordering::Relaxed)
    }
}

/// What a ledger has seen of the journal, according to its last checkpoint on disk.
pub(crate) fn durable_checkpoint(index: &impl PersistentIndex) -> Checkpoint {
    index.durable_checkpoint().and_then(|bytes| Checkpoint::decode(&bytes)).unwrap_or_default()
}
