//! What differs between the backends that share the journal.
//!
//! Every backend on disk appends, syncs, recovers and examines its journal in the same way. What
//! the journal keeps, and what the index over it needs, is the decision of a policy: one type for
//! each backend, in the backend's own module. A policy has no defaults: each backend says
//! everything about itself in one place.

use super::background::{MergeScheduler, RoomRetry};
use super::checkpoint::FileState;
use super::config::JournalConfig;
use super::format::{RecordHeader, Scanner};
use super::index::{KeyIndex, OrderedIndex};
use super::recovery::{FoundFiles, Losses};
use super::store::Core;
use super::writer::Writer;
use crate::backend::LedgerStatus;
use crate::backup::CutFile;
use crate::error::StorageError;
use std::any::Any;
use std::io;

/// What a start needs to know to build the index from the journal. The value holds what the index
/// on disk had seen of the journal, if there is such an index.
pub(crate) trait RecoveryPolicy: Send + Sync + Sized + 'static {
    /// The index over the journal.
    type Index: KeyIndex + OrderedIndex;

    /// Reads from an index that was just opened what it has seen of the journal.
    fn of_index(index: &Self::Index) -> Self;

    /// Whether a version may expire that the index had before anything was loaded.
    fn may_expire(index: &Self::Index) -> bool;

    /// The last append that the index on disk has seen; 0: none.
    fn seen_seq(&self) -> u64;

    /// No file with this id or a higher one existed when the index on disk was written.
    fn next_file_id(&self) -> u32;

    /// Checks that the index on disk belongs to this journal. Another index would point at missing
    /// data, or contain superseded versions. The index is older than the journal if the disk lost
    /// writes of the index that it had confirmed, and newer if the disk lost writes of the journal.
    /// An index is rebuilt if the journal has everything; otherwise the start fails.
    fn check_index(
        &mut self,
        index: &mut Self::Index,
        found: &FoundFiles<'_>,
        losses: &mut Losses<'_>,
    ) -> Result<(), StorageError>;

    /// The state in which the index on disk has seen a data file. Only the rest of the file is
    /// loaded then.
    fn known_state(&self, file_id: u32, salt: u64) -> Option<FileState>;

    /// Whether the hint file of a data file has everything that the index needs.
    fn loads_from_hints() -> bool;

    /// Reads the parts of a record that the index needs besides its key.
    fn read_parts(scanner: &mut Scanner<'_>, offset: u64, header: &RecordHeader) -> io::Result<RecordParts>;

    /// Whether the index on disk has seen the append with this number.
    fn has_seen(&self, seq: u64) -> bool;

    /// Whether the version with this number is read from the journal. Such versions are loaded, and
    /// are counted as live bytes of their file.
    fn is_in_journal(&self, seq: u64) -> bool;

    /// Whether the index has a place for a version that cannot be read. Reads of its key fail then,
    /// instead of finding an older version.
    fn keeps_unreadable_versions() -> bool;

    /// Called when a data file is found to be missing, before that is recorded.
    fn data_file_is_missing(index: &mut Self::Index) -> Result<(), StorageError>;
}

/// The parts of a record that an index gets when the record is loaded. A part that the index does
/// not need is empty.
#[derive(Debug, Default)]
pub(crate) struct RecordParts {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

/// What a running store does with its journal.
pub(crate) trait JournalPolicy: RecoveryPolicy {
    /// The name of the backend.
    const BACKEND: &'static str;

    /// What a backup remembers from its cut until its end.
    type BackupCut: Default;

    /// Whether the journal compresses the bodies that it appends.
    fn compresses_appends(config: &JournalConfig) -> bool;

    /// Whether so much has gathered in the index's memory that writers should wait.
    fn is_behind(index: &Self::Index) -> bool;

    /// Whether so much has gathered in the index's memory that a checkpoint is due.
    fn index_wants_checkpoint(index: &Self::Index) -> bool;

    /// Whether background work should take a checkpoint: because the index wants one, or because
    /// the disk is full and a checkpoint makes room.
    fn wants_checkpoint(core: &Core<Self>, room: &mut RoomRetry, now_secs: u64) -> bool;

    /// Prepares the merges for a checkpoint. A start removes the outputs of an unfinished merge, so
    /// a checkpoint must not point at them.
    fn settle_merges(core: &Core<Self>, merges: &mut MergeScheduler);

    /// Writes the index's data from memory to disk, with a note that says how far it has seen the
    /// journal. No merge copies anything meanwhile.
    fn checkpoint(core: &Core<Self>) -> Result<(), StorageError>;

    /// Whether merges remove dead records.
    fn merges_files() -> bool;

    /// Records what a start must know of a merge whose input files are about to be removed. A
    /// checkpoint was just taken.
    fn record_merge(core: &Core<Self>) -> Result<(), StorageError>;

    /// Makes the cut of a backup. The active file was just closed, and no append can begin.
    fn cut_backup(core: &Core<Self>, writer: &Writer, merges: &MergeScheduler) -> Self::BackupCut;

    /// The files of a backup with everything up to its cut at `seq`, and a value that keeps them in
    /// place while it lives. The journal is synced up to `seq`.
    fn finish_backup(core: &Core<Self>, cut: Self::BackupCut, seq: u64) -> Result<BackupFiles, StorageError>;

    /// The sizes of the store's data, given those of its journal and of its index on disk.
    fn data_sizes(index: &Self::Index, journal: DataSizes, ledger: Option<LedgerStatus>) -> DataSizes;
}

/// The files of a backup, and a value that keeps them in place while it lives.
pub(crate) type BackupFiles = (Vec<CutFile>, Box<dyn Any + Send>);

/// Sizes of what a store keeps on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSizes {
    pub(crate) live_bytes: u64,
    /// Live and dead bytes.
    pub(crate) kept_bytes: u64,
    pub(crate) merge_pending_bytes: u64,
}
