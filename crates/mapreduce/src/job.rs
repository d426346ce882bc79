//! A job: its inputs, its phases and its time, as a request describes them.

mod batching;
mod error;
mod from_json;
mod from_term;
mod function;
mod index;
mod inputs;
mod phase;

pub use batching::Batching;
pub(crate) use batching::asks_for_prereduce;
pub use error::{JobError, Why};
pub use function::{Mapper, Reducer, ScriptSource};
pub use inputs::{IndexQuery, Inputs};
pub use phase::Phase;

use crate::term::from_json;
use ombak_types::Bucket;
use ombak_types::etf::{EtfError, decode};
use ombak_types::json::{BadJsonKind, Json};
use std::time::Duration;

/// The maximum number of phases.
pub const PHASES_MAX: usize = 64;

/// The time that a job has if the request does not say.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// What the first phase works on.
    pub inputs: Inputs,
    /// The phases, in their order. A job without phases gives its inputs.
    pub phases: Vec<Phase>,
    /// How long the job may take.
    pub timeout: Duration,
}

impl Job {
    /// Reads a job in JSON (docs/riak/http-api.md §7).
    pub fn from_json(text: &[u8]) -> Result<Self, JobError> {
        let value = Json::read(text).map_err(|bad| match bad.kind {
            // Riak has the same words for it.
            BadJsonKind::NotUtf8 => JobError::NotAnObject,
            _ => JobError::NotJson(bad.to_string()),
        })?;
        from_json::job(value.as_object().ok_or(JobError::NotAnObject)?)
    }

    /// Reads a job in Erlang's external term format: `[{inputs,I},{'query',Q},{timeout,T}]`.
    pub fn from_erlang(bytes: &[u8]) -> Result<Self, JobError> {
        match decode(bytes) {
            Ok(term) => from_term::job(&term),
            // The tags of functions: those of a running program, and names of exported ones.
            Err(EtfError::UnknownTag(112 | 113 | 117)) => Err(JobError::ErlangFun),
            Err(error) => Err(JobError::NotATerm(error)),
        }
    }

    /// How many phases' results the client gets.
    pub fn kept_phases(&self) -> usize {
        self.phases.iter().filter(|phase| phase.keep()).count()
    }

    /// The buckets that the inputs name, each once. The client needs permission for them.
    pub fn buckets(&self) -> Vec<&Bucket> {
        let mut buckets = self.inputs.buckets();
        buckets.sort();
        buckets.dedup();
        buckets
    }
}

#[cfg(test)]
mod tests;
