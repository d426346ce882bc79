//! A thread that runs functions.

use super::sessions::Sessions;
use super::{Running, Shared, Work};
use crate::{Calls, FunctionError, Lane};
use ombak_runtime::{begin_burst, give_way};
use ombak_script::Session;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tracing::{error, info};

/// What a thread has to do.
enum Next {
    Run(Work),
    EndSessions,
}

/// Runs work until the pool stops, or until the thread was given up.
pub(super) fn work(shared: &Arc<Shared>, lane: Lane, running: &Arc<Running>) {
    if lane.is_of_jobs() {
        give_way();
    }
    let mut sessions = Sessions::new(shared.config.sessions_max);
    let mut ends_seen = 0;
    while let Some(next) = shared.next(lane, running, &mut ends_seen) {
        match next {
            Next::Run(work) if work.is_late(running) => {
                shared.lane(lane).state.lock().late_total += 1;
                (work.fail)(FunctionError::Late);
            }
            Next::Run(work) => run(work, running, &mut sessions),
            Next::EndSessions => sessions.end_closed(),
        }
        running.set_sessions(sessions.len());
    }
    drop(sessions);
    let more = {
        let mut state = shared.lane(lane).state.lock();
        state.ended(running);
        shared.lane(lane).ended.notify_all();
        // The end of a stuck thread makes room for another one.
        if shared.is_stopping() { None } else { state.one_more(lane, shared) }
    };
    if let Some(more) = more {
        shared.start_thread(lane, more);
    }
}

impl Shared {
    /// Waits for something to do; `None` ends the thread.
    fn next(&self, lane: Lane, running: &Running, ends_seen: &mut u64) -> Option<Next> {
        let lane = self.lane(lane);
        let mut waits = lane.state.lock();
        loop {
            if self.is_stopping() || running.is_abandoned() {
                return None;
            }
            if waits.ends != *ends_seen {
                *ends_seen = waits.ends;
                return Some(Next::EndSessions);
            }
            if let Some(work) = waits.waiting.pop_front() {
                return Some(Next::Run(work));
            }
            waits.idle += 1;
            lane.work.wait(&mut waits);
            begin_burst();
            waits.idle -= 1;
        }
    }
}

impl Work {
    /// Whether the work must not begin any more.
    fn is_late(&self, running: &Running) -> bool {
        running.now() >= self.deadline
    }
}

fn run(work: Work, running: &Arc<Running>, sessions: &mut Sessions) {
    let Work { function, deadline, is_unwanted, run, fail } = work;
    if is_unwanted() {
        return;
    }
    running.begin_work(fail);
    let done = catch_unwind(AssertUnwindSafe(|| {
        let session = sessions
            .get(&function, running, deadline)
            .map_err(|why| running.end_of_work(&why, deadline).unwrap_or(FunctionError::Script(why)))?;
        run(&mut Calls::new(session, running, running.limits(), deadline));
        write_log(session);
        Ok(())
    }));
    let fail = running.take_fail();
    let why = match done {
        Ok(Ok(())) => return,
        Ok(Err(why)) => why,
        Err(_) => {
            error!("the call of a function panicked");
            sessions.end_last();
            FunctionError::Broken
        }
    };
    if let Some(fail) = fail {
        fail(why);
    }
}

/// Writes what the function has written with `ejsLog` to the log of the node.
fn write_log(session: &mut Session) {
    let log = session.take_log();
    for line in &log.lines {
        info!(target: "ombak::functions", "{line}");
    }
    if log.dropped > 0 {
        info!(target: "ombak::functions", dropped = log.dropped, "a function wrote more lines than are kept");
    }
}
