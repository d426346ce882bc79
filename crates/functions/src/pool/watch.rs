//! Finds threads that do not come back from a function.

use super::Shared;
use super::state::{State, Watcher};
use crate::{FunctionError, Lane};
use std::sync::Arc;
use std::thread;
use tracing::{error, warn};

/// The watcher needs no stack of an engine.
const STACK_BYTES: usize = 256 << 10;

impl Shared {
    /// Lets the watcher look from now on. Called when there is work.
    pub(super) fn wake_watcher(self: &Arc<Self>, state: &mut State) {
        match &mut state.watcher {
            Some(watcher) if watcher.is_asleep => {
                watcher.is_asleep = false;
                self.watch.notify_one();
            }
            Some(_) => {}
            None => {
                let shared = self.clone();
                let started = thread::Builder::new()
                    .name("function-watch".to_owned())
                    .stack_size(STACK_BYTES)
                    .spawn(move || shared.watch());
                match started {
                    Ok(_thread) => state.watcher = Some(Watcher { _thread, is_asleep: false }),
                    // The next work tries again. Callers have their deadlines meanwhile.
                    Err(why) => error!(error = %why, "nobody watches the threads of functions"),
                }
            }
        }
    }

    fn watch(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while state.is_open {
            if !state.lanes.iter().any(super::state::LaneState::is_busy) {
                if let Some(watcher) = &mut state.watcher {
                    watcher.is_asleep = true;
                }
                self.watch.wait(&mut state);
                continue;
            }
            self.watch.wait_for(&mut state, self.config.overdue_max / 2);
            for lane in Lane::ALL {
                parking_lot::MutexGuard::unlocked(&mut state, || self.replace_stuck(lane));
            }
        }
    }

    /// Gives up the threads of a lane that are overdue, tells the callers, and starts others.
    fn replace_stuck(self: &Arc<Self>, lane: Lane) {
        let (stuck, hopeless, more) = {
            let mut state = self.state.lock();
            let waits = state.lane_mut(lane);
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
