//! Statistics of a run.
//!
//! Each thread counts in a [`Tally`] of its own. Merged tallies make a [`Window`] of the
//! statistics. The windows of a run and its totals are a [`Run`].
//!
//! Invariants:
//! * Counting allocates nothing, except for a new error reason, and the number of reasons is
//!   bounded.
//! * Failed operations have no latency (docs/riak/basho-bench.md §5).
//! * Minimum, mean and maximum are exact. Quantiles are within 0.1 % and never above the maximum.

mod run;
mod tally;
#[cfg(test)]
mod tests;
mod window;

pub use run::{ErrorTotal, Origin, Run, RunFileError};
pub use tally::{ErrorCount, OTHER_REASONS, REASONS_MAX, Tally};
pub use window::{QueueDelay, Summary, Window};
