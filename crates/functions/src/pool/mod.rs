//! Threads that run functions: `state` says what waits and who runs, `worker` is one thread,
//! `sessions` what it keeps, and `watch` finds threads that do not come back.

mod figures;
mod running;
mod sessions;
mod state;
mod watch;
mod worker;

pub(crate) use running::Running;

use crate::function::Opened;
use crate::{Calls, Function, FunctionError, Lane, PoolConfig};
use ombak_runtime::Runtime;
use ombak_script::Program;
use ombak_stats::Feature;
use parking_lot::{Condvar, Mutex};
use state::{LaneState, State};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use tracing::error;

/// Work with a function.
pub(crate) struct Work {
    pub(crate) function: Arc<Opened>,
    pub(crate) deadline: Instant,
    /// Whether the caller has gone.
    pub(crate) is_unwanted: Box<dyn Fn() -> bool + Send>,
    pub(crate) run: Box<dyn FnOnce(&mut Calls<'_>) + Send>,
    /// Learns why the work was not done.
    pub(crate) fail: Arc<dyn Fn(FunctionError) + Send + Sync>,
}

/// How a lane is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// How much work waits.
    pub waiting: usize,
    /// How many threads there are, without those that are stuck.
    pub threads: usize,
    /// How many of them run a function.
    pub busy: usize,
    /// How many threads have not come back from a function.
    pub stuck: usize,
    /// How often a thread did not come back in time since the start.
    pub stuck_total: u64,
    /// How much work was refused since the start.
    pub refused_total: u64,
    /// How much work was not begun since the start, because its deadline had passed.
    pub late_total: u64,
}

/// Threads for functions. Its clones are the same pool. When the last clone and the last
/// [`Function`] are dropped, the threads end.
#[derive(Clone)]
pub struct FunctionPool {
    shared: Arc<Shared>,
    _users: Arc<Users>,
}

/// Stops the pool when nobody uses it.
struct Users(Arc<Shared>);

impl Drop for Users {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the threads of a pool share.
struct Shared {
    config: PoolConfig,
    runtime: Arc<dyn Runtime>,
    /// The time from which the pool measures.
    began: Instant,
    state: Mutex<State>,
    /// One for each lane: there is work, or sessions have to end, or the pool stops.
    work: [Condvar; Lane::ALL.len()],
    /// A thread ended.
    ended: Condvar,
    /// The watcher has something to watch.
    watch: Condvar,
    is_stopping: AtomicBool,
}

impl FunctionPool {
    /// Creates a pool. It starts its threads when there is work for them.
    pub fn new(runtime: Arc<dyn Runtime>, config: PoolConfig) -> Self {
        let state = State { lanes: Lane::ALL.map(|_| LaneState::default()), is_open: true, watcher: None };
        let shared = Arc::new(Shared {
            config,
            began: runtime.now(),
            runtime,
            state: Mutex::new(state),
            work: Lane::ALL.map(|_| Condvar::new()),
            ended: Condvar::new(),
            watch: Condvar::new(),
            is_stopping: AtomicBool::new(false),
        });
        Self { _users: Arc::new(Users(shared.clone())), shared }
    }

    /// Opens a program for one owner. It costs nothing until it is run; then each thread that runs
    /// it opens a session.
    pub fn open(&self, lane: Lane, program: Program) -> Function {
        Function::new(self.clone(), lane, program)
    }

    /// How a lane is doing.
    pub fn counts(&self, lane: Lane) -> LaneCounts {
        self.shared.state.lock().lane(lane).counts()
    }

    /// How many sessions the threads of a lane keep, without those that are stuck.
    pub fn open_sessions(&self, lane: Lane) -> usize {
        self.shared.state.lock().lane(lane).threads.iter().map(|thread| thread.sessions()).sum()
    }

    /// The counts of all lanes, for the statistics of the node.
    pub fn feature(&self) -> Arc<dyn Feature> {
        Arc::new(figures::PoolFigures(self.shared.clone()))
    }

    /// The bounds of the pool.
    pub fn config(&self) -> &PoolConfig {
        &self.shared.config
    }

    /// The world that the pool lives in.
    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &*self.shared.runtime
    }

    /// Ends the functions that run, refuses further work, and waits until the threads have ended.
    /// It does not wait for threads that do not come back.
    pub fn stop(&self) {
        self.shared.close();
        let ends_at = Instant::now() + self.shared.config.overdue_max;
        let mut state = self.shared.state.lock();
        while state.lanes.iter().any(|lane| !lane.threads.is_empty()) {
            if self.shared.ended.wait_until(&mut state, ends_at).timed_out() {
                return;
            }
        }
    }

    pub(crate) fn submit(&self, work: Work) -> Result<(), FunctionError> {
        let lane = work.function.lane;
        let started = {
            let mut state = self.shared.state.lock();
            if !state.is_open {
                return Err(FunctionError::Stopped);
            }
            let started = state.lane_mut(lane).submit(work, lane, &self.shared)?;
            if started.is_none() {
                self.shared.work[lane as usize].notify_one();
            }
            self.shared.wake_watcher(&mut state);
            started
        };
        if let Some(running) = started {
            self.shared.start_thread(lane, running);
        }
        Ok(())
    }

    /// Lets threads look for sessions whose function is no longer open.
    pub(crate) fn end_sessions(&self, lane: Lane) {
        let mut state = self.shared.state.lock();
        state.lane_mut(lane).ends += 1;
        self.shared.work[lane as usize].notify_all();
    }
}

impl Shared {
    fn start_thread(self: &Arc<Self>, lane: Lane, running: Arc<Running>) {
        let (shared, thread) = (self.clone(), running.clone());
        let started = thread::Builder::new()
            .name(format!("function-{}", lane.name()))
            .stack_size(self.config.limits.thread_stack_bytes())
            .spawn(move || worker::work(&shared, lane, &thread));
        let Err(why) = started else { return };
        error!(lane = lane.name(), error = %why, "no thread for functions could be started");
        let unserved = {
            let mut state = self.state.lock();
            let lane = state.lane_mut(lane);
            lane.threads.retain(|other| !Arc::ptr_eq(other, &running));
            if lane.threads.is_empty() { std::mem::take(&mut lane.waiting) } else { Default::default() }
        };
        for work in unserved {
            (work.fail)(FunctionError::NoThread(why.to_string()));
        }
    }

    /// Ends what runs, and what waits.
    fn close(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let unserved: Vec<Work> = {
            let mut state = self.state.lock();
            state.is_open = false;
            self.work.iter().for_each(|lane| {
                lane.notify_all();
            });
            self.watch.notify_all();
            state.lanes.iter_mut().flat_map(|lane| std::mem::take(&mut lane.waiting)).collect()
        };
        for work in unserved {
            (work.fail)(FunctionError::Stopped);
        }
    }
}
