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
use state::LaneOfPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;
use tracing::error;
use watch::Watcher;

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
    lanes: [LaneOfPool; Lane::ALL.len()],
    watcher: Watcher,
    /// Set before the lock of a lane is taken to end it.
    is_stopping: AtomicBool,
}

impl FunctionPool {
    /// Creates a pool. Only the thread that watches the others begins at once.
    pub fn new(runtime: Arc<dyn Runtime>, config: PoolConfig) -> Self {
        let shared = Arc::new(Shared {
            config,
            began: runtime.now(),
            runtime,
            lanes: Lane::ALL.map(|_| LaneOfPool::default()),
            watcher: Watcher::default(),
            is_stopping: AtomicBool::new(false),
        });
        shared.begin_watcher();
        Self { _users: Arc::new(Users(shared.clone())), shared }
    }

    /// Opens a program for one owner. It costs nothing until it is run; then each thread that runs
    /// it opens a session.
    pub fn open(&self, lane: Lane, program: Program) -> Function {
        Function::new(self.clone(), lane, program)
    }

    /// How a lane is doing.
    pub fn counts(&self, lane: Lane) -> LaneCounts {
        self.shared.lane(lane).state.lock().counts()
    }

    /// How many sessions the threads of a lane keep, without those that are stuck.
    pub fn open_sessions(&self, lane: Lane) -> usize {
        self.shared.lane(lane).state.lock().threads.iter().map(|thread| thread.sessions()).sum()
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
        for lane in &self.shared.lanes {
            let mut state = lane.state.lock();
            while !state.threads.is_empty() {
                if lane.ended.wait_until(&mut state, ends_at).timed_out() {
                    return;
                }
            }
        }
    }

    pub(crate) fn submit(&self, work: Work) -> Result<(), FunctionError> {
        let lane = work.function.lane;
        let started = {
            let mut state = self.shared.lane(lane).state.lock();
            if self.shared.is_stopping() {
                return Err(FunctionError::Stopped);
            }
            let started = state.submit(work, lane, &self.shared)?;
            if started.is_none() {
                self.shared.lane(lane).work.notify_one();
            }
            started
        };
        self.shared.wake_watcher();
        if let Some(running) = started {
            self.shared.start_thread(lane, running);
        }
        Ok(())
    }

    /// Lets threads look for sessions whose function is no longer open.
    pub(crate) fn end_sessions(&self, lane: Lane) {
        let lane = self.shared.lane(lane);
        lane.state.lock().ends += 1;
        lane.work.notify_all();
    }
}

impl Shared {
    const fn lane(&self, lane: Lane) -> &LaneOfPool {
        &self.lanes[lane as usize]
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn start_thread(self: &Arc<Self>, lane: Lane, running: Arc<Running>) {
        let (shared, thread) = (self.clone(), running.clone());
        let started = thread::Builder::new()
            .name(format!("function-{}", lane.name()))
            .stack_size(self.config.limits.thread_stack_bytes())
            .spawn(move || worker::work(&shared, lane, &thread));
        let Err(why) = started else { return };
        error!(lane = lane.name(), error = %why, "no thread for functions could be started");
        let unserved = {
            let mut state = self.lane(lane).state.lock();
            state.threads.retain(|other| !Arc::ptr_eq(other, &running));
            if state.threads.is_empty() { std::mem::take(&mut state.waiting) } else { Default::default() }
        };
        for work in unserved {
            (work.fail)(FunctionError::NoThread(why.to_string()));
        }
    }

    /// Ends what runs, and what waits.
    fn close(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        for lane in &self.lanes {
            let unserved = {
                let mut state = lane.state.lock();
                lane.work.notify_all();
                std::mem::take(&mut state.waiting)
            };
            for work in unserved {
                (work.fail)(FunctionError::Stopped);
            }
        }
        self.end_watcher();
    }
}
