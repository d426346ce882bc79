//! Why work with a function has no result, and why a function was not found.

use ombak_script::ScriptError;

/// Why work with a function has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The program could not be compiled.
    #[error("{0}")]
    Script(#[from] ScriptError),
    /// Too much work waits. This work will never be done.
    #[error("too many calls of functions wait")]
    Busy,
    /// The deadline passed first. Work that had begun ends with the call that runs.
    #[error("the function was not done in time")]
    Late,
    /// The function ran for long, and others waited for its place.
    #[error("the function was ended because it ran long while others waited")]
    Displaced,
    /// The process of the function ended by itself, for example for lack of memory.
    #[error("the process of the function could not go on: {0}")]
    Died(String),
    /// The system gives no more threads.
    #[error("no thread for functions could be started: {0}")]
    NoThread(String),
    /// The work broke down; the log says where.
    #[error("the call of the function broke down; the log says where")]
    Broken,
    /// The pool is stopped.
    #[error("functions are stopped")]
    Stopped,
}

/// Why a function was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name or the source cannot be a function.
    #[error("{0}")]
    Script(#[from] ScriptError),
    /// The configuration does not allow functions whose source is in a request or in an object.
    #[error("functions whose source is in a request are not allowed here (javascript.anonymous_functions)")]
    AnonymousNotAllowed,
}
