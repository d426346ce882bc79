//! The options of stores with a journal, with the names and defaults of Riak's bitcask
//! (docs/riak/backends.md §2.8).

use super::coding::{Compression, CompressionPoint};
use std::time::Duration;

/// When appended versions are synced (`bitcask.sync.strategy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStrategy {
    /// When the operating system writes them; also at roll-over and at close.
    None,
    /// At this interval.
    Interval(Duration),
    /// Before each acknowledgement. One fsync serves all waiting writers.
    OSync,
}

/// When merging may start (`bitcask.merge.policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergePolicy {
    /// At any hour.
    Always,
    /// Never.
    Never,
    /// From the first hour through the last one, 0 … 23. The window may span midnight.
    Window {
        /// First hour in which merging may start.
        start_hour: u8,
        /// Last hour in which merging may start.
        end_hour: u8,
    },
}

impl MergePolicy {
    /// Whether a merge may start now.
    pub(super) fn allows_start(self, utc_offset_secs: i32, now_secs: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Window { start_hour, end_hour } => {
                let hour = (now_secs.saturating_add_signed(i64::from(utc_offset_secs)) / 3600 % 24) as u8;
                if start_hour <= end_hour {
                    (start_hour..=end_hour).contains(&hour)
                } else {
                    hour >= start_hour || hour <= end_hour
                }
            }
        }
    }
}

/// When merges run and which files they take.
#[derive(Clone, Copy, Debug)]
pub struct MergeConfig {
    /// `bitcask.merge.policy` and `bitcask.merge.window.*`.
    pub policy: MergePolicy,
    /// The offset from UTC in seconds for the hours of the window.
    pub utc_offset_secs: i32,
    /// `bitcask.merge.triggers.fragmentation`: a merge starts when this percentage of a file's
    /// versions is dead.
    pub trigger_fragmentation_percent: u8,
    /// `bitcask.merge.triggers.dead_bytes`: a merge starts when one file has this many dead bytes.
    pub trigger_dead_bytes: u64,
    /// `bitcask.merge.thresholds.fragmentation`: a file takes part when this percentage of its
    /// versions is dead.
    pub threshold_fragmentation_percent: u8,
    /// `bitcask.merge.thresholds.dead_bytes`: a file takes part when it has this many dead bytes.
    pub threshold_dead_bytes: u64,
    /// `bitcask.merge.thresholds.small_file`: a smaller file always takes part.
    pub threshold_small_file_bytes: u64,
    /// Limit for the dead bytes of a store, as a percentage of its live bytes. Beyond it, the files
    /// with the largest dead share are merged even if no trigger fires. None: only the triggers
    /// decide.
    pub dead_percent_max: Option<u16>,
    /// `bitcask.max_merge_size`: the most bytes that the input files of one merge have together.
    pub bytes_max: u64,
    /// `bitcask.merge_check_interval`.
    pub check_interval_secs: u32,
    /// `bitcask.merge_check_jitter`: the interval varies by up to this percentage in either
    /// direction.
    pub check_jitter_percent: u8,
    /// The bytes that merges may read and write in a second, for all partitions together, while
    /// nobody writes. Appends allow more.
    pub io_bytes_per_sec: u64,
}

impl Default for MergeConfig {
    fn default() -> Self {
        Self {
            policy: MergePolicy::Always,
            utc_offset_secs: 0,
            trigger_fragmentation_percent: 60,
            trigger_dead_bytes: 512 << 20,
            threshold_fragmentation_percent: 40,
            threshold_dead_bytes: 128 << 20,
            threshold_small_file_bytes: 10 << 20,
            dead_percent_max: None,
            bytes_max: 100 << 30,
            check_interval_secs: 180,
            check_jitter_percent: 30,
            io_bytes_per_sec: 20_000_000,
        }
    }
}

impl MergeConfig {
    /// The options of leveled, which has a score instead of triggers. A file is merged when at most
    /// a quarter of it would be kept (`leveled.singlefile_compactionpercentage`). Files are also
    /// merged before the disk has to hold twice the live bytes.
    pub fn leveled() -> Self {
        Self {
            trigger_fragmentation_percent: 75,
            trigger_dead_bytes: u64::MAX,
            threshold_fragmentation_percent: 75,
            threshold_dead_bytes: u64::MAX,
            dead_percent_max: Some(70),
            ..Self::default()
        }
    }
}

