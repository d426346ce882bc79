//! Stub.
use super::{DriverError, Outcome, Prepared};
use crate::config::{ConfigError, Operation, Settings};
use crate::generators::Draw;

/// The driver with its settings.
#[derive(Debug)]
pub struct HttpPlan {}

/// The driver's part in one worker.
#[derive(Debug)]
pub struct HttpWorker {}

impl HttpPlan {
    /// Reads the settings.
    pub fn new(_settings: &Settings, _operations: &[Operation]) -> Result<Self, ConfigError> {
        Err(ConfigError::setting("driver", "this driver is being built"))
    }
    /// In words.
    pub fn describe(&self) -> Vec<String> {
        Vec::new()
    }
    /// Looks.
    pub async fn prepare(&mut self) -> Result<Prepared, DriverError> {
        Ok(Prepared::default())
    }
    /// Connects.
    pub async fn connect(&self, _worker: usize) -> Result<HttpWorker, DriverError> {
        Ok(HttpWorker {})
    }
}

impl HttpWorker {
    /// Does one operation.
    pub async fn run(&mut self, _operation: usize, _draw: &mut Draw) -> Outcome {
        Outcome::Stop
    }
}
