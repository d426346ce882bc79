//! What can be measured, and how it is spoken to (spec/basho-bench.md §4).
//!
//! A driver is a [`Plan`], made once of the settings, and a [`Worker`] for each worker. This file is the list of them;
//! everything else about a driver is in its own folder.

use crate::config::{ConfigError, Operation, Settings};
use crate::generators::Draw;
use std::borrow::Cow;

/// Why an operation failed, as errors are counted by.
pub type Reason = Cow<'static, str>;

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what it should, so many times.
    Done {
        /// What throughput counts: 1 for most.
        units: u32,
    },
    /// It counts for nothing.
    Silent,
    /// It failed; its latency is not recorded.
    Failed(Reason),
    /// The worker has nothing more to do.
    Stop,
}

/// Something that keeps a run from starting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DriverError(pub String);

/// A driver with its settings.
#[derive(Debug)]
pub enum Plan {}

/// A driver's part in one worker.
#[derive(Debug)]
pub enum Worker {}

impl Plan {
    /// The driver that `driver` names, with its settings and the operations that it is to know.
    pub fn new(driver: &str, _settings: &Settings, _operations: &[Operation]) -> Result<Self, ConfigError> {
        Err(ConfigError::setting("driver", format!("there is no driver '{driver}'")))
    }

    /// What it will do, in words, one thing a line.
    pub fn describe(&self) -> Vec<String> {
        match *self {}
    }

    /// Looks whether what is measured is there and can do what is asked for, and sets it up. Answers which operations (by their
    /// place) it cannot do, and why.
    pub async fn prepare(&mut self) -> Result<Vec<(usize, String)>, DriverError> {
        match *self {}
    }

    /// The driver's part in worker `worker` (from 1).
    pub async fn connect(&self, _worker: usize) -> Result<Worker, DriverError> {
        match *self {}
    }
}

impl Worker {
    /// Does one operation.
    pub async fn run(&mut self, _operation: usize, _draw: &mut Draw) -> Outcome {
        match *self {}
    }
}
