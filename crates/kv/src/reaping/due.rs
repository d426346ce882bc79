//! The versions that wait for a round, by class.

use super::counts::ReapingCounts;
use crate::buckets::BucketRegistry;
use crate::routing::class_of_bucket;
use bytes::Bytes;
use ombak_runtime::Runtime;
use ombak_types::BucketProps;
use ombak_types::names::decode_storage_key;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A class: a home partition, and the n_val of its buckets.
pub type Class = (u32, u32);

/// Maximum number of versions that wait. What finds no room, a later sweep finds again.
const WAITING_MAX: usize = 100_000;
/// The pause of a class after the first round that left something. It doubles up to one of the
/// other constants: to the first of them while all members answer, because what disturbs a round
/// then is soon over, and to the second while a member does not. When that member comes up, all
/// classes try at once.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const DISTURBED_PAUSE_MAX: Duration = Duration::from_secs(8);
const UNANSWERED_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A version whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) digest: u64,
    /// Since when it is due.
    pub(crate) since: Instant,
}

/// How a round has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing of its batch is left.
    Done,
    /// Some versions of its batch stay: a primary lacks them or has something else, another member
    /// holds the key, or a primary did not confirm the removal.
    SomeStay,
    /// It has come to nothing, although all members are up: the ring changes, or somebody is busy.
    Disturbed,
    /// It has come to nothing: a member that is down gave no answer.
    Unanswered,
}

/// The versions of one class. Rounds take them in turns, a *sweep* after the other, so that those
/// that stay do not keep the others waiting.
#[derive(Debug, Default)]
struct Waiting {
    versions: BTreeMap<Bytes, Due>,
    /// Those of which the last round found that a primary lacks them, or has something else.
    lacked: BTreeSet<Bytes>,
    /// The last key that a round of this sweep has taken; `None` at the begin of a sweep.
    taken_to: Option<Bytes>,
    /// Whether some versions of this sweep stay.
    some_stay: bool,
    /// When the next round may begin, and how often rounds have failed.
    pause_until: Option<Instant>,
    failures: u32,
}

/// The tombstones and expired versions that wait for a round.
pub struct DueVersions {
    buckets: Arc<BucketRegistry>,
    runtime: Arc<dyn Runtime>,
    classes: Mutex<BTreeMap<Class, Waiting>>,
    /// What is counted.
    pub counts: ReapingCounts,
    /// Wakes the driver.
    pub work: Notify,
}

impl DueVersions {
    pub(crate) fn new(buckets: Arc<BucketRegistry>, runtime: Arc<dyn Runtime>) -> Self {
        let (classes, counts, work) = (Mutex::default(), ReapingCounts::default(), Notify::new());
        Self { buckets, runtime, classes, counts, work }
    }

    /// Takes a version whose time has come. Returns false if there is no room for it now.
    pub fn offer(&self, partition: u32, key: &[u8], digest: u64) -> bool {
        let key = Bytes::copy_from_slice(key);
        let Ok((bucket, _)) = decode_storage_key(&key) else { return true };
        // A bucket whose type is not known here yet: a later sweep finds the key again.
        let Ok(props) = self.buckets.props(&bucket) else { return true };
        let Some(n) = class_of_bucket(&props) else { return true };
        let mut classes = self.classes.lock();
        if classes.values().map(|waiting| waiting.versions.len()).sum::<usize>() >= WAITING_MAX {
            return false;
        }
        let waiting = classes.entry((partition, n)).or_default();
        let due = Due { digest, since: self.runtime.now() };
        match waiting.versions.get_mut(&key) {
            Some(known) if known.digest == digest => {}
            Some(known) => {
                *known = due;
                waiting.lacked.remove(&key);
            }
            None => drop(waiting.versions.insert(key, due)),
        }
        drop(classes);
        self.work.notify_one();
        true
    }

    /// The properties of the bucket of a storage key; `None` if its type is not known here yet.
    pub(crate) fn props_of(&self, key: &[u8]) -> Option<Arc<BucketProps>> {
        self.buckets.snapshot().props_of_key(key).cloned()
    }

    /// The classes whose next round may begin.
    pub fn ready(&self, now: Instant) -> Vec<Class> {
        let classes = self.classes.lock();
        let is_ready = |waiting: &Waiting| waiting.pause_until.is_none_or(|until| until <= now);
        let ready = classes.iter().filter(|(_, waiting)| !waiting.versions.is_empty() && is_ready(waiting));
        ready.map(|(class, _)| *class).collect()
    }

