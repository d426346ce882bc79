//! The status of a store.

use super::data_file::DataFile;
use super::index::KeyIndex;
use super::policy::{DataSizes, JournalPolicy};
use super::store::{Core, Files};
use crate::backend::{LastMerge, Status};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a store counts since its start.
#[derive(Default)]
pub(super) struct StoreCounters {
    /// Bytes of puts: keys, heads and bodies, before compression.
    pub(super) put_bytes: AtomicU64,
    /// Bytes that are still to be read of the files that are to be merged.
    pub(super) merge_pending_bytes: AtomicU64,
    pub(super) last_merge: Mutex<Option<LastMerge>>,
    pub(super) merges: AtomicU64,
    pub(super) merged_bytes: AtomicU64,
    pub(super) hint_bytes: AtomicU64,
    pub(super) read_errors: AtomicU64,
}

impl<P: JournalPolicy> Core<P> {
    pub(super) fn status(&self) -> Status {
        let sizes = self.index.sizes();
        let (bytes_written, found_disk_full) = {
            let writer = self.writer.lock();
            (writer.bytes_written, writer.disk_full)
        };
        let files = self.files.read();
        let sum = |count: fn(&DataFile) -> u64| files.values().map(|file| count(file)).sum::<u64>();
        let ledger = self.index.ledger_status();
        let journal = DataSizes {
            live_bytes: sum(|file| file.counters.live_bytes.load(Ordering::Relaxed)),
            kept_bytes: sum(|file| file.counters.length.load(Ordering::Relaxed)),
            merge_pending_bytes: self.counters.merge_pending_bytes.load(Ordering::Relaxed),
        };
        let DataSizes { live_bytes, kept_bytes, merge_pending_bytes } = P::data_sizes(&self.index, journal, ledger);
        Status {
            name: String::new(),
            backend: P::BACKEND,
            keys: sizes.keys,
            live_bytes,
            dead_bytes: kept_bytes.saturating_sub(live_bytes),
            files: files.len() as u64,
            index_bytes: sizes.bytes,
            key_bytes: sizes.key_bytes,
            put_bytes: self.counters.put_bytes.load(Ordering::Relaxed),
            bytes_written: bytes_written
                + self.counters.merged_bytes.load(Ordering::Relaxed)
                + self.counters.hint_bytes.load(Ordering::Relaxed)
                + ledger.map_or(0, |ledger| ledger.written_bytes),
            merge_pending_bytes,
            last_merge: *self.counters.last_merge.lock(),
            ledger,
            merges: self.counters.merges.load(Ordering::Relaxed),
            read_errors: self.counters.read_errors.load(Ordering::Relaxed),
            lost_ranges: self.lost_ranges_of(&files),
            lost_up_to: self.lost_up_to.load(Ordering::Acquire),
            torn_bytes: self.torn_bytes,
            disk_full: found_disk_full || self.shared.space.is_below_reserve(),
            poisoned: self.poison.lock().clone(),
            children: Vec::new(),
        }
    }

    /// Ranges that were synced once and cannot be read any more.
    pub(super) fn known_lost_ranges(&self) -> u64 {
        self.lost_ranges_of(&self.files.read())
    }

    fn lost_ranges_of(&self, files: &Files) -> u64 {
        let in_files = files.values().map(|file| u64::from(file.counters.lost_ranges.load(Ordering::Relaxed)));
        self.lost_ranges.load(Ordering::Relaxed) + in_files.sum::<u64>()
    }
}
