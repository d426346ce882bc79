//! The calls that one piece of work makes.

use crate::FunctionError;
use crate::function::Opened;
use crate::pool::{NoAnswer, Running, Sessions, of_script};
use crate::process::Called;
use ombak_runtime::pause_if_due;
use ombak_script::{ErrorKind, LINES_MAX, Log, PreCommit, ScriptError, list_result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::info;

/// How many bytes of arguments cross at once, if there are several calls.
const BATCH_BYTES: usize = 64 << 10;
/// How many calls cross at once.
const BATCH_CALLS_MAX: usize = 256;
/// How long the calls that crossed at once may take. What was not called by then crosses again.
const BATCH_TIME: Duration = Duration::from_millis(10);

/// The session of a function, during one piece of work. Each call may take the time that the limits
/// allow, and no longer than until the deadline of the work.
///
/// Arguments are JSON texts.
pub struct Calls<'a> {
    sessions: &'a mut Sessions,
    function: &'a Arc<Opened>,
    running: &'a Running,
    deadline: Instant,
    log: Log,
    /// Why the work has ended whatever the last call gave: by a stop of the pool, by its deadline,
    /// or with its process. Then every further call fails, too.
    ended: Option<FunctionError>,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(
        sessions: &'a mut Sessions,
        function: &'a Arc<Opened>,
        running: &'a Running,
        deadline: Instant,
    ) -> Self {
        Self { sessions, function, running, deadline, log: Log::default(), ended: None }
    }

    /// Calls a map function. Returns the JSON text of the list that it gives for the object.
    pub fn map(&mut self, object: &str, key_data: &str, arg: &str) -> Result<String, ScriptError> {
        self.call(&[object, key_data, arg]).and_then(list_result)
    }

    /// Calls a map function for objects and their key data, in their order, until a call fails or
    /// until this time. Returns what the calls gave, one at least.
    pub fn map_each(&mut self, inputs: &[(&str, &str)], arg: &str, until: Instant) -> Vec<Result<String, ScriptError>> {
        let calls: Vec<_> = inputs.iter().map(|(object, key_data)| [*object, *key_data, arg]).collect();
        let mut results = Vec::with_capacity(calls.len());
        while results.len() < calls.len() {
            let batch = batch(&calls[results.len()..]);
            let time_max = until.saturating_duration_since(self.running.now()).min(BATCH_TIME);
            results.extend(self.timed(&batch, time_max).into_iter().map(|called| called.and_then(list_result)));
            if results.last().is_none_or(Result::is_err) || self.running.now() >= until {
                break;
            }
        }
        results
    }

    /// Calls a reduce function with the JSON text of a list. Returns that of another one.
    pub fn reduce(&mut self, values: &str, arg: &str) -> Result<String, ScriptError> {
        self.call(&[values, arg]).and_then(list_result)
    }

    /// Calls a pre-commit hook with the object that a client wants to put.
    pub fn pre_commit(&mut self, object: &str) -> Result<PreCommit, ScriptError> {
        self.call(&[object]).and_then(|result| PreCommit::from_text(result.as_deref()))
    }

    /// Calls a post-commit hook with the object that was put.
    pub fn post_commit(&mut self, object: &str) -> Result<(), ScriptError> {
        self.call(&[object]).map(drop)
    }

    /// Calls a function with any arguments. Returns the result as a JSON text; `None` for a result
    /// that JSON cannot express.
    pub fn call(&mut self, arguments: &[&str]) -> Result<Option<String>, ScriptError> {
        self.timed(&[arguments], Duration::ZERO).pop().unwrap_or_else(|| Err(no_time()))
    }

    /// Takes the messages that the calls wrote with `ejsLog`. Then they are not written to the log
    /// of the node.
    pub fn take_log(&mut self) -> Log {
        std::mem::take(&mut self.log)
    }

    /// Forgets what earlier calls have left behind.
    pub fn reset(&mut self) {
        self.sessions.reset(self.function);
    }

    /// Takes the reason if the work has ended, whatever the last call gave.
    pub(crate) fn take_end(&mut self) -> Option<FunctionError> {
        self.ended.take()
    }

    /// Makes calls, and gives their results. Only the last one may be an error. No call begins
    /// after this time, except the first one.
    fn timed(&mut self, calls: &[&[&str]], time_max: Duration) -> Vec<Called> {
        pause_if_due();
        let has_time = self.running.now() < self.deadline && !self.running.is_stopping();
        let mut called = if has_time {
            let answers = self.sessions.call(self.function, self.running, self.deadline, time_max, calls);
            match answers {
                Ok(answers) => {
                    self.keep_log(answers.log);
                    answers.called
                }
                Err(NoAnswer::Script(why)) => vec![Err(why)],
                Err(NoAnswer::Work(why)) => {
                    let text = why.to_string();
                    self.ended = Some(why);
                    vec![Err(ScriptError::new(ErrorKind::Time, text))]
                }
            }
        } else {
            vec![Err(no_time())]
        };
        self.note_end(&mut called);
        called
    }

    /// Notes whether the work has ended with the last call.
    fn note_end(&mut self, called: &mut [Called]) {
        match called.last() {
            Some(Err(why)) if self.ended.is_none() => {
                self.ended = match of_script(self.running, why.clone(), self.deadline) {
                    NoAnswer::Work(why) => Some(why),
                    NoAnswer::Script(_) => None,
                };
            }
            Some(Err(_)) => {}
            _ => self.ended = None,
        }
    }

    fn keep_log(&mut self, log: Log) {
        self.log.dropped += log.dropped;
        self.log.lines.extend(log.lines);
        let beyond = self.log.lines.len().saturating_sub(LINES_MAX);
        self.log.lines.drain(..beyond);
        self.log.dropped += beyond as u64;
    }
}

/// The calls that cross next: one at least.
fn batch<'a>(calls: &'a [[&'a str; 3]]) -> Vec<&'a [&'a str]> {
    let mut bytes = 0;
    let fits = |call: &&[&str; 3]| {
        let is_first = bytes == 0;
        bytes += 1 + call.iter().map(|argument| argument.len()).sum::<usize>();
        is_first || bytes <= BATCH_BYTES
    };
    calls.iter().take(BATCH_CALLS_MAX).take_while(fits).map(<[&str; 3]>::as_slice).collect()
}

/// The error of a function that has no time left.
fn no_time() -> ScriptError {
    ScriptError::new(ErrorKind::Time, "the time of the work was over before the function was called")
}

/// Writes what a function has written with `ejsLog` to the log of the node.
pub(crate) fn write_log(log: &Log) {
    for line in &log.lines {
        info!(target: "ombak::functions", "{line}");
    }
    if log.dropped > 0 {
        info!(target: "ombak::functions", dropped = log.dropped, "a function wrote more lines than are kept");
    }
}
