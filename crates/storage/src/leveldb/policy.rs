//! What leveldb does with its journal: the tree has everything up to its checkpoint, and the
//! journal is only the log of later appends. Data files are removed when the tree has their
//! versions on disk.

use crate::backend::LedgerStatus;
use crate::error::StorageError;
use crate::journal::format::{RecordHeader, Scanner};
use crate::journal::{
    BackupFiles, Core, DataSizes, FileState, FoundFiles, JournalConfig, JournalPolicy, Losses, MergeScheduler,
    PersistentIndex, RecordParts, RecoveryPolicy, RoomRetry, Writer,
};
use crate::ledger::{LedgerIndex, durable_checkpoint, tree_is_behind};
use std::io;

/// The policy of leveldb; see the module.
pub(crate) struct LeveldbPolicy {
    /// The last append that was in the tree at the start.
    seen_seq: u64,
    next_file_id: u32,
}

impl RecoveryPolicy for LeveldbPolicy {
    type Index = LedgerIndex<true>;

    fn of_index(index: &Self::Index) -> Self {
        let checkpoint = durable_checkpoint(index);
        Self { seen_seq: checkpoint.seq, next_file_id: checkpoint.next_id }
    }

    fn may_expire(index: &Self::Index) -> bool {
        PersistentIndex::may_expire(index)
    }

    fn seen_seq(&self) -> u64 {
        self.seen_seq
    }

    fn next_file_id(&self) -> u32 {
        self.next_file_id
    }

    /// A tree that lacks versions of removed data files cannot be rebuilt, so the start fails.
    fn check_index(
        &mut self,
        _index: &mut Self::Index,
        found: &FoundFiles<'_>,
        _losses: &mut Losses<'_>,
    ) -> Result<(), StorageError> {
        let removed_seq = found.index_must_have_seen()?.max(found.promised_index_seq());
        if self.seen_seq >= removed_seq {
            return Ok(());
        }
        Err(tree_is_behind(found.dir(), self.seen_seq, removed_seq))
    }

    fn known_state(&self, _file_id: u32, _salt: u64) -> Option<FileState> {
        None
    }

    /// A hint file has no values.
    fn loads_from_hints() -> bool {
        false
    }

    fn read_parts(scanner: &mut Scanner<'_>, offset: u64, header: &RecordHeader) -> io::Result<RecordParts> {
        Ok(RecordParts { head: scanner.head(offset, header)?.to_vec(), body: scanner.body(offset, header)? })
    }

    fn has_seen(&self, seq: u64) -> bool {
        seq <= self.seen_seq
    }

    /// An old file that should have been removed may hold versions that were deleted in another
    /// file that was removed. So nothing is loaded that the tree has seen.
    fn is_in_journal(&self, seq: u64) -> bool {
        !self.has_seen(seq)
    }

    /// An entry of the tree is a whole version.
    fn keeps_unreadable_versions() -> bool {
        false
    }

    fn data_file_is_missing(_index: &mut Self::Index) -> Result<(), StorageError> {
        Ok(())
    }
}

impl JournalPolicy for LeveldbPolicy {
    const BACKEND: &'static str = "leveldb";

    /// The checkpoint in the tree is the cut.
    type BackupCut = ();

    /// The tree compresses its blocks itself.
    fn compresses_appends(_config: &JournalConfig) -> bool {
        false
    }

    fn is_behind(index: &Self::Index) -> bool {
        PersistentIndex::is_behind(index)
    }

    fn index_wants_checkpoint(index: &Self::Index) -> bool {
        PersistentIndex::wants_checkpoint(index)
    }

    fn wants_checkpoint(core: &Core<Self>, room: &mut RoomRetry, now_secs: u64) -> bool {
        Self::index_wants_checkpoint(&core.index) || core.wants_log_removed(room, now_secs)
    }

    fn settle_merges(_core: &Core<Self>, _merges: &mut MergeScheduler) {}

    fn checkpoint(core: &Core<Self>) -> Result<(), StorageError> {
        core.flush_unwritten()?;
        let seq = core.take_checkpoint(|writer| {
            writer.close_active();
            core.index.take_checkpoint(core.checkpoint_of(writer).encode());
        });
        core.write_checkpoint(seq)?;
        core.remove_files_up_to(seq)
    }

    /// The log is removed as a whole.
    fn merges_files() -> bool {
        false
    }

    fn record_merge(_core: &Core<Self>) -> Result<(), StorageError> {
        Ok(())
    }

    fn cut_backup(core: &Core<Self>, writer: &Writer, _merges: &MergeScheduler) {
        core.index.take_checkpoint(core.checkpoint_of(writer).encode());
    }

    /// The tree alone: the journal has nothing that the tree lacks.
    fn finish_backup(core: &Core<Self>, (): (), seq: u64) -> Result<BackupFiles, StorageError> {
        core.write_checkpoint(seq)?;
        core.remove_files_up_to(seq)?;
        let (files, pin) = core.index.files()?;
        let files = files.into_iter().map(|(path, content)| core.backed_up_file(&path, content));
        Ok((files.collect::<Result<_, _>>()?, pin))
    }

    fn data_sizes(index: &Self::Index, journal: DataSizes, ledger: Option<LedgerStatus>) -> DataSizes {
        let (disk_bytes, pending_bytes) = ledger.map_or((0, 0), |ledger| (ledger.disk_bytes, ledger.pending_bytes));
        DataSizes {
            live_bytes: index.version_bytes(),
            kept_bytes: journal.kept_bytes + disk_bytes,
            merge_pending_bytes: pending_bytes,
        }
    }
}
