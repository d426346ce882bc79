//! What background work does after appends: earns budget for merges, and closes an active file that
//! is mostly dead.

use crate::journal::config::MergePolicy;
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use std::sync::atomic::Ordering;

/// The shortest active file that is closed because of its dead bytes. With a lower limit there
/// would be too many files.
const CLOSE_BYTES_MIN: u64 = 4 << 20;
/// On a full disk, the active file is closed when it has this many dead bytes.
const SHORT_OF_SPACE_CLOSE_BYTES_MIN: u64 = 64 << 10;

impl<P: JournalPolicy> Core<P> {
    /// Earns merge budget for what was appended. Closes the active file before it is full if it is
    /// mostly dead, because only closed files are merged.
    pub(super) fn account_appends(&self, accounted_bytes: &mut u64) {
        let mut writer = self.writer.lock();
        let appended_bytes = writer.bytes_written;
        self.shared.budget.earn(appended_bytes - std::mem::replace(accounted_bytes, appended_bytes));
        let config = &self.shared.config.merge;
        let is_short_of_space = self.shared.space.is_below_reserve() || writer.disk_full;
        let Some(active) = writer.active.as_ref().filter(|_| config.policy != MergePolicy::Never) else { return };
        let counters = &active.file.counters;
        let live_bytes = counters.live_bytes.load(Ordering::Acquire);
        let dead_bytes = active.length.saturating_sub(live_bytes);
        let is_mostly_dead = dead_bytes * 100 >= active.length * u64::from(config.trigger_fragmentation_percent);
        let is_due =
            active.length >= CLOSE_BYTES_MIN && (is_mostly_dead || dead_bytes >= self.active_file_dead_bytes_max());
        // Tombstones must be kept by a merge, so they do not count.
        let droppable_bytes = dead_bytes.saturating_sub(counters.tombstone_bytes.load(Ordering::Relaxed));
        if is_due || (is_short_of_space && P::merges_files() && droppable_bytes >= SHORT_OF_SPACE_CLOSE_BYTES_MIN) {
            writer.close_active();
        }
    }

    /// The dead bytes that the active file may have before it is closed.
    fn active_file_dead_bytes_max(&self) -> u64 {
        let config = &self.shared.config.merge;
        let Some(percent) = config.dead_percent_max else { return config.trigger_dead_bytes };
        let live: u64 = self.files.read().values().map(|file| file.counters.live_bytes.load(Ordering::Relaxed)).sum();
        // A quarter of what the store may have, so that the dead bytes are spread over several
        // files to choose from.
        (live / 100 * u64::from(percent) / 4).max(CLOSE_BYTES_MIN).min(config.trigger_dead_bytes)
    }
}
