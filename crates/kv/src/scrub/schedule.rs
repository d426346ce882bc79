//! Which store is read next, how much of it, and when: a state machine without I/O and clock.
//!
//! A *round* reads every store once, one after the other, and compares the index entries of each
//! with its objects when everything else of it has been read. The next round begins one interval
//! after the beginning of the last one, or when an operator wants it. A store that is opened while
//! a round runs belongs to it. A store that fails again and again does not hold up the next round.

use super::pace::{RoundSoFar, duration_ms, rate, step_bytes};
use super::stores::StoreToScrub;
use crate::config::ScrubConfig;
use ombak_storage::{ScrubCursor, ScrubStep, TermCursor, TermStep};
use std::collections::BTreeMap;
use std::time::Duration;

/// A round begins at least this long after the last one, in seconds. The end of each is logged and
/// saved.
const INTERVAL_SECS_MIN: u64 = 60;
/// How long a store waits after a step of it has failed, in milliseconds.
const RETRY_MS: u64 = 60_000;
/// After as many failures in a row the next round does not wait for the store.
const FAILURES_MANY: u32 = 10;
/// How long everything waits for each block that a disk has not given back, in milliseconds. The
/// repairs read these blocks again, and more than 32 of them within a minute fail a store as a
/// whole. A disk with as many cold bad blocks is not as bad as that.
const UNREAD_BLOCK_MS: u64 = 4_000;
/// How far the reading may be behind its rate and make up for it, in milliseconds.
const BEHIND_MS_MAX: u64 = 500;

/// A store that is not done counts as having at least this part of its bytes left.
const REST_SHARE: u64 = 20;

/// A moment, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Milliseconds by a clock that never goes back.
    pub(super) ms: u64,
    /// The time of day, Unix seconds.
    pub(super) unix_secs: u64,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Wait,
    /// Read a part of a store.
    Read { partition: u32, cursor: ScrubCursor, bytes_max: u64 },
    /// Compare some index entries of a store.
    CheckTerms { partition: u32, cursor: TermCursor },
}

/// The progress in one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoreProgress {
    pub(super) store_id: u64,
    /// The last round in which everything was read; 0: none.
    pub(super) done_round: u64,
    pub(super) last_full_secs: Option<u64>,
    /// The place in the round under way.
    pub(super) cursor: ScrubCursor,
    /// Bytes that the round has read.
    pub(super) bytes_read: u64,
    pub(super) damaged: u64,
    pub(super) obsolete: u64,
    pub(super) places: u64,
}

/// A store of which the progress is known, if it is open.
#[derive(Clone, Debug, Default)]
struct Store {
    progress: StoreProgress,
    /// Where its index entries are being compared; none: something else is read before. It is not
    /// saved: after a restart they are compared from the beginning.
    terms: Option<TermCursor>,
    /// Bytes on disk; none: it is not open.
    bytes: Option<u64>,
    /// It is not read before this moment.
    not_before_ms: u64,
    /// How many steps of it have failed since the last one that has not.
    failures: u32,
}

/// What outlives the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SavedSchedule {
    /// The number of the round under way, or of the last one; 0: there was none.
    pub(super) round: u64,
    /// When it began, Unix seconds.
    pub(super) began_secs: u64,
    pub(super) stores: BTreeMap<u32, StoreProgress>,
}

/// The state machine; see the module.
#[derive(Debug)]
pub(super) struct Schedule {
    config: ScrubConfig,
    round: u64,
    began_secs: u64,
    stores: BTreeMap<u32, Store>,
    is_paused: bool,
    /// Whether the round goes as fast as it may.
    hurries: bool,
    /// Nothing is read before this moment.
    not_before_ms: u64,
}

impl Schedule {
    pub(super) fn new(config: ScrubConfig, saved: SavedSchedule) -> Self {
        let store = |progress| Store { progress, ..Store::default() };
        let stores = saved.stores.into_iter().map(|(partition, progress)| (partition, store(progress)));
        Self {
            config,
            round: saved.round,
            began_secs: saved.began_secs,
            stores: stores.collect(),
            is_paused: false,
            hurries: false,
            not_before_ms: 0,
        }
    }

