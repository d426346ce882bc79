//! The sessions of one thread.

use super::Running;
use crate::function::Opened;
use ombak_script::{Limits, ScriptError, Session};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// The sessions of one thread, the one that was used last at the end.
pub(super) struct Sessions {
    open: Vec<(Weak<Opened>, Session)>,
    sessions_max: usize,
}

impl Sessions {
    pub(super) fn new(sessions_max: usize) -> Self {
        Self { open: Vec::new(), sessions_max: sessions_max.max(1) }
    }

    /// The session of a function, opened if there is none.
    pub(super) fn get(
        &mut self,
        function: &Arc<Opened>,
        running: &Arc<Running>,
        deadline: Instant,
    ) -> Result<&mut Session, ScriptError> {
        let found = self.open.iter().position(|(owner, _)| std::ptr::eq(owner.as_ptr(), Arc::as_ptr(function)));
        let entry = match found {
            Some(at) => self.open.remove(at),
            None => {
                if self.open.len() >= self.sessions_max {
                    self.open.remove(0);
                }
                (Arc::downgrade(function), opened(function, running, deadline)?)
            }
        };
        let at = self.open.len();
        self.open.push(entry);
        Ok(&mut self.open[at].1)
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Ends the sessions of functions that are no longer open.
    pub(super) fn end_closed(&mut self) {
        self.open.retain(|(owner, _)| owner.strong_count() > 0);
    }

    /// Ends the session that was used last.
    pub(super) fn end_last(&mut self) {
        self.open.pop();
    }
}

fn opened(function: &Opened, running: &Arc<Running>, deadline: Instant) -> Result<Session, ScriptError> {
    let (limits, now) = (running.limits(), running.now());
    let call_time_max = deadline.saturating_duration_since(now).min(limits.call_time_max);
    let _timed = running.begin_call(now + call_time_max);
    Session::open(function.program.clone(), Limits { call_time_max, ..limits }, running.clock())
}
