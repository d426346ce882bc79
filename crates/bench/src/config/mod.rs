//! From terms to a plan.

mod error;
mod settings;

pub use error::ConfigError;
pub use settings::Settings;

use crate::drivers;
use crate::generators::{KeySpec, ValueSpec};
use crate::term::Term;
use std::time::Duration;

/// How fast workers go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// One operation after the other, without a pause.
    Max,
    /// Operations per second and worker: each is due at its time, whatever became of the one before.
    Rate(f64),
}

/// One of the things that workers do.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// What files and charts call it: basho_bench's label (spec/basho-bench.md §6.2).
    pub label: String,
    /// What the driver is told.
    pub term: Term,
    /// How often, relative to the others.
    pub weight: u32,
}

/// A run as it was configured.
#[derive(Debug)]
pub struct Config {
    /// How fast.
    pub mode: Mode,
    /// How long; `None` until it is interrupted.
    pub duration: Option<Duration>,
    /// How many workers.
    pub concurrent: usize,
    /// What they do. The place in this list is what drivers and statistics know an operation by.
    pub operations: Vec<Operation>,
    /// Keys.
    pub keys: KeySpec,
    /// Values.
    pub values: ValueSpec,
    /// The width of a window of the statistics.
    pub report_interval: Duration,
    /// What the workers' random numbers begin with: worker k uses each of the three plus k.
    pub rng_seed: [u64; 3],
    /// Ends the run at the first error.
    pub shutdown_on_error: bool,
    /// What is measured and how it is spoken to.
    pub driver: drivers::Plan,
    /// What was accepted and means less here than in basho_bench.
    pub warnings: Vec<String>,
}
