//! What was counted.
//!
//! Each thread counts in a [`Tally`] of its own; merged, it makes a [`Window`] of the statistics; the windows of a run and
//! its totals are a [`Run`].
//!
//! Invariants:
//! * counting allocates nothing, but for a reason for errors that was not seen before, and there is a bound on those;
//! * failed operations have no latency (docs/riak/basho-bench.md §5);
//! * least, mean and greatest are exact, quantiles are within 0.1 % and never beyond the greatest.

mod run;
mod tally;
#[cfg(test)]
mod tests;
mod window;

pub use run::{ErrorTotal, Origin, Run, RunFileError};
pub use tally::{ErrorCount, OTHER_REASONS, REASONS_MAX, Tally};
pub use window::{QueueDelay, Summary, Window};
