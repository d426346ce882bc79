//! The calls that one piece of work makes.

use crate::FunctionError;
use crate::pool::Running;
use ombak_runtime::pause_if_due;
use ombak_script::{ErrorKind, Limits, Log, PreCommit, ScriptError, Session};
use std::time::Instant;

/// The session of a function, during one piece of work. Each call may take the time that the limits
/// allow, and no longer than until the deadline of the work.
///
/// Arguments are JSON texts.
pub struct Calls<'a> {
    session: &'a mut Session,
    running: &'a Running,
    limits: Limits,
    deadline: Instant,
    /// Whether the last call was ended by a stop of the pool or by the deadline of the work. Then
    /// every further call is, too.
    ended: Option<FunctionError>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(session: &'a mut Session, running: &'a Running, limits: Limits, deadline: Instant) -> Self {
        Self { session, running, limits, deadline, ended: None }
    }

    /// Calls a map function. Returns the JSON text of the list that it gives for the object.
    pub fn map(&mut self, object: &str, key_data: &str, arg: &str) -> Result<String, ScriptError> {
        self.timed(|session| session.map(object, key_data, arg))
    }

    /// Calls a reduce function with the JSON text of a list. Returns that of another one.
    pub fn reduce(&mut self, values: &str, arg: &str) -> Result<String, ScriptError> {
        self.timed(|session| session.reduce(values, arg))
    }

    /// Calls a pre-commit hook with the object that a client wants to put.
    pub fn pre_commit(&mut self, object: &str) -> Result<PreCommit, ScriptError> {
        self.timed(|session| session.pre_commit(object))
    }

    /// Calls a post-commit hook with the object that was put.
    pub fn post_commit(&mut self, object: &str) -> Result<(), ScriptError> {
        self.timed(|session| session.post_commit(object))
    }

    /// Calls a function with any arguments. Returns the result as a JSON text; `None` for a result
    /// that JSON cannot express.
    pub fn call(&mut self, arguments: &[&str]) -> Result<Option<String>, ScriptError> {
        self.timed(|session| session.call(arguments))
    }

    /// Takes the messages that the calls wrote with `ejsLog`. Then they are not written to the log
    /// of the node.
    pub fn take_log(&mut self) -> Log {
        self.session.take_log()
    }

    /// Forgets what earlier calls have left behind.
    pub fn reset(&mut self) {
        self.session.reset();
    }

    /// Takes the reason if a stop of the pool or the deadline of the work has ended a call.
    pub(crate) fn take_end(&mut self) -> Option<FunctionError> {
        self.ended.take()
    }

    fn timed<T>(&mut self, call: impl FnOnce(&mut Session) -> Result<T, ScriptError>) -> Result<T, ScriptError> {
        pause_if_due();
        let now = self.running.now();
        let left = self.deadline.saturating_duration_since(now).min(self.limits.call_time_max);
        let result = if left.is_zero() || self.running.is_stopping() {
            Err(no_time())
        } else {
            self.session.set_call_time_max(left);
            let _timed = self.running.begin_call(now + left);
            call(self.session)
        };
        self.ended = result.as_ref().err().and_then(|error| self.running.end_of_work(error, self.deadline));
        result
    }
}

/// The error of a function that has no time left.
fn no_time() -> ScriptError {
    ScriptError::new(ErrorKind::Time, "the time of the work was over before the function was called")
}
