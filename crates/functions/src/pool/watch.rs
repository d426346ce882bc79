//! Ends calls that do not end by themselves, and sees to it that nobody waits for slow ones.

use super::Shared;
use crate::Lane;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tracing::error;

/// How often it looks at the lanes while there is work.
const INTERVAL: Duration = Duration::from_millis(10);
/// The watcher needs no stack of an engine.
const STACK_BYTES: usize = 256 << 10;

/// The thread that watches the others. It sleeps while there is no work. It begins with the pool,
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
                error!(error = %why, "nobody watches the functions that run");
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
            self.watcher.wake.wait_for(&mut has_begun, INTERVAL);
            MutexGuard::unlocked(&mut has_begun, || Lane::ALL.iter().for_each(|lane| self.look_at(*lane)));
        }
    }

    fn look_at(self: &Arc<Self>, lane: Lane) {
        let more = {
            let mut state = self.lane(lane).state.lock();
            let more = state.watch(self, self.runtime.now());
            if state.has_surplus(&self.config) {
                // Those that wait see that they are too many.
                self.lane(lane).work.notify_all();
            }
            more
        };
        for thread in more {
            self.start_thread(lane, thread);
        }
    }
}