    /// The next versions of a class that are due since `since_max` at the latest, in the order of
    /// their keys, within the limits of one round.
    pub fn batch(&self, class: Class, since_max: Instant, keys_max: usize, bytes_max: usize) -> Vec<(Bytes, u64)> {
        let mut classes = self.classes.lock();
        let Some(waiting) = classes.get_mut(&class) else { return Vec::new() };
        let from = waiting.taken_to.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut due = waiting.versions.range((from, Bound::Unbounded)).filter(|(_, due)| due.since <= since_max);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let is_last = loop {
            let Some((key, due)) = due.next() else { break true };
            bytes += key.len();
            if batch.len() == keys_max || (bytes > bytes_max && !batch.is_empty()) {
                break false;
            }
            batch.push((key.clone(), due.digest));
        };
        waiting.taken_to = batch.last().filter(|_| !is_last).map(|(key, _)| key.clone());
        batch
    }

    /// Forgets versions: they are removed, or are not what is to be removed any more.
    pub fn forget(&self, class: Class, versions: &[(Bytes, u64)]) {
        let mut classes = self.classes.lock();
        let Some(waiting) = classes.get_mut(&class) else { return };
        for (key, digest) in versions {
            waiting.forget(key, *digest);
        }
        if waiting.versions.is_empty() && waiting.pause_until.is_none() {
            classes.remove(&class);
        }
    }

    /// Forgets a version of some class of a partition: it is gone from here.
    pub(crate) fn withdraw(&self, partition: u32, key: &[u8], digest: u64) {
        let mut classes = self.classes.lock();
        for waiting in classes.range_mut((partition, 0)..=(partition, u32::MAX)).map(|(_, waiting)| waiting) {
            waiting.forget(key, digest);
        }
    }

    /// Notes what the primaries have voted: which versions some of them lack, or have something
    /// else in place of, and which all of them have.
    pub fn voted(&self, class: Class, lacked: &[Bytes], agreed: &[Bytes]) {
        let mut classes = self.classes.lock();
        let Some(waiting) = classes.get_mut(&class) else { return };
        for key in agreed {
            waiting.lacked.remove(key);
        }
        for key in lacked.iter().filter(|key| waiting.versions.contains_key(*key)) {
            waiting.lacked.insert(key.clone());
        }
    }

    /// Forgets a class: this node is none of its primaries.
    pub fn forget_class(&self, class: Class) {
        self.classes.lock().remove(&class);
    }

    /// Forgets everything: this node is alone, and removes what is due by itself.
    pub(crate) fn clear(&self) {
        self.classes.lock().clear();
    }

    /// Notes how a round has ended. A pause follows a round that came to nothing, and a sweep after
    /// which something stays. While rounds or sweeps end so, the pauses grow.
    pub fn ended(&self, class: Class, ending: Ending) {
        let mut classes = self.classes.lock();
        let Some(waiting) = classes.get_mut(&class) else { return };
        waiting.some_stay |= ending == Ending::SomeStay;
        let is_sweep_over = waiting.taken_to.is_none();
        let is_in_vain = matches!(ending, Ending::Disturbed | Ending::Unanswered);
        let needs_pause = is_in_vain || (is_sweep_over && std::mem::take(&mut waiting.some_stay));
        if !needs_pause {
            waiting.pause_until = None;
            waiting.failures = if is_sweep_over { 0 } else { waiting.failures };
            return;
        }
        let pause_max = if ending == Ending::Unanswered { UNANSWERED_PAUSE_MAX } else { DISTURBED_PAUSE_MAX };
        let pause = (PAUSE_MIN * (1 << waiting.failures.min(16))).min(pause_max);
        waiting.failures = waiting.failures.saturating_add(1);
        waiting.pause_until = Some(self.runtime.now() + pause);
    }

    /// Lets every class try at once: a member has come up, or the ring has changed.
    pub fn try_again(&self) {
        let mut classes = self.classes.lock();
        classes.values_mut().for_each(|waiting| (waiting.failures, waiting.pause_until) = (0, None));
    }

    /// Number of versions that wait.
    pub fn count(&self) -> usize {
        self.classes.lock().values().map(|waiting| waiting.versions.len()).sum()
    }

    /// Number of those that a primary lacks, or has something else in place of, as far as a round
    /// has found.
    pub fn lacked_count(&self) -> usize {
        self.classes.lock().values().map(|waiting| waiting.lacked.len()).sum()
    }
}

