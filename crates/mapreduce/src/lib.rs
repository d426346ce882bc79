//! MapReduce jobs (docs/riak/http-api.md §7, docs/design/mapreduce.md).
//!
//! What it is: jobs in their two encodings, key filters, Riak's built-in functions, links, the
//! object as functions in JavaScript see it, results and failures as clients get them, and the
//! course of a job as a state machine ([`JobRun`]).
//!
//! What it is not: it has no I/O, no clock and no threads, and runs no JavaScript. Whoever runs a
//! job reads objects, calls functions and sends values, and tells the state machine.
//!
//! Invariants:
//! * Requests are not trusted: every number, nesting and length is bounded.
//! * Values are Erlang's terms, as in Riak, whatever the encoding of the request.
//! * The results of a part of a job count once, when all of them are there, or not at all.
//! * What a job holds is bounded; a job that needs more fails or waits.
//! * A run takes no key as an input, and reads no object, before its [`BucketAccess`] has allowed
//!   the bucket, wherever the keys come from. Only shares of a bucket are taken as checked, because
//!   the request names it.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod answer;
mod bucket_access;
mod filter;
mod input;
mod input_list;
mod job;
mod link;
mod native;
mod object_json;
mod run;
mod term;

pub use answer::{Collected, Encoding, Failure, InputsFailure, InputsProblem, PhaseFailure, TooLarge};
pub use bucket_access::BucketAccess;
pub use filter::{BadFilter, KeyFilter, Over};
pub use input::Input;
pub use input_list::{InputList, InputListBuilder, InputListIter};
pub use job::{
    Batching, Buckets, IndexQuery, Inputs, Job, JobError, Mapper, PHASES_MAX, Phase, Reducer, ScriptSource,
    TIMEOUT_DEFAULT, Why,
};
pub use link::LinkMatch;
pub use native::{MapFunction, Mapped, NativeError, ReduceFunction};
pub use object_json::{BadObject, not_found_term, object_from_json, object_to_json, object_to_readable_json};
pub use run::{Attempt, JobRun, Leftovers, Order, RunLimits, Source, Work};
pub use term::{NotJson, Values, bytes_held, compare, from_json, to_json};
