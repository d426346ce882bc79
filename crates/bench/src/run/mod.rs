//! Runs a configuration: workers, threads and time.
//!
//! What it is: [`run`] takes a configuration and starts its workers on one thread per processor, or
//! on more threads if the driver's workers block. It closes a window of the statistics after each
//! report interval. The run ends after its duration, at the first error if that is configured, or
//! when it is interrupted. Files and report are written in every case.
//!
//! What it is not: it knows no details of drivers or generators, and it draws no charts.
//!
//! Invariants:
//! * With a given rate, each operation is due at its own time, however long earlier ones take. If
//!   its worker was busy at that time, its latency is measured from then. How late it began is
//!   counted separately.
//! * Threads share no data while they run operations; each counts for itself.
//! * The wait for unfinished operations at the end is limited.

mod live;
mod mix;
mod results;
mod runner;
mod schedule;
mod server_facts;
mod stop;
mod worker;
mod worker_threads;

pub use runner::{Ending, Options, RunError, print_summary, run};
