//! A function that is called many times.

use crate::engine::Engine;
use crate::hook::PreCommit;
use crate::log::Log;
use crate::program::Function;
use crate::{Clock, ErrorKind, Limits, Program, ScriptError};
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

    /// Calls a map function. Returns the JSON text of the list that it gives for the object.
    pub fn map(&mut self, object: &str, key_data: &str, arg: &str) -> Result<String, ScriptError> {
        self.call_for_list(&[object, key_data, arg])
    }

    /// Calls a reduce function with the JSON text of a list. Returns that of another one.
    pub fn reduce(&mut self, values: &str, arg: &str) -> Result<String, ScriptError> {
        self.call_for_list(&[values, arg])
    }

    /// Calls a pre-commit hook with the object that a client wants to put.
    pub fn pre_commit(&mut self, object: &str) -> Result<PreCommit, ScriptError> {
        match self.call(&[object])? {
            Some(result) => PreCommit::from_result(parsed(&result)?),
            None => Err(returned("undefined")),
        }
    }

    /// Calls a post-commit hook with the object that was put. What it returns does not matter.
    pub fn post_commit(&mut self, object: &str) -> Result<(), ScriptError> {
        self.call(&[object]).map(drop)
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

    /// The text stays a text, so that whoever reads it decides what becomes of its numbers.
    fn call_for_list(&mut self, arguments: &[&str]) -> Result<String, ScriptError> {
        let Some(result) = self.call(arguments)? else {
            return Err(returned("undefined"));
        };
        // The engine writes JSON without white space around it.
        match result.as_bytes().first() {
            Some(b'[') => Ok(result),
            Some(b'{') => Err(returned("an object that is not a list")),
            _ => Err(returned(&result)),
        }
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

fn parsed(result: &str) -> Result<serde_json::Value, ScriptError> {
    // The engine writes JSON; what can fail is the nesting, which the parser limits.
    serde_json::from_str(result)
        .map_err(|error| ScriptError::new(ErrorKind::Result, format!("the result cannot be read: {error}")))
}

fn returned(what: &str) -> ScriptError {
    ScriptError::new(ErrorKind::Result, format!("the function returned {what}, not a list"))
}
