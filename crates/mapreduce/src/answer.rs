//! What a client gets: results and failures.

use crate::term::{NotJson, bytes_held, list_to_json};
use crate::{Input, Job};
use bytes::Bytes;
use ombak_types::DecodeBudget;
use ombak_types::etf::{Term, encode};
use serde_json::{Value, json};

/// In which form a client asked, and gets its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/x-erlang-binary`
    Erlang,
}

impl Encoding {
    /// The encoding of a content type; parameters after a semicolon do not matter.
    pub fn from_content_type(content_type: &[u8]) -> Option<Self> {
        match content_type.split(|byte| *byte == b';').next()?.trim_ascii() {
            b"application/json" => Some(Self::Json),
            b"application/x-erlang-binary" => Some(Self::Erlang),
            _ => None,
        }
    }

    /// Reads a job in this encoding. What the job takes counts in the budget.
    pub fn job(self, request: &[u8], budget: &mut DecodeBudget) -> Result<Job, crate::JobError> {
        match self {
            Self::Json => Job::from_json_within(request, budget),
            Self::Erlang => Job::from_erlang_within(request, budget),
        }
    }

    /// Results of one phase: a JSON array, or an Erlang list.
    pub fn results(self, values: Vec<Term>) -> Result<Bytes, NotJson> {
        match self {
            Self::Json => list_to_json(&values).map(Bytes::from),
            Self::Erlang => Ok(Bytes::from(encode(&Term::from_list(values)))),
        }
    }

    /// Inputs as terms in the form that they have in JSON: `[B,K]`, `[B,K,D]` or `[B,K,D,T]`.
    pub fn inputs_as_json(inputs: Vec<Term>) -> Vec<Term> {
        inputs.into_iter().map(|term| Input::from_term(&term).map_or(term, |key| key.to_json_term())).collect()
    }

    /// The results of a job without phases, which are its inputs as terms.
    pub fn input_results(self, inputs: Vec<Term>) -> Result<Bytes, NotJson> {
        match self {
            Self::Json => list_to_json(&Self::inputs_as_json(inputs)).map(Bytes::from),
            Self::Erlang => self.results(inputs),
        }
    }
}

/// Why a job failed while it ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It took too long.
    Timeout,
    /// A phase failed.
    Phase(PhaseFailure),
    /// It came to keys of a bucket that its client may not read. The text is for the client.
    Forbidden(String),
    /// Its inputs cannot be found.
    Inputs(InputsFailure),
    /// Something else, such as inputs that no function gives.
    Other(String),
}

/// Why the inputs of a job cannot be found. `Display` begins with Riak's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Error sending inputs: {why}")]
pub struct InputsFailure {
    /// What has to change.
    pub problem: InputsProblem,
    /// What is wrong. The text is for the client.
    pub why: String,
}

/// What has to change before the inputs of a job can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputsProblem {
    /// The request names something that does not exist.
    Missing,
    /// The request is wrong.
    Bad,
    /// Nothing: it may work when it is tried again.
    Unavailable,
}

/// Why a phase failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseFailure {
    /// The number of the phase, beginning with 0.
    pub phase: usize,
    /// What went wrong.
    pub error: String,
    /// What the phase worked on.
    pub input: Option<String>,
    /// `error` for what a function threw, `result` for what it could not begin.
    pub kind: Option<&'static str>,
    /// Where it went wrong. Riak shows a stack of Erlang calls.
    pub stack: Option<String>,
}

/// The maximum length of a text in a failure, as in Riak.
const TEXT_CHARS_MAX: usize = 500;

impl PhaseFailure {
    /// A map function that failed on an input. `was_found` says whether there was an object.
    pub fn of_map(phase: usize, error: &str, input: &Input, was_found: bool) -> Self {
        let bucket_key = input.bucket_key_term();
        let key_data = input.key_data_term();
        let text = match was_found {
            true => format!("{{ok,{bucket_key},{key_data}}}"),
            false => format!("{{{{error,notfound}},{bucket_key},{key_data}}}"),
        };
        let (error, text) = (shorten(error), shorten(&text));
        Self { phase, error, input: Some(text), kind: Some("error"), stack: Some("[]".to_owned()) }
    }

    /// A reduce function that failed.
    pub fn of_reduce(phase: usize, error: &str) -> Self {
        Self { phase, error: shorten(error), ..Self::default() }
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

impl Failure {
    /// The failure as both interfaces show it: the body of an HTTP reply, and the text of most
    /// errors over Protocol Buffers.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Timeout => json!({ "error": "timeout" }),
            Self::Forbidden(error) | Self::Other(error) => json!({ "error": shorten(error) }),
            Self::Inputs(failure) => json!({ "error": shorten(&failure.to_string()) }),
            Self::Phase(PhaseFailure { phase, error, input, kind, stack }) => {
                json!({ "phase": phase, "error": error, "input": input, "type": kind, "stack": stack })
            }
        }
    }
}

/// The kept results of a job whose client gets them together.
#[derive(Clone, Debug)]
pub struct Collected {
    /// The kept phases and their results.
    phases: Vec<(usize, Vec<Term>)>,
    bytes_left: usize,
}

/// The results of a job take more memory than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the results take more memory than allowed; ask for them in parts (chunked=true), or keep fewer")]
pub struct TooLarge;

impl Collected {
    /// Creates the empty results of a job, with a bound on their memory.
    pub fn new(job: &Job, bytes_max: usize) -> Self {
        let kept = job.phases.iter().enumerate().filter(|(_, phase)| phase.keep());
        let mut phases: Vec<_> = kept.map(|(index, _)| (index, Vec::new())).collect();
        if job.phases.is_empty() {
            phases.push((0, Vec::new()));
        }
        Self { phases, bytes_left: bytes_max }
    }

    /// Adds results of a phase. Results of a phase that is not kept are dropped.
    pub fn add(&mut self, phase: usize, values: Vec<Term>) -> Result<(), TooLarge> {
        let Some((_, kept)) = self.phases.iter_mut().find(|(index, _)| *index == phase) else { return Ok(()) };
        let bytes = values.iter().map(bytes_held).sum();
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(TooLarge)?;
        kept.extend(values);
        Ok(())
    }

    /// The JSON of all results: the list of the only kept phase, or the lists of several. Without
    /// a kept phase it is the empty list.
    pub fn to_json(&self) -> Result<String, NotJson> {
        match self.phases.as_slice() {
            [] => Ok("[]".to_owned()),
            [(_, values)] => list_to_json(values),
            several => {
                let lists: Vec<String> =
                    several.iter().map(|(_, values)| list_to_json(values)).collect::<Result<_, _>>()?;
                Ok(format!("[{}]", lists.join(",")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