/// The options of a node's stores.
#[derive(Clone, Copy, Debug)]
pub struct JournalConfig {
    /// `bitcask.sync.strategy` and `bitcask.sync.interval`.
    pub sync: SyncStrategy,
    /// `bitcask.max_file_size`: a file that would grow beyond this is closed and a new one is
    /// begun. At most 4 GiB − 1.
    pub file_bytes_max: u64,
    /// `leveled.journal_objectcount`: a file with this many versions is closed and a new one is
    /// begun.
    pub file_records_max: u64,
    /// `bitcask.expiry`: versions older than this are absent. A store with such a limit forgets
    /// expired versions by itself (see `crate::drops`).
    pub expiry_secs: Option<u32>,
    /// `bitcask.expiry.grace_time`: how long a file may wait for its merge after its versions have
    /// expired.
    pub expiry_grace_secs: u32,
    /// The options of merging.
    pub merge: MergeConfig,
    /// How bodies are compressed on disk. A store reads bodies that were written with any setting.
    pub compression: Compression,
    /// When bodies are compressed.
    pub compression_point: CompressionPoint,
    /// Seconds between two sweeps that remove expired versions, if `expiry_secs` is set.
    pub sweep_interval_secs: u32,
    /// `leveled.snapshot_timeout_long`: how long a snapshot for folds may be open.
    pub snapshot_secs_max: Option<u32>,
    /// `leveled.snapshot_timeout_short`: how long an ordered snapshot for index queries may be
    /// open.
    pub ordered_snapshot_secs_max: Option<u32>,
    /// `disk_reserve`: puts are refused while fewer bytes are free in the file system, so that
    /// deletes and merges have room. At most a twentieth of the file system; 0: none.
    pub disk_reserve_bytes: u64,
    /// Whether a version with this digest is an object tombstone. Tombstones may use a part of the
    /// reserve.
    pub is_tombstone: fn(u64) -> bool,
    /// The most data files that are open at once, over all partitions.
    pub open_files_max: usize,
    /// Unix seconds at the start. Expiry uses it until the first `maintain`.
    pub opened_at_secs: u64,
}

impl JournalConfig {
    /// When a version expires, for a writer that asked for `wanted_secs` (0: never). 0: never.
    pub(crate) fn expires_at(&self, tstamp_secs: u32, wanted_secs: u32) -> u32 {
        let by_age = self.expiry_secs.map(|expiry| tstamp_secs.saturating_add(expiry).max(1));
        match (by_age, wanted_secs) {
            (None, wanted) => wanted,
            (Some(by_age), 0) => by_age,
            (Some(by_age), wanted) => by_age.min(wanted),
        }
    }

    /// Whether the store removes expired versions by itself.
    pub(crate) fn forgets_expired(&self) -> bool {
        self.expiry_secs.is_some()
    }

    /// Whether a version had expired when the store was opened.
    pub(crate) fn had_expired(&self, tstamp_secs: u32, wanted_secs: u32) -> bool {
        let expires_secs = self.expires_at(tstamp_secs, wanted_secs);
        expires_secs != 0 && u64::from(expires_secs) < self.opened_at_secs
    }
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self {
            sync: SyncStrategy::None,
            file_bytes_max: 2 << 30,
            file_records_max: u64::MAX,
            snapshot_secs_max: None,
            ordered_snapshot_secs_max: None,
            expiry_secs: None,
            expiry_grace_secs: 0,
            merge: MergeConfig::default(),
            compression: Compression::None,
            compression_point: CompressionPoint::OnReceipt,
            sweep_interval_secs: 600,
            disk_reserve_bytes: 0,
            is_tombstone: |_| false,
            open_files_max: 512,
            opened_at_secs: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_include_both_hours_and_may_span_midnight() {
        let at = |hour: u64| hour * 3600 + 1800;
        let night = MergePolicy::Window { start_hour: 22, end_hour: 4 };
        let merging: Vec<u64> = (0..24).filter(|hour| night.allows_start(0, at(*hour))).collect();
        assert_eq!(merging, [0, 1, 2, 3, 4, 22, 23]);
        let day = MergePolicy::Window { start_hour: 9, end_hour: 10 };
        assert!(day.allows_start(0, at(10)) && !day.allows_start(0, at(11)));
        assert!(day.allows_start(7200, at(7)) && !day.allows_start(7200, at(9)));
        assert!(MergePolicy::Always.allows_start(0, 0) && !MergePolicy::Never.allows_start(0, 0));
    }
}
