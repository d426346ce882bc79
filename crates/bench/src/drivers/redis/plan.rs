//! The settings of the Redis driver.

use super::worker::{RedisOperation, RedisWorker};
use crate::config::{ConfigError, Operation, Settings};
use crate::drivers::{DriverError, Prepared};
use crate::term::Term;
use std::time::Duration;

const HOST_DEFAULT: &str = "127.0.0.1";
const PORT_DEFAULT: u16 = 6379;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Redis with its settings.
#[derive(Clone, Debug)]
pub struct RedisPlan {
    host: String,
    port: u16,
    operations: Vec<RedisOperation>,
}

impl RedisPlan {
    pub(in crate::drivers) fn new(settings: &Settings, operations: &[Operation]) -> Result<Self, ConfigError> {
        let host = match settings.get("redis_host") {
            None => HOST_DEFAULT.to_owned(),
            Some(Term::Text(host)) => host.clone(),
            Some(other) => {
                return Err(ConfigError::setting("redis_host", format!("{other} is no text, such as \"127.0.0.1\"")));
            }
        };
        let port = match settings.get("redis_port") {
            None => PORT_DEFAULT,
            Some(Term::Integer(port)) if (1..=65535).contains(port) => *port as u16,
            Some(other) => return Err(ConfigError::setting("redis_port", format!("{other} is no port (1 to 65535)"))),
        };
        let operations =
            operations.iter().map(|operation| RedisOperation::parse(&operation.term)).collect::<Result<_, _>>()?;
        Ok(Self { host, port, operations })
    }

    pub(in crate::drivers) fn describe(&self) -> Vec<String> {
        vec![format!("driver: Redis at {}:{}; a key is its own name there", self.host, self.port)]
    }

    pub(in crate::drivers) async fn prepare(&mut self) -> Result<Prepared, DriverError> {
        let mut connection = self.open()?;
        let pong = redis::cmd("PING").query::<String>(&mut connection);
        match pong {
            Ok(_) => Ok(Prepared::default()),
            Err(error) => {
                Err(DriverError(format!("{}:{} does not answer as Redis does: {error}", self.host, self.port)))
            }
        }
    }

    pub(in crate::drivers) async fn connect(&self) -> Result<RedisWorker, DriverError> {
        Ok(RedisWorker::new(self.open()?, &self.operations))
    }

    fn open(&self) -> Result<redis::Connection, DriverError> {
        let failed = |error| DriverError(format!("cannot connect to Redis at {}:{}: {error}", self.host, self.port));
        let client = redis::Client::open((self.host.clone(), self.port)).map_err(failed)?;
        let connection = client.get_connection_with_timeout(TIMEOUT).map_err(failed)?;
        connection.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
        connection.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
        Ok(connection)
    }
}
