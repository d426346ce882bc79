//! Decides whether to merge, and which files (docs/riak/backends.md §2.7).

use crate::journal::config::MergeConfig;
use crate::journal::data_file::DataFile;
use std::sync::atomic::Ordering;

/// What merging needs to know about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) struct FileSummary {
    pub(in crate::journal) id: u32,
    /// The file is closed and synced, and no merge has failed to read a part of it that is still
    /// live, or may have storage tombstones.
    pub(in crate::journal) mergeable: bool,
    pub(in crate::journal) bytes: u64,
    pub(in crate::journal) records: u64,
    pub(in crate::journal) live_records: u64,
    pub(in crate::journal) live_bytes: u64,
    pub(in crate::journal) tombstones: u64,
    pub(in crate::journal) tombstone_bytes: u64,
    /// A merge keeps tombstones of the file for consumers of the change feed.
    pub(in crate::journal) keeps_tombstones: bool,
    pub(in crate::journal) seq_min: u64,
    pub(in crate::journal) seq_max: u64,
    pub(in crate::journal) tstamp_max: u32,
}

pub(in crate::journal) fn summarize(file: &DataFile, sealed: bool) -> FileSummary {
    let counters = &file.counters;
    let live_records = counters.live_records.load(Ordering::Acquire);
    FileSummary {
        id: file.id,
        mergeable: sealed && file.can_be_merged(),
        bytes: counters.length.load(Ordering::Relaxed),
        records: counters.records.load(Ordering::Relaxed),
        live_records,
        live_bytes: counters.live_bytes.load(Ordering::Acquire),
        tombstones: counters.tombstones.load(Ordering::Relaxed),
        tombstone_bytes: counters.tombstone_bytes.load(Ordering::Relaxed),
        keeps_tombstones: false,
        seq_min: counters.seq_min(),
        seq_max: counters.seq_max.load(Ordering::Relaxed),
        tstamp_max: counters.tstamp_max.load(Ordering::Relaxed),
    }
}

/// What a merge would remove from a file.
struct Reclaimable {
    percent: u64,
    bytes: u64,
}

impl FileSummary {
    /// Tombstones that must stay are not reclaimable; otherwise a file of tombstones only would be
    /// merged forever.
    fn reclaimable(&self, tombstones_go: bool) -> Reclaimable {
        let tombstones_go = tombstones_go && !self.keeps_tombstones;
        let (kept, kept_bytes) = if tombstones_go { (0, 0) } else { (self.tombstones, self.tombstone_bytes) };
        let dead = self.records.saturating_sub(self.live_records + kept);
        Reclaimable {
            percent: (dead * 100).checked_div(self.records).unwrap_or(100),
            bytes: self.bytes.saturating_sub(self.live_bytes + kept_bytes),
        }
    }

    fn is_expired(&self, expired_before: Option<u64>) -> bool {
        expired_before.is_some_and(|before| u64::from(self.tstamp_max) < before)
    }
}

/// A store with fewer dead bytes is not merged.
const DEAD_BYTES_MIN: u64 = 4 << 20;
/// A file with a lower percentage of dead bytes is not worth copying.
const RELIEF_PERCENT_MIN: u64 = 25;

/// The input files of the next merge; none if no file triggers one. `expired_before`: versions
/// written before that second have expired, including the grace time.
pub(in crate::journal) fn select_inputs(
    files: &[FileSummary],
    config: &MergeConfig,
    expired_before: Option<u64>,
) -> Vec<u32> {
    let takes_part = |file: &FileSummary, tombstones_go: bool| {
        let reclaimable = file.reclaimable(tombstones_go);
        file.mergeable
            && (reclaimable.percent >= u64::from(config.threshold_fragmentation_percent)
                || reclaimable.bytes >= config.threshold_dead_bytes
                || file.bytes < config.threshold_small_file_bytes
                || file.is_expired(expired_before))
    };
    let triggers = |file: &FileSummary, tombstones_go: bool| {
        let reclaimable = file.reclaimable(tombstones_go);
        file.mergeable
            && (reclaimable.percent >= u64::from(config.trigger_fragmentation_percent)
                || reclaimable.bytes >= config.trigger_dead_bytes
                || file.is_expired(expired_before))
    };
    let certain: Vec<u32> = files.iter().filter(|file| takes_part(file, false)).map(|file| file.id).collect();
    // A file's tombstones can go if the files that are certainly merged are the only ones with
    // older records.
    let tombstones_go = |file: &FileSummary| {
        files.iter().all(|other| other.id == file.id || other.seq_min > file.seq_max || certain.contains(&other.id))
    };
    let mut chosen: Vec<&FileSummary> = if files.iter().any(|file| triggers(file, tombstones_go(file))) {
        files.iter().filter(|file| takes_part(file, tombstones_go(file))).collect()
    } else {
        most_dead(files, config)
    };
    chosen.sort_unstable_by_key(|file| file.id);
    let mut bytes = 0u64;
    chosen.retain(|file| {
        bytes = bytes.saturating_add(file.bytes);
        bytes <= config.bytes_max || bytes == file.bytes
    });
    chosen.iter().map(|file| file.id).collect()
}

