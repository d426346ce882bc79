//! Finds threads that do not come back from a function.

use super::Shared;
use crate::{FunctionError, Lane};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tracing::{error, warn};

/// The watcher needs no stack of an engine.
const STACK_BYTES: usize = 256 << 10;

/// The thread that finds stuck threads. It sleeps while there is no work. It begins with the pool,
/// because a thread that gives way may bring the first work, and threads inherit that.
#[derive(Default)]
pub(super) struct Watcher {
    has_begun: Mutex<bool>,
    wake: Condvar,
    /// Whether it looks at the lanes without being woken. Set before its lock is taken, so that
    /// work which comes while it is awake takes no lock.
    is_awake: AtomicBool,
}

impl Shared {
    /// Lets the watcher look from now on. Called when there is work.
    pub(super) fn wake_watcher(self: &Arc<Self>) {
        if !self.watcher.is_awake.swap(true, Ordering::SeqCst) {
            self.begin_watcher();
            self.watcher.wake.notify_one();
        }
    }

    /// Starts the watcher, unless it has begun.
    pub(super) fn begin_watcher(self: &Arc<Self>) {
        let mut has_begun = self.watcher.has_begun.lock();
        if *has_begun {
            return;
        }
        let shared = self.clone();
        let started = thread::Builder::new()
            .name("function-watch".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.watch());
        match started {
            Ok(_thread) => *has_begun = true,
            Err(why) => {
                // The next work tries again. Callers have their deadlines meanwhile.
                self.watcher.is_awake.store(false, Ordering::SeqCst);
                error!(error = %why, "nobody watches the threads of functions");
            }
        }
    }

    /// Lets the watcher see that the pool stops.
    pub(super) fn end_watcher(&self) {
        let _has_begun = self.watcher.has_begun.lock();
        self.watcher.wake.notify_all();
    }

    fn watch(self: &Arc<Self>) {
        let mut has_begun = self.watcher.has_begun.lock();
        while !self.is_stopping() {
            // Work that a lane gets after the look below wakes this thread.
            self.watcher.is_awake.store(false, Ordering::SeqCst);
            if !self.lanes.iter().any(|lane| lane.state.lock().is_busy()) {
                self.watcher.wake.wait(&mut has_begun);
                continue;
            }
            self.watcher.is_awake.store(true, Ordering::SeqCst);
            self.watcher.wake.wait_for(&mut has_begun, self.config.overdue_max / 2);
            MutexGuard::unlocked(&mut has_begun, || Lane::ALL.iter().for_each(|lane| self.replace_stuck(*lane)));
        }
    }

    /// Gives up the threads of a lane that are overdue, tells the callers, and starts others.
    fn replace_stuck(self: &Arc<Self>, lane: Lane) {
        let (stuck, hopeless, more) = {
            let mut waits = self.lane(lane).state.lock();
            let stuck = waits.give_up_stuck();
            let hopeless = waits.take_hopeless(lane, &self.config);
            let more = if stuck.is_empty() { None } else { waits.one_more(lane, self) };
            (stuck, hopeless, more)
        };
        for thread in stuck {
            warn!(lane = lane.name(), "a thread did not come back from a function; it is left to itself");
            if let Some(fail) = thread.take_fail() {
                fail(FunctionError::Stuck);
            }
        }
        for work in hopeless {
            (work.fail)(FunctionError::Refused);
        }
        if let Some(more) = more {
            self.start_thread(lane, more);
        }
    }
}
