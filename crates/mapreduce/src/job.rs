//! A job: its inputs, its phases and its time, as a request describes them.

mod batching;
mod error;
mod from_json;
mod from_term;
mod function;
mod index;
mod inputs;
mod listed;
mod phase;
mod search;

pub use batching::Batching;
pub(crate) use batching::asks_for_prereduce;
pub use error::{JobError, Why};
pub use function::{Mapper, Reducer, ScriptSource};
pub use inputs::{Buckets, IndexQuery, Inputs};
pub use phase::Phase;

use crate::native::{MODULE, ReduceFunction};
use listed::{ListedJson, ListedTerms};
use ombak_types::etf::{EtfError, Limits, Term, decode_visiting, decode_within};
use ombak_types::json::{BadJsonKind, Json};
use ombak_types::{Bucket, DecodeBudget, TooLarge};
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
        Self::from_json_within(text, &mut DecodeBudget::of_message(text.len()))
    }

    /// The same; what the job takes counts in the budget. Inputs that are listed one by one never
    /// make a tree, because they may be millions.
    pub fn from_json_within(text: &[u8], budget: &mut DecodeBudget) -> Result<Self, JobError> {
        let mut listed = ListedJson::default();
        let mut visit = |item: Json, budget: &mut DecodeBudget| listed.add(item, budget);
        let value = Json::read_visiting(text, budget, "inputs", &mut visit).map_err(|bad| match bad.kind {
            // Riak has the same words for it.
            BadJsonKind::NotUtf8 => JobError::NotAnObject,
            BadJsonKind::TooLarge { bytes_max } => JobError::TooLarge { bytes_max },
            _ => JobError::NotJson(bad.to_string()),
        })?;
        from_json::job(value.as_object().ok_or(JobError::NotAnObject)?, listed, budget).and_then(Self::of_request)
    }

    /// Reads a job in Erlang's external term format: `[{inputs,I},{'query',Q},{timeout,T}]`.
    pub fn from_erlang(bytes: &[u8]) -> Result<Self, JobError> {
        Self::from_erlang_within(bytes, &mut DecodeBudget::of_message(bytes.len()))
    }

    /// The same; what the job takes counts in the budget. Inputs that are listed one by one never
    /// make a tree, because they may be millions.
    pub fn from_erlang_within(bytes: &[u8], budget: &mut DecodeBudget) -> Result<Self, JobError> {
        let before = budget.bytes_used();
        let mut listed = ListedTerms::default();
        let mut visit = |item: Term, budget: &mut DecodeBudget| listed.add(item, budget);
        let mut term = decode_visiting(bytes, Limits::default(), budget, "inputs", &mut visit).map_err(not_a_term)?;
        if from_term::has_bad_tail(&term) {
            // The error has the whole list.
            listed = ListedTerms::default();
            drop(term);
            budget.give_back_to(before);
            term = decode_within(bytes, Limits::default(), budget).map_err(not_a_term)?;
        }
        from_term::job(&term, listed, budget).and_then(Self::of_request)
    }

    /// Refuses a function that parts of jobs can have, and requests cannot.
    fn of_request(self) -> Result<Self, JobError> {
        let is_refused = |phase: &Phase| {
            matches!(phase, Phase::Reduce { function: Reducer::Native(function), .. }
                if !ReduceFunction::ALL.contains(function))
        };
        match self.phases.iter().position(is_refused) {
            None => Ok(self),
            Some(phase) => {
                let function = ReduceFunction::IndexIdentity.name().to_owned();
                Err(JobError::UnknownFunction { phase, module: MODULE.to_owned(), function })
            }
        }
    }

    /// How many phases' results the client gets.
    pub fn kept_phases(&self) -> usize {
        self.phases.iter().filter(|phase| phase.keep()).count()
    }

    /// The buckets that the inputs name. The client needs permission for them. One that several
    /// inputs name may come several times.
    pub fn buckets(&self) -> Buckets<'_> {
        self.inputs.buckets()
    }

    /// The buckets of objects that have the source of a function. The client needs permission for
    /// them, too.
    pub fn function_buckets(&self) -> impl Iterator<Item = &Bucket> {
        self.phases.iter().filter_map(|phase| match phase.script()? {
            ScriptSource::Stored { bucket, .. } => Some(bucket),
            ScriptSource::Named(_) | ScriptSource::Source(_) => None,
        })
    }

    /// Whether a phase follows links.
    pub fn follows_links(&self) -> bool {
        self.phases.iter().any(|phase| matches!(phase, Phase::Link { .. }))
    }
}

fn not_a_term(error: EtfError) -> JobError {
    match error {
        // The tags of functions: those of a running program, and names of exported ones.
        EtfError::UnknownTag(112 | 113 | 117) => JobError::ErlangFun,
        EtfError::OverBudget(TooLarge { bytes_max }) => JobError::TooLarge { bytes_max },
        error => JobError::NotATerm(error),
    }
}

#[cfg(test)]
mod tests;
