//! One connection to Redis. It waits by blocking its thread: the driver asks for one a worker.

use crate::config::ConfigError;
use crate::drivers::{DONE, Outcome, Reason};
use crate::generators::Draw;
use crate::term::Term;
use redis::{Cmd, Connection, ConnectionLike, RedisResult, Value};

/// What Redis is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedisOperation {
    Get,
    Put,
    Delete,
}

impl RedisOperation {
    pub(super) fn parse(term: &Term) -> Result<Self, ConfigError> {
        match term {
            Term::Atom(name) if name == "get" => Ok(Self::Get),
            Term::Atom(name) if name == "put" || name == "set" => Ok(Self::Put),
            Term::Atom(name) if name == "delete" => Ok(Self::Delete),
            other => Err(ConfigError::setting(
                "operations",
                format!("the Redis driver does not know {other}; it knows get, put and delete"),
            )),
        }
    }
}

/// One connection to Redis.
pub struct RedisWorker {
    connection: Connection,
    operations: Vec<RedisOperation>,
}

impl std::fmt::Debug for RedisWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisWorker").field("operations", &self.operations).finish_non_exhaustive()
    }
}

impl RedisWorker {
    pub(super) fn new(connection: Connection, operations: &[RedisOperation]) -> Self {
        Self { connection, operations: operations.to_vec() }
    }

    pub(in crate::drivers) async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        let Some(operation) = self.operations.get(operation).copied() else { return Outcome::Stop };
        let answer = match operation {
            RedisOperation::Put => {
                let Ok((key, value)) = draw.pair() else { return Outcome::Stop };
                self.ask(Cmd::new().arg("SET").arg(key).arg(value))
            }
            RedisOperation::Get | RedisOperation::Delete => {
                let Ok(key) = draw.key() else { return Outcome::Stop };
                self.ask(Cmd::new().arg(if operation == RedisOperation::Get { "GET" } else { "DEL" }).arg(key))
            }
        };
        let expected = |value: &Value| match operation {
            RedisOperation::Put => *value == Value::Okay,
            RedisOperation::Get => matches!(value, Value::BulkString(_) | Value::Nil),
            RedisOperation::Delete => matches!(value, Value::Int(_)),
        };
        match answer {
            Ok(value) if expected(&value) => DONE,
            Ok(_) => Outcome::Failed(Reason::Borrowed("unexpected_answer")),
            Err(error) if error.is_timeout() => Outcome::Failed(Reason::Borrowed("timeout")),
            Err(error) => Outcome::Failed(Reason::Owned(error.to_string())),
        }
    }

    fn ask(&mut self, command: &Cmd) -> RedisResult<Value> {
        self.connection.req_command(command)
    }
}
