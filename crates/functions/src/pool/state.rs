//! What waits in each lane, and which threads there are. What happens in a lane happens under its
//! lock.

use super::queue::{Full, OwnerQueue};
use super::running::Ended;
use super::{LaneCounts, Running, Shared, Work};
use crate::{FunctionError, Lane, PoolConfig};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A lane, and what is waited for in it. Each lane has a lock of its own: threads of jobs give way
/// to others, and a put whose hook takes the lock of another lane must not wait for them.
pub(super) struct LaneOfPool {
    pub(super) state: Mutex<LaneState>,
    /// There is work, or sessions have to end, or the pool stops.
    pub(super) work: Condvar,
    /// A thread ended.
    pub(super) ended: Condvar,
}

impl LaneOfPool {
    pub(super) fn new(lane: Lane, config: &PoolConfig) -> Self {
        let state = LaneState {
            size: config.threads(lane),
            is_of_jobs: lane.is_of_jobs(),
            waiting: OwnerQueue::new(config.waiting_max),
            threads: Vec::new(),
            idle: 0,
            slow: 0,
            ends: 0,
            ended_total: 0,
            displaced_total: 0,
            refused_total: 0,
            late_total: 0,
            died_total: Arc::default(),
        };
        Self { state: Mutex::new(state), work: Condvar::new(), ended: Condvar::new() }
    }
}

/// The state of a lane.
pub(super) struct LaneState {
    /// How many threads there are without slow work, and how much work of one owner runs at most.
    size: usize,
    is_of_jobs: bool,
    pub(super) waiting: OwnerQueue<Work>,
    pub(super) threads: Vec<Arc<Running>>,
    /// How many threads wait for work.
    pub(super) idle: usize,
    /// How many threads had slow work when the watcher looked last.
    slow: usize,
    /// How many functions were closed.
    pub(super) ends: u64,
    ended_total: u64,
    displaced_total: u64,
    refused_total: u64,
    pub(super) late_total: u64,
    /// The threads count as well.
    died_total: Arc<AtomicU64>,
}

impl LaneState {
    pub(super) fn counts(&self) -> LaneCounts {
        LaneCounts {
            waiting: self.waiting.len(),
            threads: self.threads.len(),
            busy: self.threads.len().saturating_sub(self.idle),
            slow: self.slow,
            ended_total: self.ended_total,
            displaced_total: self.displaced_total,
            refused_total: self.refused_total,
            late_total: self.late_total,
            died_total: self.died_total.load(Ordering::Relaxed),
        }
    }

    /// Whether the watcher has to look at this lane again: a thread is busy or soon will be, or
    /// there was slow work when it looked last.
    pub(super) fn is_busy(&self) -> bool {
        self.threads.len() > self.idle || self.waiting.len() > 0 || self.slow > 0
    }

    /// How many threads there may be now. Slow work has places of its own, up to a bound.
    fn threads_max(&self, config: &PoolConfig) -> usize {
        self.size + self.slow.min(config.slow_max)
    }

    /// Whether there are more threads than there may be.
    pub(super) fn has_surplus(&self, config: &PoolConfig) -> bool {
        self.threads.len() > self.threads_max(config)
    }

    /// Queues work. Returns a thread that the caller has to start, and work that has lost its
    /// place.
    pub(super) fn submit(
        &mut self,
        work: Work,
        shared: &Arc<Shared>,
    ) -> Result<(Option<Arc<Running>>, Option<Work>), FunctionError> {
        let owner = work.owner.clone();
        let displaced = self.waiting.push(&owner, work);
        if !matches!(displaced, Ok(None)) {
            self.refused_total += 1;
        }
        match displaced {
            Ok(displaced) => Ok((self.one_more(shared), displaced)),
            Err(Full) => Err(FunctionError::Busy),
        }
    }

    /// Whether there is work that may begin.
    pub(super) fn has_work(&self) -> bool {
        self.waiting.has_next(self.size)
    }

    /// Takes the work that is next.
    pub(super) fn next(&mut self) -> Option<Work> {
        self.waiting.pop(self.size)
    }

    /// A thread that the caller has to start, if more work waits than threads do.
    pub(super) fn one_more(&mut self, shared: &Arc<Shared>) -> Option<Arc<Running>> {
        let is_needed = self.waiting.len() > self.idle
            && self.threads.len() < self.threads_max(&shared.config)
            && self.waiting.has_next(self.size);
        is_needed.then(|| {
            let running = Arc::new(Running::new(shared.clone(), self.died_total.clone()));
            self.threads.push(running.clone());
            running
        })
    }

    /// Ends calls that are overdue, lets slow ones give way, and makes room for those who wait.
    /// Returns threads that the caller has to start.
    pub(super) fn watch(&mut self, shared: &Arc<Shared>, at: Instant) -> Vec<Arc<Running>> {
        let config = &shared.config;
        let overdue = self.threads.iter().filter(|thread| thread.end_overdue(at, config.overdue_max)).count();
        self.ended_total += overdue as u64;
        let works: Vec<_> = self.threads.iter().filter_map(|thread| Some((thread.clone(), thread.seen(at)?))).collect();
        let slow: Vec<_> = works.iter().filter(|(_, seen)| seen.age >= config.slow_after).collect();
        self.slow = slow.len();
        if !self.is_of_jobs {
            let long = slow.iter().filter(|(_, seen)| seen.age >= config.gives_way_after);
            long.for_each(|(thread, _)| thread.let_give_way());
        }
        let more: Vec<_> = std::iter::from_fn(|| self.one_more(shared)).collect();
        // With all places taken, the oldest work of the owner who has most of it ends.
        let makes_room = self.idle > 0 || !more.is_empty() || works.iter().any(|(_, seen)| seen.is_ending);
        let is_waited_for = !makes_room && self.waiting.has_newcomer();
        if is_waited_for && self.threads.len() >= self.size + config.slow_max {
            let long = slow.iter().filter(|(_, seen)| seen.age >= config.displaced_after);
            let longest = long.max_by_key(|(_, seen)| (self.waiting.running(&seen.owner), seen.age));
            if let Some((thread, _)) = longest {
                self.displaced_total += 1;
                thread.end_process(Ended::Displaced);
            }
        }
        more
    }

    /// A thread has ended.
    pub(super) fn ended(&mut self, running: &Arc<Running>) {
        self.threads.retain(|other| !Arc::ptr_eq(other, running));
    }
}
