//! Snapshots of stores that wait for their clients, and give way to other work.
//!
//! A store has a bounded number of snapshots, and a query has one of each store. Queries whose
//! clients do not read would keep all of them for as long as their connections live.

use ombak_storage::{Snapshot, StorageError};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Work that can give its snapshots back while it waits, and go on with new ones.
pub(crate) trait SnapshotHolder: Send + Sync {
    /// Gives all snapshots back, unless the holder reads them at this moment. Returns whether there
    /// were any. Never waits.
    fn give_back(&self) -> bool;
}

/// The holders that wait, in the order in which they began to.
#[derive(Default)]
pub(crate) struct WaitingHolders {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<u64, Weak<dyn SnapshotHolder>>,
    last: u64,
}

impl WaitingHolders {
    /// Notes that a holder waits from now on. It stays known until the result is dropped.
    pub(crate) fn wait(self: &Arc<Self>, holder: Weak<dyn SnapshotHolder>) -> Waiting {
        let mut state = self.state.lock();
        state.last += 1;
        let place = state.last;
        state.waiting.insert(place, holder);
        Waiting { holders: self.clone(), place }
    }

    /// Makes a snapshot. While the store has too many, holders that wait give theirs back, the one
    /// that has waited for the longest time first.
    pub(crate) fn make(
        &self,
        snapshot: impl Fn() -> Result<Box<dyn Snapshot>, StorageError>,
    ) -> Result<Box<dyn Snapshot>, StorageError> {
        loop {
            match snapshot() {
                Err(StorageError::Busy(_)) if self.reclaim() => {}
                made => return made,
            }
        }
    }

    /// Lets a holder give its snapshots back; false if no holder that waits has any. A holder that
    /// was asked is not asked again before it has waited anew, so the calls come to an end.
    fn reclaim(&self) -> bool {
        loop {
            let Some((_, holder)) = self.state.lock().waiting.pop_first() else { return false };
            if holder.upgrade().is_some_and(|holder| holder.give_back()) {
                return true;
            }
        }
    }
}

/// The place of a holder among those that wait.
pub(crate) struct Waiting {
    holders: Arc<WaitingHolders>,
    place: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.holders.state.lock().waiting.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A holder of some snapshots. While it reads them, it gives none back.
    struct Holder {
        snapshots: AtomicUsize,
        is_reading: bool,
    }

    impl SnapshotHolder for Holder {
        fn give_back(&self) -> bool {
            !self.is_reading && self.snapshots.swap(0, Ordering::SeqCst) > 0
        }
    }

    fn holder(is_reading: bool) -> Arc<Holder> {
        Arc::new(Holder { snapshots: AtomicUsize::new(1), is_reading })
    }

    /// Tries to make a snapshot of a store that is busy as long as these holders have as many.
    fn make(holders: &WaitingHolders, all: &[Arc<Holder>], busy_from: usize) -> StorageError {
        let made = holders.make(|| {
            let held: usize = all.iter().map(|holder| holder.snapshots.load(Ordering::SeqCst)).sum();
            // No store is at hand, so another error stands for a snapshot.
            Err(if held >= busy_from { StorageError::Busy("full".into()) } else { StorageError::Closed })
        });
        made.err().expect("always an error")
    }

    #[test]
    fn who_has_waited_longest_gives_way_first_and_who_reads_does_not() {
        let holders = Arc::<WaitingHolders>::default();
        let all = [holder(true), holder(false), holder(false), holder(false)];
        let wait = |holder: &Arc<Holder>| {
            let holder: Weak<Holder> = Arc::downgrade(holder);
            holders.wait(holder)
        };
        let mut waiting: Vec<Waiting> = all.iter().map(wait).collect();
        assert!(matches!(make(&holders, &all, 4), StorageError::Closed));
        let left = || all.iter().map(|holder| holder.snapshots.load(Ordering::SeqCst)).collect::<Vec<_>>();
        assert_eq!(left(), [1, 0, 1, 1]);
        // The third waits no more.
        drop(waiting.remove(2));
        assert!(matches!(make(&holders, &all, 3), StorageError::Closed));
        assert_eq!(left(), [1, 0, 1, 0]);
        assert!(matches!(make(&holders, &all, 1), StorageError::Busy(_)), "nobody is left who could give way");
    }
}
