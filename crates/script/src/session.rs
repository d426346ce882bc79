//! A function that is called many times.

use crate::engine::Engine;
use crate::log::Log;
use crate::program::Function;
use crate::{Clock, Limits, Program, ScriptError};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// A program with an engine of its own. It shares nothing with other sessions.
///
/// Arguments are JSON texts. Numbers are what JavaScript makes of them: integers beyond 2^53 lose
/// digits, as in Riak.
pub struct Session {
    program: Program,
    limits: Limits,
    clock: Clock,
    log: Rc<RefCell<Log>>,
    /// `None` after a limit was met, until the next call.
    engine: Option<Engine>,
}

impl Session {
    /// Compiles a program. Everything at the top of the program counts as one call.
    pub fn open(program: Program, limits: Limits, clock: Clock) -> Result<Self, ScriptError> {
        let log = Rc::default();
        let engine = Engine::new(&program, &limits, &clock, &log)?;
        Ok(Self { program, limits, clock, log, engine: Some(engine) })
    }

    /// Sets how long each call from now on may run.
    pub fn set_call_time_max(&mut self, call_time_max: Duration) {
        self.limits.call_time_max = call_time_max;
    }

    /// Forgets everything that earlier calls have left behind. It costs as much as opening.
    pub fn reset(&mut self) {
        self.engine = None;
    }

    /// Takes the messages that functions wrote with `ejsLog` since the last time.
    pub fn take_log(&mut self) -> Log {
        self.log.take()
    }

    /// Calls a function with any arguments. Returns the result as a JSON text; `None` for a result
    /// that JSON cannot express, such as `undefined`.
    pub fn call(&mut self, arguments: &[&str]) -> Result<Option<String>, ScriptError> {
        let engine = match self.engine.take() {
            Some(engine) => engine,
            None => Engine::new(&self.program, &self.limits, &self.clock, &self.log)?,
        };
        let source = match &self.program.function {
            Function::Source(source) => source,
            Function::Named(_) => "",
        };
        let result = engine.call(arguments, source, &self.limits);
        if !result.as_ref().is_err_and(|error| error.kind.spoils_the_engine()) {
            self.engine = Some(engine);
        }
        result
    }
}
