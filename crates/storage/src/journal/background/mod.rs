//! Background work in bounded slices: syncs at an interval, hint files, checkpoints, sweeps,
//! merges.
//!
//! [`BackgroundWork`] is the state under the lock of background work. Everything that must not run
//! beside a merge or a checkpoint takes this lock.

mod appended;
mod merges;
mod space;
mod sweeps;

pub(crate) use merges::MergeScheduler;
pub(crate) use space::RoomRetry;

use super::index::{Compacted, KeyIndex, OrderedIndex};
use super::policy::JournalPolicy;
use super::store::{Core, ORDERED_INDEX_SLICE};
use crate::backend::LastMerge;
use crate::error::StorageError;
use std::sync::atomic::Ordering;
use sweeps::Sweeps;

/// The most files that one slice completes, because each may need a sync.
const SEALS_PER_SLICE: usize = 4;
/// The most slices of work that one writer does for an index that is behind.
const CATCH_UP_SLICES_MAX: usize = 4;

/// The state under the lock of background work.
pub(super) struct BackgroundWork {
    pub(super) merges: MergeScheduler,
    /// Appended bytes for which merges have earned budget.
    accounted_bytes: u64,
    /// When a log is next removed early because the disk is full.
    log_room: RoomRetry,
    sweeps: Sweeps,
}

impl BackgroundWork {
    pub(super) fn new(partition: u32) -> Self {
        Self {
            merges: MergeScheduler::new(partition),
            accounted_bytes: 0,
            log_room: RoomRetry::default(),
            sweeps: Sweeps::default(),
        }
    }
}

impl<P: JournalPolicy> Core<P> {
    /// Does one slice of background work.
    pub(super) fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.now_secs.store(now_secs, Ordering::Relaxed);
        self.expire_views(now_secs);
        self.check_space(now_secs);
        self.sync_if_due(self.shared.fs.machine().now())?;
        let Some(mut background) = self.background.try_lock() else { return Ok(()) };
        if self.check_writable().is_err() {
            // The store is closed or poisoned: nothing is due, and the status has the reason.
            return Ok(());
        }
        self.account_appends(&mut background.accounted_bytes);
        self.seal_closed_files(SEALS_PER_SLICE)?;
        self.purge_replaced(&mut background.merges)?;
        self.sync_new_file()?;
        self.renew_inventory_if_due();
        let wants_checkpoint = P::wants_checkpoint(self, &mut background.log_room, now_secs);
        if self.scrub.take_wanted_checkpoint() || wants_checkpoint {
            self.settle_and_checkpoint(&mut background)?;
        }
        self.do_index_work()?;
        self.sweep_expired(&mut background.sweeps, now_secs)?;
        // A head that cannot be read must not delay merges.
        let ordered = if self.index.wants_ordered_index() {
            self.build_ordered_index(ORDERED_INDEX_SLICE).map(drop)
        } else {
            Ok(())
        };
        let appended_bytes = background.accounted_bytes;
        self.merge_some(&mut background.merges, appended_bytes, now_secs).and(ordered)
    }

    /// Does the work that an index needs before it may take more writes. Waiting writers do it one
    /// at a time.
    pub(super) fn catch_up(&self) -> Result<(), StorageError> {
        let mut background = self.background.lock();
        self.check_writable()?;
        for _ in 0..CATCH_UP_SLICES_MAX {
            if !P::is_behind(&self.index) {
                break;
            }
            if P::index_wants_checkpoint(&self.index) {
                self.settle_and_checkpoint(&mut background)?;
            }
            self.do_index_work()?;
        }
        Ok(())
    }

    /// Takes a checkpoint of the index while a merge may be under way.
    pub(super) fn settle_and_checkpoint(&self, background: &mut BackgroundWork) -> Result<(), StorageError> {
        P::settle_merges(self, &mut background.merges);
        self.checkpoint()
    }

    fn do_index_work(&self) -> Result<(), StorageError> {
        if let Some(Compacted { bytes_before, bytes_after }) = self.index.do_background_work()? {
            let ended_at_secs = self.now_secs.load(Ordering::Relaxed);
            *self.counters.last_merge.lock() = Some(LastMerge { ended_at_secs, bytes_before, bytes_after });
            self.counters.merges.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
