//! Riak's built-in functions of the module `riak_kv_mapreduce`.
//!
//! Errors have Riak's words: `function_clause`, `badarith` and `badarg`, where an Erlang function
//! was given what it cannot work on.

mod map;
mod reduce;

pub use map::{MapFunction, Mapped};
pub use reduce::ReduceFunction;

/// The only module whose functions exist here.
pub const MODULE: &str = "riak_kv_mapreduce";

/// Why a function failed: the text of Erlang's error term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NativeError(pub String);

impl NativeError {
    fn new(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

#[cfg(test)]
mod tests;