impl Waiting {
    fn forget(&mut self, key: &[u8], digest: u64) {
        if self.versions.get(key).is_some_and(|due| due.digest == digest) {
            self.versions.remove(key);
            self.lacked.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::BucketRegistry;
    use ombak_runtime::TokioRuntime;
    use ombak_types::Bucket;
    use ombak_types::names::encode_storage_key;

    const CLASS: Class = (0, 3);

    fn due_versions(count: usize) -> (DueVersions, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let fs = Arc::new(ombak_storage::fs::RealFs);
        let buckets = BucketRegistry::open(fs, dir.path(), "node", &ombak_types::PropMap::new()).unwrap();
        let due = DueVersions::new(Arc::new(buckets), Arc::new(TokioRuntime));
        (0..count).for_each(|number| assert!(due.offer(0, &key(number), 1)));
        (due, dir)
    }

    fn key(number: usize) -> Vec<u8> {
        let mut key = Vec::new();
        encode_storage_key(&Bucket::untyped("b"), format!("{number:03}").as_bytes(), &mut key);
        key
    }

    fn batch(due: &DueVersions) -> Vec<(Bytes, u64)> {
        due.batch(CLASS, due.runtime.now(), 10, usize::MAX)
    }

    /// What stays does not keep the rest from its turn, and is tried again after all of it.
    #[test]
    fn rounds_take_turns() {
        let (due, _dir) = due_versions(35);
        for _sweep in 0..3 {
            let mut taken = Vec::new();
            for _round in 0..4 {
                assert_eq!(due.ready(due.runtime.now()), [CLASS], "there is no pause within a sweep");
                let next = batch(&due);
                taken.extend(next);
                due.ended(CLASS, Ending::SomeStay);
            }
            let expected: Vec<_> = (0..35).map(|number| (Bytes::from(key(number)), 1)).collect();
            assert_eq!(taken, expected);
            assert_eq!(due.ready(due.runtime.now()), [] as [Class; 0], "a pause follows the sweep");
            due.try_again();
        }
    }

    #[test]
    fn a_round_that_failed_is_followed_by_a_pause() {
        let (due, _dir) = due_versions(20);
        batch(&due);
        due.ended(CLASS, Ending::Unanswered);
        assert_eq!(due.ready(due.runtime.now()), [] as [Class; 0]);
        due.try_again();
        let second = batch(&due);
        assert_eq!(second[0].0, key(10), "the others have their turn");
        due.forget(CLASS, &second);
        due.ended(CLASS, Ending::Done);
        assert_eq!(due.ready(due.runtime.now()), [CLASS]);
        assert_eq!((batch(&due)[0].0.clone(), due.count()), (Bytes::from(key(0)), 10));
    }

    /// The pauses that follow rounds that end one after the other in the same way.
    fn pauses(ending: Ending) -> Vec<u64> {
        let (due, _dir) = due_versions(1);
        let after = |due: &DueVersions| {
            batch(due);
            let before = due.runtime.now();
            due.ended(CLASS, ending);
            let until = due.classes.lock()[&CLASS].pause_until.unwrap();
            until.duration_since(before).as_secs()
        };
        (0..9).map(|_| after(&due)).collect()
    }

    #[test]
    fn only_a_member_that_is_down_makes_the_pauses_long() {
        assert_eq!(pauses(Ending::Unanswered), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        for ending in [Ending::Disturbed, Ending::SomeStay] {
            assert_eq!(pauses(ending), [1, 2, 4, 8, 8, 8, 8, 8, 8], "{ending:?}");
        }
    }

    #[test]
    fn what_a_primary_lacks_is_counted_until_it_has_it() {
        let (due, _dir) = due_versions(3);
        let keys: Vec<Bytes> = (0..3).map(|number| Bytes::from(key(number))).collect();
        due.voted(CLASS, &keys[..2], &keys[2..]);
        assert_eq!((due.count(), due.lacked_count()), (3, 2));
        due.voted(CLASS, &keys[1..2], &keys[..1]);
        assert_eq!(due.lacked_count(), 1);
        due.voted(CLASS, &[Bytes::from_static(b"another key")], &[]);
        assert_eq!(due.lacked_count(), 1, "it does not wait here");
        due.forget(CLASS, &[(keys[1].clone(), 1)]);
        assert_eq!((due.count(), due.lacked_count()), (2, 0));
        due.voted(CLASS, &keys[..1], &[]);
        assert!(due.offer(0, &key(0), 2), "a later version");
        assert_eq!((due.count(), due.lacked_count()), (2, 0));
    }

    #[test]
    fn a_long_key_travels_alone() {
        let (due, _dir) = due_versions(3);
        let alone = |due: &DueVersions| due.batch(CLASS, due.runtime.now(), 10, 1).len();
        assert_eq!([alone(&due), alone(&due), alone(&due)], [1; 3]);
    }
}
