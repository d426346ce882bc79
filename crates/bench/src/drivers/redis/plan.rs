//! The settings of the Redis driver.

use super::worker::{RedisOperation, RedisWorker};
use crate::config::{ConfigError, Operation, Settings};
use crate::drivers::network::{Reasons, SettingsReader, Target, of_worker};
use crate::drivers::{DriverError, Prepared};
use std::time::Duration;

const PORT_DEFAULT: u16 = 6379;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The Redis driver with its settings.
#[derive(Clone, Debug)]
pub struct RedisPlan {
    targets: Vec<Target>,
    operations: Vec<RedisOperation>,
    /// The texts of errors from the servers.
    reasons: Reasons,
}

impl RedisPlan {
    pub(in crate::drivers) fn new(settings: &Settings, operations: &[Operation]) -> Result<Self, ConfigError> {
        let targets = SettingsReader(settings).targets("redis_ips", "redis_port", PORT_DEFAULT)?;
        let operations =
            operations.iter().map(|operation| RedisOperation::parse(&operation.term)).collect::<Result<_, _>>()?;
        Ok(Self { targets, operations, reasons: Reasons::default() })
    }

    pub(in crate::drivers) fn describe(&self) -> Vec<String> {
        let targets: Vec<String> = self.targets.iter().map(Target::to_string).collect();
        vec![format!("Redis at {}", targets.join(", "))]
    }

    pub(in crate::drivers) async fn prepare(&mut self) -> Result<Prepared, DriverError> {
        for target in &self.targets {
            let answer = redis::cmd("PING").query::<String>(&mut open(target)?);
            answer.map_err(|error| DriverError(format!("{target} does not answer as Redis does: {error}")))?;
        }
        Ok(Prepared::default())
    }

    pub(in crate::drivers) async fn connect(&self, worker: usize) -> Result<RedisWorker, DriverError> {
        let target = of_worker(&self.targets, worker).ok_or(DriverError("redis_ips is empty".into()))?;
        Ok(RedisWorker::new(target, open(target)?, &self.operations, &self.reasons))
    }
}

/// Opens a connection whose exchanges have time limits.
pub(super) fn open(target: &Target) -> Result<redis::Connection, DriverError> {
    let failed = |error| DriverError(format!("cannot connect to Redis at {target}: {error}"));
    let client = redis::Client::open((target.host.to_string(), target.port)).map_err(failed)?;
    let connection = client.get_connection_with_timeout(CONNECT_TIMEOUT).map_err(failed)?;
    connection.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
    connection.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
    Ok(connection)
}
