//! The process of one thread, and the sessions in it.

use super::Running;
use super::running::Ended;
use crate::FunctionError;
use crate::function::Opened;
use crate::process::{Answers, Child, Died, WorkerProgram};
use ombak_script::{ErrorKind, ScriptError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracing::warn;

/// How long the start of a process may take.
const START_TIME_MAX: Duration = Duration::from_secs(10);

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The function failed.
    Script(ScriptError),
    /// The work has ended, whatever the function would have given.
    Work(FunctionError),
}

/// The process of a thread. It is started when it is needed, and again after it has ended.
pub(crate) struct Sessions {
    program: Arc<WorkerProgram>,
    gives_way: bool,
    sessions_max: usize,
    child: Option<Child>,
    /// The functions and the numbers of their sessions, the one that was used last at the end.
    open: Vec<(Weak<Opened>, u32)>,
    number: u32,
}

impl Sessions {
    pub(super) fn new(program: Arc<WorkerProgram>, gives_way: bool, sessions_max: usize) -> Self {
        Self { program, gives_way, sessions_max: sessions_max.max(1), child: None, open: Vec::new(), number: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Ends the sessions of functions that are no longer open.
    pub(super) fn end_closed(&mut self) {
        let Some(child) = &mut self.child else { return };
        self.open.retain(|(owner, number)| {
            let is_open = owner.strong_count() > 0;
            if !is_open {
                child.close(*number);
            }
            is_open
        });
        // What a process that has ended would have done is done.
        let _ = child.flush();
    }

    /// Ends the process.
    pub(super) fn end_process(&mut self, running: &Running) {
        self.open.clear();
        self.child = None;
        running.set_process(None);
    }

    /// Forgets what the calls of a function have left behind.
    pub(crate) fn reset(&mut self, function: &Arc<Opened>) {
        if let (Some(child), Some(at)) = (&mut self.child, position(&self.open, function)) {
            child.reset(self.open[at].1);
        }
    }

    /// Opens a session for the function, if it has none.
    pub(crate) fn open(
        &mut self,
        function: &Arc<Opened>,
        running: &Running,
        deadline: Instant,
    ) -> Result<(), NoAnswer> {
        if let Some(at) = position(&self.open, function) {
            let entry = self.open.remove(at);
            self.open.push(entry);
            return Ok(());
        }
        self.started(running)?;
        let Some(child) = &mut self.child else { return Err(NoAnswer::Work(FunctionError::Stopped)) };
        while self.open.len() >= self.sessions_max {
            child.close(self.open.remove(0).1);
        }
        self.number = self.number.wrapping_add(1);
        let now = running.now();
        let time_max = deadline.saturating_duration_since(now).min(running.limits().call_time_max);
        let opened = match running.begin_call(now + time_max) {
            true => child.open(self.number, &function.program, time_max),
            false => Err(Died { why: String::new() }),
        };
        self.after_call(running, deadline, opened)?.map_err(|why| of_script(running, why, deadline))?;
        self.open.push((Arc::downgrade(function), self.number));
        Ok(())
    }

    /// Makes calls in the session of the function, which was opened last.
    pub(crate) fn call(
        &mut self,
        function: &Arc<Opened>,
        running: &Running,
        deadline: Instant,
        batch_time_max: Duration,
        calls: &[&[&str]],
    ) -> Result<Answers, NoAnswer> {
        self.open(function, running, deadline)?;
        let session = self.open.last().map_or(0, |(_, number)| *number);
        let Some(child) = &mut self.child else { return Err(NoAnswer::Work(FunctionError::Stopped)) };
        let bytes: usize = calls.iter().copied().flatten().map(|argument| argument.len() + size_of::<u32>()).sum();
        if bytes > child.arguments_bytes_max() {
            return Err(NoAnswer::Script(ScriptError::new(ErrorKind::Memory, "out of memory")));
        }
        let now = running.now();
        let time_max = deadline.saturating_duration_since(now).min(running.limits().call_time_max);
        let answers = match running.begin_call(now + batch_time_max + time_max) {
            true => child.call(session, (time_max, batch_time_max), calls),
            false => Err(Died { why: String::new() }),
        };
        self.after_call(running, deadline, answers)
    }

    /// Starts the process, unless it runs.
    fn started(&mut self, running: &Running) -> Result<(), NoAnswer> {
        if self.child.is_some() {
            return Ok(());
        }
        let deadline = running.now() + START_TIME_MAX;
        let started = match running.begin_call(deadline) {
            true => Child::start(&self.program, &running.limits(), self.gives_way, self.sessions_max, None, |killer| {
                running.set_process(Some(killer));
            }),
            false => Err(Died { why: String::new() }),
        };
        let (child, log) = self.after_call(running, deadline, started)?;
        for line in log.lines {
            warn_once(&line);
        }
        self.child = Some(child);
        Ok(())
    }

    /// What became of a call. A process that has ended is forgotten.
    fn after_call<T>(&mut self, running: &Running, deadline: Instant, answer: Result<T, Died>) -> Result<T, NoAnswer> {
        let ended = running.end_call();
        let died = match answer {
            Ok(answer) => return Ok(answer),
            Err(died) => died,
        };
        self.end_process(running);
        Err(match ended {
            Some(Ended::Displaced) => NoAnswer::Work(FunctionError::Displaced),
            _ if running.is_stopping() => NoAnswer::Work(FunctionError::Stopped),
            Some(Ended::Overdue | Ended::Stopped) => of_script(running, overdue(), deadline),
            None => {
                warn!(why = %died, "the process of a function ended by itself");
                running.note_died();
                NoAnswer::Work(FunctionError::Died(died.to_string()))
            }
        })
    }
}

/// The error of a call that was ended from outside.
fn overdue() -> ScriptError {
    ScriptError::new(ErrorKind::Time, "the function ran longer than allowed")
}

/// What the error of a function means for work with this deadline. It may say only that a stop of
/// the pool or the deadline has ended the call.
pub(crate) fn of_script(running: &Running, error: ScriptError, deadline: Instant) -> NoAnswer {
    match error.kind {
        ErrorKind::Time if running.is_stopping() => NoAnswer::Work(FunctionError::Stopped),
        ErrorKind::Time if running.now() >= deadline => NoAnswer::Work(FunctionError::Late),
        _ => NoAnswer::Script(error),
    }
}

fn position(open: &[(Weak<Opened>, u32)], function: &Arc<Opened>) -> Option<usize> {
    open.iter().rposition(|(owner, _)| std::ptr::eq(owner.as_ptr(), Arc::as_ptr(function)))
}

/// Warns of what holds for all processes on this system.
fn warn_once(line: &str) {
    static WARNED: std::sync::Once = std::sync::Once::new();
    WARNED.call_once(|| warn!("{line}"));
}
