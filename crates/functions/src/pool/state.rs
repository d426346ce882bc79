//! What waits in each lane, and which threads there are. Everything here happens under one lock.

use super::{LaneCounts, Running, Shared, Work};
use crate::{FunctionError, Lane, PoolConfig};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The state of a pool.
pub(super) struct State {
    pub(super) lanes: [LaneState; Lane::ALL.len()],
    /// Whether the pool takes work.
    pub(super) is_open: bool,
    /// The thread that finds stuck threads, once there was work.
    pub(super) watcher: Option<Watcher>,
}

/// The thread that finds stuck threads.
pub(super) struct Watcher {
    /// Kept so that the thread has an owner; it ends with the pool.
    pub(super) _thread: JoinHandle<()>,
    /// Whether it waits to be woken.
    pub(super) is_asleep: bool,
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

impl State {
    pub(super) fn lane(&self, lane: Lane) -> &LaneState {
        &self.lanes[lane as usize]
    }

    pub(super) fn lane_mut(&mut self, lane: Lane) -> &mut LaneState {
        &mut self.lanes[lane as usize]
    }
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

    /// Whether a thread may be busy.
    pub(super) fn is_busy(&self) -> bool {
        self.threads.len() > self.idle
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
