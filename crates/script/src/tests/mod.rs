//! Tests of functions, with a clock that moves each time somebody looks at it.

mod builtins;
mod isolation;
mod limits;
mod properties;
mod sessions;

use crate::{Clock, ErrorKind, Limits, PreCommit, Program, ScriptError, Session, list_result};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// A clock that moves by a millisecond with each look. So a test needs no real time, and how long a
/// call may run is a number of looks of the engine.
fn clock() -> Clock {
    let now = Cell::new(Duration::ZERO);
    Rc::new(move || now.replace(now.get() + Duration::from_millis(1)))
}

/// The calls of jobs and hooks.
trait Uses {
    fn map(&mut self, object: &str, key_data: &str, arg: &str) -> Result<String, ScriptError>;
    fn reduce(&mut self, values: &str, arg: &str) -> Result<String, ScriptError>;
    fn pre_commit(&mut self, object: &str) -> Result<PreCommit, ScriptError>;
}

impl Uses for Session {
    fn map(&mut self, object: &str, key_data: &str, arg: &str) -> Result<String, ScriptError> {
        self.call(&[object, key_data, arg]).and_then(list_result)
    }

    fn reduce(&mut self, values: &str, arg: &str) -> Result<String, ScriptError> {
        self.call(&[values, arg]).and_then(list_result)
    }

    fn pre_commit(&mut self, object: &str) -> Result<PreCommit, ScriptError> {
        self.call(&[object]).and_then(|result| PreCommit::from_text(result.as_deref()))
    }
}

fn limits() -> Limits {
    Limits { call_time_max: Duration::from_millis(200), ..Limits::default() }
}

fn session(source: &str) -> Session {
    Session::open(Program::source(source).unwrap(), limits(), clock()).unwrap()
}

fn named(name: &str) -> Session {
    Session::open(Program::named(name).unwrap(), limits(), clock()).unwrap()
}

/// The error of a function that is called once with `null` for the object.
fn error_of(source: &str) -> ScriptError {
    error_within(limits(), source)
}

fn error_within(limits: Limits, source: &str) -> ScriptError {
    let opened = Program::source(source).and_then(|program| Session::open(program, limits, clock()));
    opened.and_then(|mut session| session.map("null", "null", "null")).unwrap_err()
}

fn kind_of(source: &str) -> ErrorKind {
    error_of(source).kind
}

/// The values in a result, which is a JSON text.
fn values_in(result: &str) -> Vec<serde_json::Value> {
    serde_json::from_str(result).unwrap()
}

/// What a function gives for `null`, as a JSON text.
fn result_of(source: &str) -> String {
    session(source).map("null", "null", "null").unwrap()
}
