//! What a job wants done, and what it may use.

use crate::{Failure, Input, Values};
use bytes::Bytes;
use ombak_types::etf::Term;

/// Limits of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// How many parts run at the same time.
    pub parts_at_once_max: usize,
    /// How many keys a part has that is made of keys.
    pub keys_per_part_max: usize,
    /// How often a part is tried before the job fails. Each piece of results begins anew.
    pub attempts_max: u32,
    /// How many new values a reduce function gets in one call, if its phase does not say.
    pub reduce_values_min: usize,
    /// How many bytes of new values a reduce function in JavaScript gets in one call, unless its
    /// phase wants a single call. Its memory is small.
    pub script_call_bytes_max: usize,
    /// How many bytes of values wait for a phase before the phases in front of it pause.
    pub waiting_bytes_max: usize,
    /// How many bytes the results and new values of one reduce phase take before the job fails.
    pub reduce_bytes_max: usize,
}

impl Default for RunLimits {
    /// Riak's batches of 20 values.
    fn default() -> Self {
        Self {
            parts_at_once_max: 64,
            keys_per_part_max: 100,
            attempts_max: 5,
            reduce_values_min: 20,
            script_call_bytes_max: 512 << 10,
            waiting_bytes_max: 16 << 20,
            reduce_bytes_max: 64 << 20,
        }
    }
}

/// Where the inputs of a job come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Keys come by [`super::JobRun::add_keys`], until [`super::JobRun::end_keys`].
    Keys,
    /// Each of this many shares of the cluster finds its keys itself: a share is a set of
    /// partitions that together with the others covers every key once.
    Shares(u32),
}

/// What a part works on.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// These keys.
    Keys(Vec<Input>),
    /// The keys that a share of the cluster finds.
    Share(u32),
}

/// One attempt at a part. Answers to other attempts do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The part.
    pub part: u64,
    /// The number of the attempt among all attempts of the job, beginning with 1.
    pub number: u64,
}

/// What a job wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Run a part near its data: find or read its objects, call the function of the phase `map`
    /// for each, and reduce the results as the phase `prereduce` does. Without `map`, the results
    /// are the keys themselves ([`Input::to_term`]).
    Run {
        /// The attempt, which the answer names.
        attempt: Attempt,
        /// What it works on.
        work: Work,
        /// Where the last piece of results ended. Nothing before it may be in the results.
        from: Option<Bytes>,
        /// The phase whose function is called.
        map: Option<usize>,
        /// The phase that reduces the results.
        prereduce: Option<usize>,
    },
    /// Forget an attempt: nobody waits for its answer.
    Stop(Attempt),
    /// Call the function of a reduce phase, and answer with [`super::JobRun::reduced`].
    Reduce {
        /// The phase.
        phase: usize,
        /// The list that the function gets, in batches: [`Values::concat`].
        values: Vec<Values>,
    },
    /// Give results of a kept phase to the client. A job without phases gives its inputs as phase
    /// 0.
    Give {
        /// The phase.
        phase: usize,
        /// The results.
        values: Vec<Term>,
    },
    /// The job has ended. It is the last order.
    End(Result<(), Failure>),
}