/// If a store has more dead bytes than allowed: the files with the largest dead share, until the
/// rest is clearly below the limit. Merging only the worst files keeps the amount of copying small.
fn most_dead<'a>(files: &'a [FileSummary], config: &MergeConfig) -> Vec<&'a FileSummary> {
    let Some(percent_max) = config.dead_percent_max else { return Vec::new() };
    let live: u64 = files.iter().map(|file| file.live_bytes).sum();
    let all: u64 = files.iter().map(|file| file.bytes).sum();
    let dead_max = live.saturating_mul(u64::from(percent_max)) / 100;
    let mut dead = all.saturating_sub(live);
    if dead <= dead_max.max(DEAD_BYTES_MIN) {
        return Vec::new();
    }
    let dead_percent = |file: &FileSummary| (file.reclaimable(false).bytes * 100).checked_div(file.bytes).unwrap_or(0);
    let frees_space = |file: &&FileSummary| file.mergeable && dead_percent(file) >= RELIEF_PERCENT_MIN;
    let mut candidates: Vec<&FileSummary> = files.iter().filter(frees_space).collect();
    candidates.sort_by_key(|file| std::cmp::Reverse(dead_percent(file)));
    candidates.retain(|file| {
        let is_needed = dead > dead_max - dead_max / 8;
        dead = dead.saturating_sub(if is_needed { file.reclaimable(false).bytes } else { 0 });
        is_needed
    });
    candidates
}

/// On a full disk, a merge is worthwhile if it removes one part in this many of a file.
const RECLAIMABLE_SHARE_MIN: u64 = 20;
/// The approximate size of a hint entry, without its key.
const HINT_ENTRY_BYTES: u64 = 64;

