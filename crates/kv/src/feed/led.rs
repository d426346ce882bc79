//! A consumer that one thread at a time leads, and what others need to know of it meanwhile.

use super::follower::Follower;
use super::store_of_partition::StoreOfPartition;
use crate::buckets::BucketRegistry;
use crate::hooks::{ChangeConsumer, ValueKind};
use crate::partition::PartitionTable;
use ombak_runtime::Runtime;
use ombak_types::Error;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::warn;

/// How long a turn takes if there is enough to tell. Then the places are kept, and other consumers
/// have their turns.
const TURN_MAX: Duration = Duration::from_millis(500);
/// The time between the beginnings of two turns, if there is not much to tell.
const TURN_INTERVAL: Duration = Duration::from_millis(200);

/// What consumers are led along.
pub(super) struct Followed {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) partitions: Arc<PartitionTable>,
    pub(super) buckets: Arc<BucketRegistry>,
    pub(super) kinds: Vec<Arc<dyn ValueKind>>,
    /// Set when the node stops.
    pub(super) stops: Arc<AtomicBool>,
}

/// A consumer; see the module.
pub(super) struct Led {
    /// A number that no other consumer has had since the start.
    pub(super) number: u64,
    consumer: Arc<dyn ChangeConsumer>,
    place: Mutex<Place>,
    /// The seqs of its places when it last kept them.
    kept_seqs: Mutex<BTreeMap<u32, u64>>,
    /// When its last turn began.
    begun: Mutex<Option<Instant>>,
    /// Whether a thread leads it, or will.
    is_taken: AtomicBool,
    /// Whether it is no consumer any more.
    is_dropped: AtomicBool,
}

struct Place {
    follower: Follower,
    /// The partition with which its next turn begins.
    next: u32,
}

impl Led {
    pub(super) fn new(number: u64, consumer: Arc<dyn ChangeConsumer>, follower: Follower) -> Self {
        let kept_seqs = Mutex::new(follower.seqs());
        let place = Mutex::new(Place { follower, next: 0 });
        let (begun, is_taken, is_dropped) = (Mutex::default(), AtomicBool::new(false), AtomicBool::new(false));
        Self { number, consumer, place, kept_seqs, begun, is_taken, is_dropped }
    }

    pub(super) fn is_of(&self, consumer: &Arc<dyn ChangeConsumer>) -> bool {
        Arc::ptr_eq(&self.consumer, consumer)
    }

    /// Takes it for a turn. `None` if somebody else has, or if its last turn began a short time
    /// ago.
    pub(super) fn take(self: &Arc<Self>, now: Instant) -> Option<Taken> {
        let is_due = self.begun.lock().is_none_or(|begun| now.saturating_duration_since(begun) >= TURN_INTERVAL);
        (is_due && !self.is_taken.swap(true, Ordering::SeqCst)).then(|| Taken(Arc::clone(self)))
    }

    /// It is no consumer any more: a turn that is under way ends early.
    pub(super) fn drop_it(&self) {
        self.is_dropped.store(true, Ordering::SeqCst);
    }

    /// The append after which the store of a partition keeps removals for the consumer, which may
    /// not lag without bound. Appends of this run have numbers from `first_seq` to `last_seq`.
    pub(super) fn needs_after(&self, partition: u32, first_seq: u64, last_seq: u64) -> u64 {
        let kept = self.kept_seqs.lock().get(&partition).copied().unwrap_or(0);
        kept.max(lag_bound(first_seq, last_seq, self.consumer.lag_max()))
    }
}

/// The place of a consumer that is `lag_max` appends behind; 0 if that lies before this run. Each
/// start skips many numbers, so a difference between numbers of two runs says nothing about the
/// appends between them.
fn lag_bound(first_seq: u64, last_seq: u64, lag_max: u64) -> u64 {
    let bound = last_seq.saturating_sub(lag_max);
    if bound < first_seq { 0 } else { bound }
}

/// A consumer that was taken for a turn. It is free again when this is dropped.
pub(super) struct Taken(Arc<Led>);

impl Taken {
    /// Leads it along the partitions, from the one at which its last turn ended. Returns whether
    /// there is more to tell already.
    pub(super) fn turn(&self, followed: &Followed) -> bool {
        let led = &*self.0;
        let is_ending = || followed.stops.load(Ordering::Relaxed) || led.is_dropped.load(Ordering::Relaxed);
        let mut place = led.place.lock();
        let Place { follower, next } = &mut *place;
        follower.keep_open(|number| followed.partitions.get(number).is_some());
        let begun = followed.runtime.now();
        *led.begun.lock() = Some(begun);
        let ends_at = begun + TURN_MAX;
        let is_over = || is_ending() || followed.runtime.now() >= ends_at;
        let numbers = followed.partitions.all_open().map(|partition| partition.number());
        let (before, from): (Vec<u32>, Vec<u32>) = numbers.partition(|number| number < next);
        let mut has_more = false;
        *next = 0;
        for number in from.into_iter().chain(before) {
            if is_over() {
                (*next, has_more) = (number, true);
                break;
            }
            // It is not held longer than its part of the turn takes: it may be closed.
            let Some(partition) = followed.partitions.get(number) else { continue };
            let now = followed.runtime.now();
            let store = StoreOfPartition::new(&partition, followed);
            has_more |= follower.follow((&partition, &store), now, &is_over);
        }
        match follower.keep() {
            Ok(()) => *led.kept_seqs.lock() = follower.seqs(),
            Err(Error::Stopping) => {}
            Err(error) => warn!(%error, "a consumer of changes may get some again"),
        }
        has_more && !is_ending()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.is_taken.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::places::Places;
    use crate::hooks::{Anew, FollowedStore};
    use ombak_storage::Change;

    struct Named;

    impl ChangeConsumer for Named {
        fn name(&self) -> &str {
            "named"
        }

        fn begin_anew(&self, _: &dyn FollowedStore, _: Anew) -> Result<(), Error> {
            Ok(())
        }

        fn apply(&self, _: &dyn FollowedStore, _: &[Change]) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn a_consumer_is_taken_by_one_thread_and_200_ms_after_its_last_turn_began() {
        let consumer = Arc::new(Named);
        let follower = Follower::new(consumer.clone(), Places::Consumer(BTreeMap::new()));
        let led = Arc::new(Led::new(1, consumer, follower));
        let now = Instant::now();
        let taken = led.take(now).expect("it has had no turn");
        assert!(led.take(now).is_none(), "another thread has it");
        *led.begun.lock() = Some(now);
        drop(taken);
        assert!(led.take(now + TURN_INTERVAL / 2).is_none(), "its last turn began a short time ago");
        assert!(led.take(now + TURN_INTERVAL).is_some());
    }

    #[test]
    fn numbers_that_a_start_skips_are_no_lag() {
        assert_eq!(lag_bound(1, 90, 100), 0);
        assert_eq!(lag_bound(1, 190, 100), 90);
        let first = 1 << 26;
        assert_eq!(lag_bound(first, 500, 100), 0, "nothing was appended in this run");
        assert_eq!(lag_bound(first, first + 99, 100), 0);
        assert_eq!(lag_bound(first, first + 100, 100), first);
        assert_eq!(lag_bound(first, first + 250, 100), first + 150);
    }
}
