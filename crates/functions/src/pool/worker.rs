//! A thread that runs work. The functions run in its process.

use super::sessions::{NoAnswer, Sessions};
use super::{Running, Shared, Work};
use crate::calls::write_log;
use crate::{Calls, FunctionError, Lane};
use ombak_runtime::{begin_burst, give_way};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tracing::error;

/// What a thread has to do.
enum Next {
    Run(Work),
    EndSessions,
}

/// Runs work until the pool stops, until there are too many threads, or until there was no work for
/// a while.
pub(super) fn work(shared: &Arc<Shared>, lane: Lane, running: &Arc<Running>) {
    if lane.is_of_jobs() {
        give_way();
    }
    let mut sessions = Sessions::new(shared.program.clone(), lane.is_of_jobs(), shared.config.sessions_max);
    let mut ends_seen = 0;
    while let Some(next) = shared.next(lane, running, &mut ends_seen) {
        match next {
            Next::Run(work) => {
                let owner = work.owner.clone();
                run(work, shared, lane, running, &mut sessions);
                shared.lane(lane).state.lock().waiting.done(&owner);
            }
            Next::EndSessions => sessions.end_closed(),
        }
        if running.needs_new_process() {
            sessions.end_process(running);
        }
        running.set_sessions(sessions.len());
    }
    sessions.end_process(running);
    let more = {
        let mut state = shared.lane(lane).state.lock();
        state.ended(running);
        shared.lane(lane).ended.notify_all();
        // Work may have come while this thread was about to end.
        if shared.is_stopping() { None } else { state.one_more(shared) }
    };
    if let Some(more) = more {
        shared.start_thread(lane, more);
    }
}

impl Shared {
    /// Waits for something to do; `None` ends the thread.
    fn next(&self, lane: Lane, running: &Arc<Running>, ends_seen: &mut u64) -> Option<Next> {
        let lane = self.lane(lane);
        let mut state = lane.state.lock();
        loop {
            if self.is_stopping() || state.has_surplus(&self.config) {
                // Nobody counts on a thread that ends.
                state.ended(running);
                return None;
            }
            if state.ends != *ends_seen {
                *ends_seen = state.ends;
                return Some(Next::EndSessions);
            }
            if let Some(work) = state.next() {
                return Some(Next::Run(work));
            }
            state.idle += 1;
            let waited = lane.work.wait_for(&mut state, self.config.idle_max);
            begin_burst();
            state.idle -= 1;
            if waited.timed_out() && state.ends == *ends_seen && !state.has_work() {
                state.ended(running);
                return None;
            }
        }
    }
}

fn run(work: Work, shared: &Shared, lane: Lane, running: &Arc<Running>, sessions: &mut Sessions) {
    let Work { function, owner, deadline, is_unwanted, run, fail } = work;
    if running.now() >= deadline {
        shared.lane(lane).state.lock().late_total += 1;
        return fail(FunctionError::Late);
    }
    if is_unwanted() {
        return;
    }
    running.begin_work(owner, fail);
    let done = catch_unwind(AssertUnwindSafe(|| {
        sessions.open(&function, running, deadline)?;
        let mut calls = Calls::new(sessions, &function, running, deadline);
        run(&mut calls);
        write_log(&calls.take_log());
        Ok(())
    }));
    let fail = running.end_work();
    let why = match done {
        Ok(Ok(())) => return,
        Ok(Err(NoAnswer::Script(why))) => FunctionError::Script(why),
        Ok(Err(NoAnswer::Work(why))) => why,
        Err(_) => {
            error!("the call of a function panicked");
            sessions.end_process(running);
            FunctionError::Broken
        }
    };
    if let Some(fail) = fail {
        fail(why);
    }
}
