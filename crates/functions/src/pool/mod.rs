//! Threads that run functions, each in a process of its own: `queue` says whose work is next,
//! `state` what waits and runs, `worker` is one thread, `sessions` its process, and `watch` ends
//! what does not end by itself.

mod figures;
mod queue;
mod running;
mod sessions;
mod state;
mod watch;
mod worker;

pub(crate) use running::Running;
pub(crate) use sessions::{NoAnswer, Sessions, of_script};

use crate::function::Opened;
use crate::{Calls, Function, FunctionError, Lane, Owner, PoolConfig, WorkerProgram};
use ombak_runtime::Runtime;
use ombak_script::Program;
use ombak_stats::Feature;
use state::LaneOfPool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracing::error;
use watch::Watcher;

/// The stack of a thread, in bytes. It reads what functions give, which nests to a bounded depth.
const STACK_BYTES: usize = 2 << 20;
/// How long the threads of a lane may take to end their processes.
const STOP_TIME_MAX: Duration = Duration::from_secs(1);

/// Work with a function.
pub(crate) struct Work {
    pub(crate) function: Arc<Opened>,
    pub(crate) owner: Owner,
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
    /// How many threads there are.
    pub threads: usize,
    /// How many of them run a function.
    pub busy: usize,
    /// How many of these had run for long when that was looked at last.
    pub slow: usize,
    /// How often a process was ended since the start, because a call did not end in its time.
    pub ended_total: u64,
    /// How often a call that ran for long was ended since the start, because others waited.
    pub displaced_total: u64,
    /// How often a process ended by itself since the start.
    pub died_total: u64,
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
    program: Arc<WorkerProgram>,
    lanes: [LaneOfPool; Lane::ALL.len()],
    watcher: Watcher,
    /// Set before the lock of a lane is taken to end it.
    is_stopping: AtomicBool,
}

impl FunctionPool {
    /// Creates a pool whose functions run in processes of this program. Only the thread that
    /// watches the others begins at once.
    pub fn new(runtime: Arc<dyn Runtime>, config: PoolConfig, program: WorkerProgram) -> Self {
        let shared = Arc::new(Shared {
            lanes: Lane::ALL.map(|lane| LaneOfPool::new(lane, &config)),
            config,
            runtime,
            program: Arc::new(program),
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

    /// How many sessions the threads of a lane keep.
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
    pub fn stop(&self) {
        self.shared.close();
        for lane in &self.shared.lanes {
            let mut state = lane.state.lock();
            let ends_at = Instant::now() + STOP_TIME_MAX;
            while !state.threads.is_empty() {
                if lane.ended.wait_until(&mut state, ends_at).timed_out() {
                    return;
                }
            }
        }
    }

    pub(crate) fn submit(&self, work: Work) -> Result<(), FunctionError> {
        let lane = work.function.lane;
        let (started, displaced) = {
            let mut state = self.shared.lane(lane).state.lock();
            if self.shared.is_stopping() {
                return Err(FunctionError::Stopped);
            }
            let (started, displaced) = state.submit(work, &self.shared)?;
            if started.is_none() {
                self.shared.lane(lane).work.notify_one();
            }
            (started, displaced)
        };
        self.shared.wake_watcher();
        if let Some(work) = displaced {
            (work.fail)(FunctionError::Busy);
        }
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
            .stack_size(STACK_BYTES)
            .spawn(move || worker::work(&shared, lane, &thread));
        let Err(why) = started else { return };
        error!(lane = lane.name(), error = %why, "no thread for functions could be started");
        let unserved = {
            let mut state = self.lane(lane).state.lock();
            state.threads.retain(|other| !Arc::ptr_eq(other, &running));
            if state.threads.is_empty() { state.waiting.take_all() } else { Vec::new() }
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
                state.threads.iter().for_each(|thread| thread.end_process(running::Ended::Stopped));
                state.waiting.take_all()
            };
            for work in unserved {
                (work.fail)(FunctionError::Stopped);
            }
        }
        self.end_watcher();
    }
}
