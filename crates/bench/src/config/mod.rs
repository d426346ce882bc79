//! From terms to a plan.
//!
//! What it is: [`Settings`] are terms as they were written; [`scale`] makes smaller ones of them; a [`Config`] is what they
//! mean, checked.
//!
//! What it is not: what generators and drivers make of their own settings is theirs.
//!
//! Invariants: a setting that would change what is measured and cannot be honoured is refused by name; one without effect
//! is warned of.

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
    /// What files and charts call it: basho_bench's label (docs/riak/basho-bench.md §6.2).
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
    /// What generators share.
    pub pools: PoolSettings,
    /// The width of a window of the statistics.
    pub report_interval: Duration,
    /// What the workers' random numbers begin with: worker k uses each of the three plus k.
    pub rng_seed: [u64; 3],
    /// Ends the run at the first error.
    pub shutdown_on_error: bool,
    /// What is measured and how it is spoken to.
    pub driver: drivers::Plan,
    /// The terms that all this was read from.
    pub settings: Settings,
    /// What was accepted and means less here than in basho_bench.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads files one after the other; later ones win.
    pub fn from_files<P: AsRef<Path>>(files: &[P]) -> Result<Self, ConfigError> {
        Self::from_settings(Settings::from_files(files)?)
    }

    /// Reads text.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        Self::from_settings(Settings::from_text("configuration", text)?)
    }

    /// Makes sense of settings.
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
