//! What bitcask does with its journal: the journal has everything, and each start builds the index
//! in memory from it. The optional ordered index on disk follows the journal.

use super::index::MemoryIndex;
use crate::backend::LedgerStatus;
use crate::error::StorageError;
use crate::journal::format::{RecordHeader, Scanner};
use crate::journal::{
    BackupFiles, CompressionPoint, Core, DataSizes, FileState, FoundFiles, JournalConfig, JournalFiles, JournalPolicy,
    Losses, MergeScheduler, RecordParts, RecoveryPolicy, RoomRetry, Writer,
};
use std::io;

/// The policy of bitcask; see the module. The index in memory has seen nothing at a start.
pub(crate) struct BitcaskPolicy;

impl RecoveryPolicy for BitcaskPolicy {
    type Index = MemoryIndex;

    fn of_index(_index: &MemoryIndex) -> Self {
        Self
    }

    fn may_expire(_index: &MemoryIndex) -> bool {
        false
    }

    fn seen_seq(&self) -> u64 {
        0
    }

    fn next_file_id(&self) -> u32 {
        0
    }

    /// Merges remove storage tombstones. An ordered index that is older than such a merge would
    /// show deleted keys, so it is removed.
    fn check_index(
        &mut self,
        index: &mut MemoryIndex,
        found: &FoundFiles<'_>,
        _losses: &mut Losses<'_>,
    ) -> Result<(), StorageError> {
        let seen_seq = index.seen_seq_on_disk();
        if seen_seq > 0 && seen_seq < found.index_must_have_seen()? {
            index.remove_ordered_index()?;
        }
        Ok(())
    }

    fn known_state(&self, _file_id: u32, _salt: u64) -> Option<FileState> {
        None
    }

    /// A hint file has the key and the position of each record, which is all that the index needs.
    fn loads_from_hints() -> bool {
        true
    }

    fn read_parts(_scanner: &mut Scanner<'_>, _offset: u64, _header: &RecordHeader) -> io::Result<RecordParts> {
        Ok(RecordParts::default())
    }

    fn has_seen(&self, _seq: u64) -> bool {
        false
    }

    fn is_in_journal(&self, _seq: u64) -> bool {
        true
    }

    fn keeps_unreadable_versions() -> bool {
        true
    }

    /// The ordered index on disk may have seen the file.
    fn data_file_is_missing(index: &mut MemoryIndex) -> Result<(), StorageError> {
        if index.seen_seq_on_disk() > 0 { index.remove_ordered_index() } else { Ok(()) }
    }
}

impl JournalPolicy for BitcaskPolicy {
    const BACKEND: &'static str = "bitcask";

    type BackupCut = JournalFiles;

    fn compresses_appends(config: &JournalConfig) -> bool {
        config.compression_point == CompressionPoint::OnReceipt
    }

    fn is_behind(_index: &MemoryIndex) -> bool {
        false
    }

    fn index_wants_checkpoint(index: &MemoryIndex) -> bool {
        index.ordered_index_wants_writing()
    }

    fn wants_checkpoint(core: &Core<Self>, _room: &mut RoomRetry, _now_secs: u64) -> bool {
        Self::index_wants_checkpoint(&core.index)
    }

    /// The ordered index has no positions, so merges may go on.
    fn settle_merges(_core: &Core<Self>, _merges: &mut MergeScheduler) {}

    fn checkpoint(core: &Core<Self>) -> Result<(), StorageError> {
        let seq = core.take_checkpoint(|_| core.index.rotate_ordered_index());
        // The ordered index on disk must not have seen appends that are not on disk.
        core.sync(seq)?;
        core.index.flush_ordered_index()
    }

    fn merges_files() -> bool {
        true
    }

    fn record_merge(core: &Core<Self>) -> Result<(), StorageError> {
        match core.index.seen_seq_on_disk() {
            0 => Ok(()),
            seen_seq => core.note_index_must_have_seen(seen_seq),
        }
    }

    fn cut_backup(core: &Core<Self>, _writer: &Writer, merges: &MergeScheduler) -> JournalFiles {
        JournalFiles::at_cut(core, merges)
    }

    fn finish_backup(core: &Core<Self>, cut: JournalFiles, _seq: u64) -> Result<BackupFiles, StorageError> {
        Ok((cut.into_backup(core)?, Box::new(())))
    }

    fn data_sizes(_index: &MemoryIndex, journal: DataSizes, _ledger: Option<LedgerStatus>) -> DataSizes {
        journal
    }
}
