//! What leveled does with its journal: the journal has everything, and a ledger on disk has the
//! heads and the positions. A checkpoint in the ledger says what it has seen of each data file.

use crate::backend::LedgerStatus;
use crate::error::StorageError;
use crate::journal::format::{RecordHeader, Scanner};
use crate::journal::{
    BackupFiles, Checkpoint, CompressionPoint, Core, DataSizes, FileState, FoundFiles, JournalConfig, JournalFiles,
    JournalPolicy, Losses, LostSeqs, MergeScheduler, PersistentIndex, RecordParts, RecoveryPolicy, RoomRetry, Writer,
};
use crate::ledger::{LedgerIndex, durable_checkpoint};
use std::io;

/// The policy of leveled; see the module.
pub(crate) struct LeveledPolicy {
    /// What the ledger had seen of the journal.
    checkpoint: Checkpoint,
}

impl RecoveryPolicy for LeveledPolicy {
    type Index = LedgerIndex<false>;

    fn of_index(index: &Self::Index) -> Self {
        Self { checkpoint: durable_checkpoint(index) }
    }

    fn may_expire(index: &Self::Index) -> bool {
        PersistentIndex::may_expire(index)
    }

    fn seen_seq(&self) -> u64 {
        self.checkpoint.seq
    }

    fn next_file_id(&self) -> u32 {
        self.checkpoint.next_id
    }

    /// Every file that the ledger points at must be there, at least as long as the ledger has seen
    /// it. Otherwise the ledger is rebuilt. A file that is only an output of an unfinished merge is
    /// not a loss, because the inputs of that merge are still there.
    fn check_index(
        &mut self,
        index: &mut Self::Index,
        found: &FoundFiles<'_>,
        losses: &mut Losses<'_>,
    ) -> Result<(), StorageError> {
        let mut misfits = Vec::new();
        // The ledger keeps its entries for a file that is known to be lost, so that reads of those
        // keys fail.
        let in_use = self.checkpoint.files.iter().filter(|(id, state)| state.is_in_use() && !found.is_known_lost(**id));
        for (id, state) in in_use {
            if !found.has_file(*id, state)? {
                misfits.push(*id);
            }
        }
        if misfits.is_empty() {
            return Ok(());
        }
        let what = "data files are not those that the ledger points at";
        tracing::error!(dir = %found.dir().display(), files = misfits.len(), "{what}");
        let missing: Vec<u32> = misfits.into_iter().filter(|id| !found.is_unfinished_output(*id)).collect();
        losses.note_missing(&missing, LostSeqs::Unknown)?;
        index.rebuild()?;
        // The rebuilt ledger has seen nothing.
        self.checkpoint = Checkpoint { next_id: self.checkpoint.next_id, ..Checkpoint::default() };
        Ok(())
    }

    fn known_state(&self, file_id: u32, salt: u64) -> Option<FileState> {
        self.checkpoint.files.get(&file_id).filter(|known| known.salt == salt).copied()
    }

    /// A hint file has no heads.
    fn loads_from_hints() -> bool {
        false
    }

    fn read_parts(scanner: &mut Scanner<'_>, offset: u64, header: &RecordHeader) -> io::Result<RecordParts> {
        Ok(RecordParts { head: scanner.head(offset, header)?.to_vec(), body: Vec::new() })
    }

    fn has_seen(&self, seq: u64) -> bool {
        seq <= self.checkpoint.seq
    }

    fn is_in_journal(&self, _seq: u64) -> bool {
        true
    }

    fn keeps_unreadable_versions() -> bool {
        true
    }

    /// The entries of the file stay in the ledger, so that reads of its keys fail.
    fn data_file_is_missing(_index: &mut Self::Index) -> Result<(), StorageError> {
        Ok(())
    }
}

impl JournalPolicy for LeveledPolicy {
    const BACKEND: &'static str = "leveled";

    type BackupCut = JournalFiles;

    fn compresses_appends(config: &JournalConfig) -> bool {
        config.compression_point == CompressionPoint::OnReceipt
    }

    fn is_behind(index: &Self::Index) -> bool {
        PersistentIndex::is_behind(index)
    }

    fn index_wants_checkpoint(index: &Self::Index) -> bool {
        PersistentIndex::wants_checkpoint(index)
    }

    fn wants_checkpoint(core: &Core<Self>, _room: &mut RoomRetry, _now_secs: u64) -> bool {
        Self::index_wants_checkpoint(&core.index)
    }

    /// The checkpoint would point at the outputs of an unfinished merge.
    fn settle_merges(core: &Core<Self>, merges: &mut MergeScheduler) {
        merges.settle_or_abandon(core);
    }

    fn checkpoint(core: &Core<Self>) -> Result<(), StorageError> {
        core.flush_unwritten()?;
        let seq = core.take_checkpoint(|writer| {
            let state = Checkpoint { files: core.file_states(), ..core.checkpoint_of(writer) };
            core.index.take_checkpoint(state.encode());
        });
        core.write_checkpoint(seq)
    }

    fn merges_files() -> bool {
        true
    }

    /// The checkpoint has everything that a start must know.
    fn record_merge(_core: &Core<Self>) -> Result<(), StorageError> {
        Ok(())
    }

    fn cut_backup(core: &Core<Self>, _writer: &Writer, merges: &MergeScheduler) -> JournalFiles {
        JournalFiles::at_cut(core, merges)
    }

    fn finish_backup(core: &Core<Self>, cut: JournalFiles, _seq: u64) -> Result<BackupFiles, StorageError> {
        Ok((cut.into_backup(core)?, Box::new(())))
    }

    fn data_sizes(_index: &Self::Index, journal: DataSizes, _ledger: Option<LedgerStatus>) -> DataSizes {
        journal
    }
}
