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

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
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