    /// What is to be saved.
    pub(super) fn saved(&self) -> SavedSchedule {
        let stores = self.stores.iter().map(|(partition, store)| (*partition, store.progress)).collect();
        SavedSchedule { round: self.round, began_secs: self.began_secs, stores }
    }

    /// These stores are open. The progress in a store that has other content now is forgotten, what
    /// was found in it excepted.
    pub(super) fn set_stores(&mut self, open: &[StoreToScrub]) {
        self.stores.values_mut().for_each(|store| store.bytes = None);
        for StoreToScrub { partition, store_id, bytes } in open {
            let store = self.stores.entry(*partition).or_default();
            store.bytes = Some(*bytes);
            if store.progress.store_id != *store_id {
                store.terms = None;
                let StoreProgress { damaged, obsolete, places, .. } = store.progress;
                store.progress =
                    StoreProgress { store_id: *store_id, damaged, obsolete, places, ..StoreProgress::default() };
            }
        }
    }

    /// What to do now.
    pub(super) fn next(&mut self, now: Moment) -> Next {
        if self.is_paused || self.open_stores().next().is_none() {
            return Next::Wait;
        }
        // The clock may have been set back.
        self.began_secs = self.began_secs.min(now.unix_secs);
        if self.is_round_over() || self.waits_for_failing_stores() && now.unix_secs >= self.next_round_secs() {
            self.hurries = false;
            if self.round > 0 && now.unix_secs < self.next_round_secs() {
                return Next::Wait;
            }
            self.begin_round(now);
        }
        if now.ms < self.not_before_ms {
            return Next::Wait;
        }
        let is_next = |(_, store): &(u32, &Store)| !self.is_done(store) && store.not_before_ms <= now.ms;
        let order = |(partition, store): &(u32, &Store)| {
            let is_begun = store.progress.cursor != ScrubCursor::default() || store.terms.is_some();
            (!is_begun, store.progress.last_full_secs, *partition)
        };
        let Some((partition, store)) = self.open_stores().filter(is_next).min_by_key(order) else {
            return Next::Wait;
        };
        match &store.terms {
            Some(cursor) => Next::CheckTerms { partition, cursor: cursor.clone() },
            None => Next::Read { partition, cursor: store.progress.cursor, bytes_max: step_bytes(self.rate(now)) },
        }
    }

    /// A step that began at `from` has been done.
    pub(super) fn stepped(&mut self, now: Moment, partition: u32, from: &ScrubCursor, step: &ScrubStep) {
        let rate = self.rate(now);
        if let Some(store) = self.stores.get_mut(&partition) {
            store.failures = 0;
            let progress = &mut store.progress;
            progress.damaged += step.found.versions_count;
            progress.obsolete += step.found.obsolete;
            progress.places += step.found.places_count;
            // If another round has begun meanwhile, the step was none of it.
            if progress.cursor == *from && store.terms.is_none() {
                progress.bytes_read += step.bytes_read;
                progress.cursor = step.next;
                if step.is_round_over {
                    progress.last_full_secs = Some(now.unix_secs);
                    store.terms = Some(TermCursor::default());
                }
            }
        }
        self.pass(now, step.bytes_read, rate);
        if step.unread_blocks > 0 {
            let pause = step.unread_blocks.saturating_mul(UNREAD_BLOCK_MS);
            self.not_before_ms = self.not_before_ms.max(now.ms.saturating_add(pause));
        }
    }

    /// Index entries have been compared from `from` on. Returns whether that has ended the round.
    pub(super) fn terms_stepped(&mut self, now: Moment, partition: u32, from: &TermCursor, step: &TermStep) -> bool {
        let (rate, round, was_over) = (self.rate(now), self.round, self.is_round_over());
        if let Some(store) = self.stores.get_mut(&partition) {
            store.failures = 0;
            store.progress.places += step.lacking + step.surplus;
            if store.terms.as_ref() == Some(from) {
                store.terms = (!step.is_over).then(|| step.next.clone());
                if step.is_over {
                    (store.progress.cursor, store.progress.done_round) = (ScrubCursor::default(), round);
                }
            }
        }
        self.pass(now, step.cost_bytes, rate);
        !was_over && self.is_round_over()
    }

