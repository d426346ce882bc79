//! What background work does about a full disk.

use crate::journal::data_file::DataFile;
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Seconds until an operation is retried that failed because the disk was full.
const ROOM_RETRY_SECS: u64 = 2;
/// On a full disk, a log of at least this many bytes is removed early.
const SHORT_OF_SPACE_LOG_BYTES_MIN: u64 = 256 << 10;

/// When operations that failed because the disk was full are tried again.
#[derive(Default)]
pub(crate) struct RoomRetry {
    next_secs: u64,
}

impl RoomRetry {
    pub(super) fn is_due(&self, now_secs: u64) -> bool {
        now_secs >= self.next_secs
    }

    pub(super) fn defer(&mut self, now_secs: u64) {
        self.next_secs = now_secs + ROOM_RETRY_SECS;
    }
}

impl<P: JournalPolicy> Core<P> {
    /// Checks the free space: once a second for all stores of the root, and for each store whose
    /// writes were refused.
    pub(super) fn check_space(&self, now_secs: u64) {
        let (found_full, dir) = {
            let writer = self.writer.lock();
            (writer.disk_full, if writer.dir_exists { &self.dir } else { &self.shared.root })
        };
        let space = &self.shared.space;
        if !space.needs_check_at(now_secs) && !found_full {
            return;
        }
        let room = space.check(&*self.shared.fs, dir).map(|free_bytes| space.is_room_again(free_bytes));
        if found_full && room.unwrap_or(false) {
            self.writer.lock().disk_full = false;
        }
    }

    /// Whether puts are refused until there is room.
    pub(super) fn lacks_room(&self) -> bool {
        self.shared.space.is_below_reserve() || self.writer.lock().disk_full
    }

    /// Whether the log should be removed before the index asks for a checkpoint: the disk is full,
    /// and the index has its own copy.
    pub(crate) fn wants_log_removed(&self, room: &mut RoomRetry, now_secs: u64) -> bool {
        if !room.is_due(now_secs) || !self.lacks_room() {
            return false;
        }
        room.defer(now_secs);
        let length = |file: &Arc<DataFile>| file.counters.length.load(Ordering::Relaxed);
        self.files.read().values().map(length).sum::<u64>() >= SHORT_OF_SPACE_LOG_BYTES_MIN
    }
}
