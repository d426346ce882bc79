//! How stores with a journal behave: bitcask's names and defaults in Riak (docs/riak/backends.md §2.8).

use super::coding::{Compression, CompressionPoint};
use std::time::Duration;

/// When appended versions reach the disk (`bitcask.sync.strategy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStrategy {
    /// When the operating system likes; at roll-over and at close.
    None,
    /// At this interval.
    Interval(Duration),
    /// Before each acknowledgement; one sync serves all who wait.
    OSync,
}

/// When merging may start (`bitcask.merge.policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergePolicy {
    /// At any hour.
    Always,
    /// Never.
    Never,
    /// From the first hour through the last one, 0 … 23; the window may span midnight.
    Window {
        /// First hour in which merging may start.
        start_hour: u8,
        /// Last hour in which merging may start.
        end_hour: u8,
    },
}

/// When and what to merge.
#[derive(Clone, Copy, Debug)]
pub struct MergeConfig {
    /// `bitcask.merge.policy` and `bitcask.merge.window.*`.
    pub policy: MergePolicy,
    /// What to add to UTC for the hours of the window.
    pub utc_offset_secs: i32,
    /// `bitcask.merge.triggers.fragmentation`: per cent of a file's versions that are dead, for a merge to start.
    pub trigger_fragmentation_percent: u8,
    /// `bitcask.merge.triggers.dead_bytes`: dead bytes in one file for a merge to start.
    pub trigger_dead_bytes: u64,
    /// `bitcask.merge.thresholds.fragmentation`: per cent dead for a file to take part.
    pub threshold_fragmentation_percent: u8,
    /// `bitcask.merge.thresholds.dead_bytes`: dead bytes for a file to take part.
    pub threshold_dead_bytes: u64,
    /// `bitcask.merge.thresholds.small_file`: a smaller file always takes part.
    pub threshold_small_file_bytes: u64,
    /// Dead bytes of a store, per cent of its live ones, beyond which its files of the largest dead share are merged whether they
    /// ask for it or not. None: only files that ask are.
    pub dead_percent_max: Option<u16>,
    /// `bitcask.max_merge_size`: bytes of the files of one merge.
    pub bytes_max: u64,
    /// `bitcask.merge_check_interval`.
    pub check_interval_secs: u32,
    /// `bitcask.merge_check_jitter`: the interval varies by up to this share either way.
    pub check_jitter_percent: u8,
    /// Bytes read and written a second by merges, for all partitions together, while nobody writes; what is written adds to it.
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
    /// For leveled, which has a score instead of triggers: a file is merged when a quarter of it would be kept
    /// (`leveled.singlefile_compactionpercentage`), and before the disk has to hold twice what is live.
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

/// How the stores of a node behave.
#[derive(Clone, Copy, Debug)]
pub struct JournalConfig {
    /// `bitcask.sync.strategy` and `bitcask.sync.interval`.
    pub sync: SyncStrategy,
    /// `bitcask.max_file_size`: a file that would grow beyond it is closed and a new one begun. At most 4 GiB − 1.
    pub file_bytes_max: u64,
    /// `leveled.journal_objectcount`: a file with so many versions is closed and a new one begun.
    pub file_records_max: u64,
    /// `bitcask.expiry`: older versions are absent.
    pub expiry_secs: Option<u32>,
    /// `bitcask.expiry.grace_time`: how long after expiry a file may wait for its merge.
    pub expiry_grace_secs: u32,
    /// Merging.
    pub merge: MergeConfig,
    /// How bodies are compressed on disk. A store with it on or off reads what was written with it off or on.
    pub compression: Compression,
    /// When they are.
    pub compression_point: CompressionPoint,
    /// Seconds between two looks for versions that have expired, to be forgotten.
    pub sweep_interval_secs: u32,
    /// `leveled.snapshot_timeout_long`: how long a view may be open, for folds.
    pub snapshot_secs_max: Option<u32>,
    /// `leveled.snapshot_timeout_short`: how long a view may be open that knows the order of keys, for index queries.
    pub ordered_snapshot_secs_max: Option<u32>,
    /// `disk_reserve`: puts are refused while fewer bytes are free in the file system, so that deletes and merges have
    /// room. At most a twentieth of the file system; 0: none.
    pub disk_reserve_bytes: u64,
    /// Says by its digest whether a version is a tombstone of its object, which may use a part of that reserve.
    pub is_tombstone: fn(u64) -> bool,
    /// Data files that are held open, over all partitions.
    pub open_files_max: usize,
    /// Unix time at the start: expiry is judged by it until the first `maintain`.
    pub opened_at_secs: u64,
}

impl JournalConfig {
    /// When a version is absent by itself, for a writer that wants it gone at `wanted_secs` (0: never): 0 for never.
    pub(crate) fn expires_at(&self, tstamp_secs: u32, wanted_secs: u32) -> u32 {
        let by_age = self.expiry_secs.map(|expiry| tstamp_secs.saturating_add(expiry).max(1));
        match (by_age, wanted_secs) {
            (None, wanted) => wanted,
            (Some(by_age), 0) => by_age,
            (Some(by_age), wanted) => by_age.min(wanted),
        }
    }

    /// Whether such a version was absent by itself when the store was opened.
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
