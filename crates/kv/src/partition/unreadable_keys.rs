//! Keys whose version in a store of this node cannot be read.
//!
//! Whatever finds such a version, notes it here: a read, a write, a comparison with another node.
//! Beside the requests each key is then read from the other replicas and repaired
//! (docs/design/replication.md §13). Until that has succeeded, the node refuses versions of the key
//! that others push, and hints and owed marks of other nodes stay.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many keys wait at most. Others are noted again when they are found the next time.
const KEYS_MAX: usize = 10_000;
/// The pause after the first failed repair, and the longest pause.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// With many keys the longest pause is this long for each of them. Each repair reads a place of the
/// disk again, and a store with many bad places within a minute fails as a whole.
const RETRY_PER_KEY: Duration = Duration::from_secs(3);

/// A partition and a storage key.
pub type KeyPlace = (u32, Bytes);

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    failures: u32,
    /// When the next repair may begin; `None`: at once.
    not_before: Option<Instant>,
}

/// The keys that wait for a repair.
#[derive(Debug, Default)]
pub struct UnreadableKeys {
    keys: Mutex<BTreeMap<KeyPlace, Waiting>>,
    /// How many keys were repaired since the start.
    repaired: AtomicU64,
    /// The same, by the partition.
    repaired_in: Mutex<BTreeMap<u32, u64>>,
}

impl UnreadableKeys {
    /// Notes a key.
    pub(super) fn note(&self, partition: u32, key: &[u8]) {
        let mut keys = self.keys.lock();
        if keys.len() < KEYS_MAX {
            keys.entry((partition, Bytes::copy_from_slice(key))).or_default();
        }
    }

    /// Whether a key waits for a repair.
    pub(super) fn contains(&self, partition: u32, key: &[u8]) -> bool {
        let keys = self.keys.lock();
        !keys.is_empty() && keys.contains_key(&(partition, Bytes::copy_from_slice(key)))
    }

    /// The keys of a partition that wait for a repair.
    pub(super) fn of_partition(&self, partition: u32) -> Vec<Bytes> {
        let of_partition = (partition, Bytes::new())..(partition.saturating_add(1), Bytes::new());
        self.keys.lock().range(of_partition).map(|((_, key), _)| key.clone()).collect()
    }

    /// Some keys whose repair may begin.
    pub fn due(&self, now: Instant, count_max: usize) -> Vec<KeyPlace> {
        let keys = self.keys.lock();
        let is_due = |waiting: &Waiting| waiting.not_before.is_none_or(|at| at <= now);
        keys.iter().filter(|(_, waiting)| is_due(waiting)).map(|(place, _)| place.clone()).take(count_max).collect()
    }

    /// All keys, with the number of repairs that have failed.
    pub fn list(&self) -> Vec<(KeyPlace, u32)> {
        self.keys.lock().iter().map(|(place, waiting)| (place.clone(), waiting.failures)).collect()
    }

    /// An operator has given up the version of a key.
    pub fn forget(&self, place: &KeyPlace) {
        self.keys.lock().remove(place);
    }

    /// Every repair may begin: a node has come up, or the ring has changed.
    pub fn try_all_again(&self) {
        for waiting in self.keys.lock().values_mut() {
            (waiting.failures, waiting.not_before) = (0, None);
        }
    }

    /// The key can be read again, or is gone.
    pub fn repaired(&self, place: &KeyPlace) {
        if self.keys.lock().remove(place).is_some() {
            self.repaired.fetch_add(1, Ordering::Relaxed);
            *self.repaired_in.lock().entry(place.0).or_default() += 1;
        }
    }

    /// The repair has failed. It is tried again after a pause, which doubles.
    pub fn failed(&self, place: &KeyPlace, now: Instant) {
        let mut keys = self.keys.lock();
        let pause_max = RETRY_MAX.max(RETRY_PER_KEY * u32::try_from(keys.len()).unwrap_or(u32::MAX));
        let Some(waiting) = keys.get_mut(place) else { return };
        let pause = (RETRY_MIN * (1 << waiting.failures.min(16))).min(pause_max);
        (waiting.failures, waiting.not_before) = (waiting.failures.saturating_add(1), Some(now + pause));
    }

    /// How many keys wait.
    pub fn count(&self) -> usize {
        self.keys.lock().len()
    }

    /// The keys of a partition: how many wait, of how many of them the repair has failed, and how
    /// many were repaired since the start.
    pub(crate) fn counts_of(&self, partition: u32) -> (u64, u64, u64) {
        let of_partition = (partition, Bytes::new())..(partition.saturating_add(1), Bytes::new());
        let (mut waiting, mut failed) = (0, 0);
        for (_, key) in self.keys.lock().range(of_partition) {
            waiting += 1;
            failed += u64::from(key.failures > 0);
        }
        let repaired = self.repaired_in.lock().get(&partition).copied().unwrap_or_default();
        (waiting, failed, repaired)
    }

    /// How many keys were repaired since the start.
    pub fn repaired_count(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_repair_waits_longer_each_time_and_no_longer_than_a_minute() {
        let keys = UnreadableKeys::default();
        keys.note(3, b"k");
        keys.note(3, b"k");
        let (place, mut now) = ((3, Bytes::from_static(b"k")), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..10 {
            assert_eq!(keys.due(now, 9), std::slice::from_ref(&place));
            keys.failed(&place, now);
            let began = now;
            while keys.due(now, 9).is_empty() {
                now += Duration::from_millis(500);
            }
            pauses.push((now - began).as_millis());
        }
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
        keys.failed(&place, now);
        keys.try_all_again();
        assert_eq!(keys.due(now, 9), std::slice::from_ref(&place));
        keys.repaired(&place);
        assert_eq!((keys.count(), keys.repaired_count(), keys.due(now, 9)), (0, 1, Vec::new()));
        keys.note(3, b"l");
        keys.note(3, b"m");
        keys.note(4, b"l");
        keys.failed(&(3, Bytes::from_static(b"m")), now);
        assert_eq!((keys.counts_of(3), keys.counts_of(4), keys.counts_of(5)), ((2, 1, 1), (1, 0, 0), (0, 0, 0)));
    }

    #[test]
    fn many_keys_wait_longer() {
        let (keys, now) = (UnreadableKeys::default(), Instant::now());
        (0..100u32).for_each(|number| keys.note(0, &number.to_be_bytes()));
        let place = (0, Bytes::copy_from_slice(&7u32.to_be_bytes()));
        (0..12).for_each(|_| keys.failed(&place, now));
        let is_due = |secs: u64| keys.due(now + Duration::from_secs(secs), 200).contains(&place);
        assert!(!is_due(299) && is_due(300));
    }

    #[test]
    fn no_more_keys_than_the_limit_are_kept() {
        let keys = UnreadableKeys::default();
        (0..=KEYS_MAX as u32).for_each(|number| keys.note(0, &number.to_be_bytes()));
        assert_eq!(keys.count(), KEYS_MAX);
    }
}
