//! Stub.
use super::{DriverError, Outcome, Prepared};
use crate::config::{ConfigError, Operation, Settings};
use crate::generators::Draw;
pub(super) mod terms;

/// The driver with its settings.
#[derive(Debug)]
pub struct NhsPlan {}

/// The driver's part in one worker.
#[derive(Debug)]
pub struct NhsWorker {}

impl NhsPlan {
    /// Reads the settings.
    pub fn new(_settings: &Settings, _operations: &[Operation]) -> Result<Self, ConfigError> {
        Err(ConfigError::setting("driver", "this driver is being built"))
    }
    /// In words.
    pub fn describe(&self) -> Vec<String> {
        Vec::new()
    }
    /// Looks.
    pub async fn prepare(&mut self, _skip: bool) -> Result<Prepared, DriverError> {
        Ok(Prepared::default())
    }
    /// Connects.
    pub async fn connect(&self, _worker: usize) -> Result<NhsWorker, DriverError> {
        Ok(NhsWorker {})
    }
}

impl NhsWorker {
    /// Does one operation.
    pub async fn run(&mut self, _operation: usize, _draw: &mut Draw) -> Outcome {
        Outcome::Stop
    }
}
