//! Reads configuration files and checks them.
//!
//! What it is: [`Settings`] holds the terms as they were written, [`scale`] reduces them to a
//! smaller run, and [`Config`] is the checked meaning of the settings.
//!
//! What it is not: generators and drivers interpret their own settings.
//!
//! Invariants: a setting that would affect the measurement and cannot be honoured is refused by
//! name. A setting without effect causes a warning.

mod error;
mod globals;
mod keys;
mod operations;
mod scale;
mod settings;
pub(crate) mod words;

pub use error::ConfigError;
pub use scale::{Scaled, scale};
pub use settings::Settings;

use crate::drivers;
use crate::generators::{KeySpec, PoolSettings, ValueSpec};
use crate::term::Term;
use std::path::Path;
use std::time::Duration;

/// How fast workers run operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// One operation after the other, without a pause.
    Max,
    /// This many operations per second and worker. Each operation is due at its own time, however
    /// long the one before takes.
    Rate(f64),
}

/// An operation that workers run.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The name in files and charts: basho_bench's label (docs/riak/basho-bench.md §6.2).
    pub label: String,
    /// The term that the driver gets.
    pub term: Term,
    /// How often it runs, relative to the other operations.
    pub weight: u32,
}

/// The checked configuration of a run.
#[derive(Debug)]
pub struct Config {
    /// How fast workers run operations.
    pub mode: Mode,
    /// How long the run lasts. `None` means until it is interrupted.
    pub duration: Option<Duration>,
    /// The number of workers.
    pub concurrent: usize,
    /// The operations. Drivers and statistics identify an operation by its index in this list.
    pub operations: Vec<Operation>,
    /// The key generator.
    pub keys: KeySpec,
    /// The value generator.
    pub values: ValueSpec,
    /// Settings that the generators share.
    pub pools: PoolSettings,
    /// The width of one window of the statistics.
    pub report_interval: Duration,
    /// The seed of the workers' random numbers: worker k adds k to each of the three parts.
    pub rng_seed: [u64; 3],
    /// Whether the run ends at the first error.
    pub shutdown_on_error: bool,
    /// The driver with its settings.
    pub driver: drivers::Plan,
    /// The terms from which this configuration was read.
    pub settings: Settings,
    /// Accepted settings that have less effect here than in basho_bench.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads files in order. A setting in a later file overrides an earlier one.
    pub fn from_files<P: AsRef<Path>>(files: &[P]) -> Result<Self, ConfigError> {
        Self::from_settings(Settings::from_files(files)?)
    }

    /// Reads a configuration from text.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        Self::from_settings(Settings::from_text("configuration", text)?)
    }

    /// Interprets and checks settings.
    pub fn from_settings(settings: Settings) -> Result<Self, ConfigError> {
        let warnings = keys::check(&settings)?;
        let operations = operations::operations(&settings)?;
        let rng_seed = globals::rng_seed(&settings)?;
        Ok(Self {
            mode: globals::mode(&settings)?,
            duration: globals::duration(&settings)?,
            concurrent: globals::concurrent(&settings)?,
            keys: KeySpec::parse(&globals::key_generator(&settings))?,
            values: ValueSpec::parse(&globals::value_generator(&settings))?,
            report_interval: globals::report_interval(&settings)?,
            pools: PoolSettings::read(&settings, rng_seed)?,
            rng_seed,
            shutdown_on_error: globals::shutdown_on_error(&settings)?,
            driver: drivers::Plan::new(globals::driver(&settings)?, &settings, &operations)?,
            operations,
            settings,
            warnings,
        })
    }
}