    /// So much has been read. The next step waits for as long as that takes at this rate.
    fn pass(&mut self, now: Moment, bytes: u64, rate: u64) {
        let earliest = self.not_before_ms.max(now.ms.saturating_sub(BEHIND_MS_MAX));
        self.not_before_ms = earliest.saturating_add(duration_ms(bytes, rate));
    }

    /// A step could not be done. The others go on. Returns whether the step before it was done.
    pub(super) fn failed(&mut self, now: Moment, partition: u32) -> bool {
        let Some(store) = self.stores.get_mut(&partition) else { return false };
        store.not_before_ms = now.ms.saturating_add(RETRY_MS);
        store.failures = store.failures.saturating_add(1);
        store.failures == 1
    }

    /// A store is not open any more.
    pub(super) fn closed(&mut self, partition: u32) {
        if let Some(store) = self.stores.get_mut(&partition) {
            store.bytes = None;
        }
    }

    /// Begins a round over everything now, at the highest rate. One that is under way ends.
    pub(super) fn start_round(&mut self, now: Moment) {
        self.begin_round(now);
        (self.hurries, self.is_paused) = (true, false);
    }

    /// Pauses, or goes on.
    pub(super) fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Whether all open stores have been read in this round.
    pub(super) fn is_round_over(&self) -> bool {
        self.round == 0 || self.open_stores().all(|(_, store)| self.is_done(store))
    }

    /// When the round under way began, or the last one.
    pub(super) fn began_secs(&self) -> Option<u64> {
        (self.round > 0).then_some(self.began_secs)
    }

    /// When the next round begins, if this one has ended.
    pub(super) fn next_round_secs(&self) -> u64 {
        self.began_secs.saturating_add(self.config.interval.as_secs().max(INTERVAL_SECS_MIN))
    }

    /// The rate of the round, in bytes a second.
    pub(super) fn rate(&self, now: Moment) -> u64 {
        let rate_max = match self.config.bytes_per_second_max {
            0 => u64::MAX,
            limit => limit,
        };
        if self.hurries {
            return rate_max;
        }
        let (mut all_bytes, mut left_bytes) = (0, 0);
        for (_, store) in self.open_stores() {
            let bytes = store.bytes.unwrap_or_default();
            all_bytes += bytes;
            if !self.is_done(store) {
                // Merges may have brought more than there was at the beginning.
                left_bytes += bytes.saturating_sub(store.progress.bytes_read).max(bytes / REST_SHARE);
            }
        }
        let age = Duration::from_secs(now.unix_secs.saturating_sub(self.began_secs));
        rate(&RoundSoFar { all_bytes, left_bytes, age, interval: self.config.interval, rate_max })
    }

    /// The open stores: the partition, the progress, bytes on disk, and whether this round has read
    /// it.
    pub(super) fn progress(&self) -> impl Iterator<Item = (u32, StoreProgress, u64, bool)> + '_ {
        let of = move |(partition, store): (u32, &Store)| {
            let is_done = self.round > 0 && self.is_done(store);
            (partition, store.progress, store.bytes.unwrap_or_default(), is_done)
        };
        self.open_stores().map(of)
    }

    fn begin_round(&mut self, now: Moment) {
        self.round += 1;
        self.began_secs = now.unix_secs;
        for store in self.stores.values_mut() {
            store.terms = None;
            (store.progress.cursor, store.progress.bytes_read) = (ScrubCursor::default(), 0);
        }
    }

    fn open_stores(&self) -> impl Iterator<Item = (u32, &Store)> {
        self.stores.iter().filter(|(_, store)| store.bytes.is_some()).map(|(partition, store)| (*partition, store))
    }

    /// Whether only such stores are left in this round as fail again and again.
    fn waits_for_failing_stores(&self) -> bool {
        self.open_stores().all(|(_, store)| self.is_done(store) || store.failures >= FAILURES_MANY)
    }

    fn is_done(&self, store: &Store) -> bool {
        store.progress.done_round == self.round
    }
}

#[cfg(test)]
mod tests;