/// The input files of a merge on a full disk, whatever the triggers say: all files of which nothing
/// is kept, or else the one with the most dead bytes. Their copies fit into `room_bytes`. Only one
/// file is copied at a time, because each commit makes room.
pub(in crate::journal) fn select_for_room(files: &[FileSummary], room_bytes: u64) -> Vec<u32> {
    let mut seq_mins: Vec<u64> = files.iter().map(|file| file.seq_min).collect();
    seq_mins.sort_unstable();
    let oldest_beside = |file: &FileSummary| match (seq_mins.first(), seq_mins.get(1)) {
        (Some(oldest), next) if *oldest == file.seq_min => next.copied().unwrap_or(u64::MAX),
        (oldest, _) => oldest.copied().unwrap_or(u64::MAX),
    };
    let tombstones_go = |file: &FileSummary| oldest_beside(file) > file.seq_max && !file.keeps_tombstones;
    let kept_bytes = |file: &FileSummary| match (file.live_records, tombstones_go(file)) {
        (0, true) => 0,
        (live, true) => file.live_bytes + live * HINT_ENTRY_BYTES,
        (live, false) => file.live_bytes + file.tombstone_bytes + (live + file.tombstones) * HINT_ENTRY_BYTES,
    };
    let reclaimable_bytes = |file: &FileSummary| file.reclaimable(tombstones_go(file)).bytes;
    let frees_space = |file: &&FileSummary| {
        let reclaimable_bytes = reclaimable_bytes(file);
        file.mergeable
            && reclaimable_bytes > 0
            && reclaimable_bytes >= file.bytes / RECLAIMABLE_SHARE_MIN
            && kept_bytes(file) <= room_bytes
    };
    let candidates = || files.iter().filter(frees_space);
    let all_dead: Vec<u32> = candidates().filter(|file| kept_bytes(file) == 0).map(|file| file.id).collect();
    if !all_dead.is_empty() {
        return all_dead;
    }
    candidates().max_by_key(|file| reclaimable_bytes(file)).map(|file| file.id).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const NOTHING: [u32; 0] = [];

    fn file(id: u32, live_percent: u64) -> FileSummary {
        let seq = u64::from(id) * 1000;
        FileSummary {
            id,
            mergeable: true,
            bytes: 100 * MB,
            records: 1000,
            live_records: live_percent * 10,
            live_bytes: live_percent * MB,
            tombstones: 0,
            tombstone_bytes: 0,
            keeps_tombstones: false,
            seq_min: seq,
            seq_max: seq + 999,
            tstamp_max: 100,
        }
    }

    #[test]
    fn triggers_start_and_thresholds_choose() {
        let config = MergeConfig::default();
        assert_eq!(select_inputs(&[file(1, 41), file(2, 100)], &config, None), NOTHING);
        assert_eq!(select_inputs(&[file(1, 40), file(2, 100), file(3, 60), file(4, 61)], &config, None), [1, 3]);
        let small = FileSummary { bytes: 9 * MB, live_bytes: 9 * MB, ..file(5, 100) };
        assert_eq!(select_inputs(&[small], &config, None), NOTHING);
        assert_eq!(select_inputs(&[small, file(1, 10)], &config, None), [1, 5]);
        assert_eq!(select_inputs(&[FileSummary { mergeable: false, ..file(1, 0) }], &config, None), NOTHING);
        let expired = file(1, 100);
        assert_eq!(select_inputs(&[expired], &config, Some(100)), NOTHING);
        assert_eq!(select_inputs(&[expired], &config, Some(101)), [1]);
        let big = FileSummary { bytes: 2000 * MB, live_bytes: 1400 * MB, ..file(1, 70) };
        assert_eq!(select_inputs(&[big], &config, None), [1], "dead bytes alone");
    }

    #[test]
    fn tombstones_that_must_stay_trigger_nothing() {
        let config = MergeConfig::default();
        let tombstones =
            FileSummary { live_records: 0, live_bytes: 0, tombstones: 1000, tombstone_bytes: 100 * MB, ..file(2, 0) };
        assert_eq!(select_inputs(&[file(1, 100), tombstones], &config, None), NOTHING);
        assert_eq!(select_inputs(&[file(1, 10), tombstones], &config, None), [1, 2], "what they hide goes too");
        assert_eq!(select_inputs(&[tombstones, file(3, 100)], &config, None), [2], "nothing older is left");
        let kept = FileSummary { keeps_tombstones: true, ..tombstones };
        assert_eq!(select_inputs(&[kept, file(3, 100)], &config, None), NOTHING, "consumers need them");
    }

    #[test]
    fn a_store_with_too_much_dead_merges_its_worst_files() {
        let config = MergeConfig { dead_percent_max: Some(50), ..MergeConfig::leveled() };
        let files = [file(1, 60), file(2, 80), file(3, 50), file(4, 90)];
        // 280 MB are live, 120 MB dead.
        assert_eq!(select_inputs(&files, &config, None), NOTHING);
        let files = [file(1, 60), file(2, 80), file(3, 40), file(4, 70)];
        // 250 MB are live, 150 MB dead; the merge must bring the dead ones below 110 MB.
        assert_eq!(select_inputs(&files, &config, None), [3]);
        assert_eq!(select_inputs(&files, &MergeConfig { dead_percent_max: Some(20), ..config }, None), [1, 3, 4]);
        let never = MergeConfig { dead_percent_max: None, ..config };
        assert_eq!(select_inputs(&files, &never, None), NOTHING);
    }

    #[test]
    fn a_merge_is_bounded_but_takes_at_least_one_file() {
        let config = MergeConfig { bytes_max: 250 * MB, ..MergeConfig::default() };
        assert_eq!(select_inputs(&[file(1, 0), file(2, 0), file(3, 0)], &config, None), [1, 2]);
        let config = MergeConfig { bytes_max: MB, ..config };
        assert_eq!(select_inputs(&[file(1, 0), file(2, 0)], &config, None), [1]);
    }

    #[test]
    fn a_full_disk_merges_the_file_with_the_most_dead_that_fits() {
        let files = [file(1, 80), file(2, 60), file(3, 70), file(4, 96)];
        assert_eq!(select_for_room(&files, 100 * MB), [2]);
        // 60 MB are kept of the second file, and a hint is written for them.
        assert_eq!(select_for_room(&files, 60 * MB), NOTHING);
        let small = FileSummary { bytes: 10 * MB, live_bytes: 4 * MB, ..file(5, 40) };
        assert_eq!(select_for_room(&[file(1, 80), file(2, 60), small], 60 * MB), [5]);
        assert_eq!(select_for_room(&[file(4, 96)], 100 * MB), NOTHING, "it would be copied nearly whole");
        assert_eq!(select_for_room(&[FileSummary { mergeable: false, ..file(1, 0) }], 100 * MB), NOTHING);
        assert_eq!(select_for_room(&[], 100 * MB), NOTHING);
    }

    #[test]
    fn a_full_disk_drops_first_what_needs_no_copy() {
        let files = [file(1, 50), file(2, 0), file(3, 0)];
        assert_eq!(select_for_room(&files, 0), [2, 3]);
        let tombstones =
            FileSummary { live_records: 0, live_bytes: 0, tombstones: 1000, tombstone_bytes: 100 * MB, ..file(2, 0) };
        assert_eq!(select_for_room(&[file(1, 100), tombstones], 200 * MB), NOTHING, "they hide something older");
        assert_eq!(select_for_room(&[tombstones, file(3, 100)], 0), [2], "nothing older is left");
    }
}
