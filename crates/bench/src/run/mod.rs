//! Workers, threads and time.
//!
//! What it is: [`run`] takes a configuration, lets its workers loose on as many threads as there are processors, closes a
//! window of the statistics at each report interval, and ends in time, at the first error if that was asked for, or when
//! it is interrupted; the files and the report are written in every case.
//!
//! What it is not: it knows no driver and no generator, and draws nothing.
//!
//! Invariants:
//! * with a given rate an operation is due at its time, whatever became of those before it; its latency counts from there
//!   if its worker was busy then, and how late it began is counted by itself;
//! * threads share nothing on the path of an operation but the clock: each counts by itself;
//! * the end is waited for with a limit.

mod crew;
mod live;
mod mix;
mod results;
mod runner;
mod schedule;
mod stop;
mod worker;

pub use runner::{Ending, Options, RunError, print_summary, run};
