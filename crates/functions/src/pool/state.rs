//! What waits in each lane, and which threads there are. What happens in a lane happens under its
//! lock.

use super::{LaneCounts, Running, Shared, Work};
use crate::{FunctionError, Lane, PoolConfig};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;

/// A lane, and what is waited for in it. Each lane has a lock of its own: threads of jobs give way
/// to others, and a put whose hook takes the lock of another lane must not wait for them.
#[derive(Default)]
pub(super) struct LaneOfPool {
    pub(super) state: Mutex<LaneState>,
    /// There is work, or sessions have to end, or the pool stops.
    pub(super) work: Condvar,
    /// A thread ended.
    pub(super) ended: Condvar,
}

/// The state of a lane.
#[derive(Default)]
pub(super) struct LaneState {
    pub(super) waiting: VecDeque<Work>,
    /// The threads of the lane, without those that are stuck.
    pub(super) threads: Vec<Arc<Running>>,
    /// How many threads wait for work.
    pub(super) idle: usize,
    /// How many threads have not come back.
    pub(super) stuck: usize,
    /// How many functions were closed.
    pub(super) ends: u64,
    stuck_total: u64,
    refused_total: u64,
    pub(super) late_total: u64,
}

impl LaneState {
    pub(super) fn counts(&self) -> LaneCounts {
        LaneCounts {
            waiting: self.waiting.len(),
            threads: self.threads.len(),
            busy: self.threads.len().saturating_sub(self.idle),
            stuck: self.stuck,
            stuck_total: self.stuck_total,
            refused_total: self.refused_total,
            late_total: self.late_total,
        }
    }

    /// Whether a thread is busy, or soon will be.
    pub(super) fn is_busy(&self) -> bool {
        self.threads.len() > self.idle || !self.waiting.is_empty()
    }

    /// How many threads there may be now, besides those that are stuck.
    fn threads_max(&self, lane: Lane, config: &PoolConfig) -> usize {
        let size = config.threads(lane);
        size.min((size + config.stuck_max).saturating_sub(self.stuck))
    }

    /// Queues work. Returns a thread that the caller has to start.
    pub(super) fn submit(
        &mut self,
        work: Work,
        lane: Lane,
        shared: &Arc<Shared>,
    ) -> Result<Option<Arc<Running>>, FunctionError> {
        let refusal = if self.is_refusing(lane, &shared.config) {
            Some(FunctionError::Refused)
        } else {
            (self.waiting.len() >= shared.config.waiting_max).then_some(FunctionError::Busy)
        };
        if let Some(refusal) = refusal {
            self.refused_total += 1;
            return Err(refusal);
        }
        self.waiting.push_back(work);
        Ok(self.one_more(lane, shared))
    }

    /// Whether all threads that there may be are stuck.
    fn is_refusing(&self, lane: Lane, config: &PoolConfig) -> bool {
        self.threads.is_empty() && self.threads_max(lane, config) == 0
    }

    /// A thread that the caller has to start, if more work waits than threads do.
    pub(super) fn one_more(&mut self, lane: Lane, shared: &Arc<Shared>) -> Option<Arc<Running>> {
        let is_needed = self.waiting.len() > self.idle && self.threads.len() < self.threads_max(lane, &shared.config);
        is_needed.then(|| {
            let running = Arc::new(Running::new(shared.clone()));
            self.threads.push(running.clone());
            running
        })
    }

    /// Gives up the threads that are overdue, and returns them.
    pub(super) fn give_up_stuck(&mut self) -> Vec<Arc<Running>> {
        let stuck: Vec<_> = self.threads.extract_if(.., |thread| thread.is_overdue()).collect();
        for thread in &stuck {
            thread.abandon();
        }
        self.stuck += stuck.len();
        self.stuck_total += stuck.len() as u64;
        stuck
    }

    /// Takes the work that nobody will do, because every thread that there may be is stuck.
    pub(super) fn take_hopeless(&mut self, lane: Lane, config: &PoolConfig) -> VecDeque<Work> {
        if !self.is_refusing(lane, config) {
            return VecDeque::new();
        }
        self.refused_total += self.waiting.len() as u64;
        std::mem::take(&mut self.waiting)
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, running: &Arc<Running>) {
        if running.is_abandoned() {
            self.stuck -= 1;
        } else {
            self.threads.retain(|other| !Arc::ptr_eq(other, running));
        }
    }
}
