//! The driver `basho_bench_driver_null`, which measures only the load generator itself
//! (docs/riak/basho-bench.md §4.4).

use super::{DONE, DriverError, Outcome, Prepared, Reason};
use crate::config::{ConfigError, Operation, Settings};
use crate::generators::Draw;
use crate::term::Term;

/// The operations of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NullOperation {
    Nothing,
    /// Draws a key and a value.
    Draw,
    Error(&'static str),
}

/// The driver. It has no settings.
#[derive(Clone, Debug)]
pub struct NullPlan {
    operations: Vec<NullOperation>,
}

/// One worker.
#[derive(Clone, Debug)]
pub struct NullWorker {
    operations: Vec<NullOperation>,
}

impl NullPlan {
    pub(super) fn new(_settings: &Settings, operations: &[Operation]) -> Result<Self, ConfigError> {
        let operations = operations.iter().map(|operation| parse(&operation.term)).collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }

    pub(super) fn describe(&self) -> Vec<String> {
        vec!["no server; this driver measures ombak-bench itself".into()]
    }

    pub(super) async fn prepare(&mut self) -> Result<Prepared, DriverError> {
        Ok(Prepared::default())
    }

    pub(super) async fn connect(&self) -> Result<NullWorker, DriverError> {
        Ok(NullWorker { operations: self.operations.clone() })
    }
}

fn parse(term: &Term) -> Result<NullOperation, ConfigError> {
    const KNOWN: &str = "absolutely_nothing, do_something, do_something_else, an_error, another_error";
    match term {
        Term::Atom(name) => match name.as_str() {
            "absolutely_nothing" => return Ok(NullOperation::Nothing),
            "do_something" | "do_something_else" | "get" | "put" => return Ok(NullOperation::Draw),
            "an_error" => return Ok(NullOperation::Error("went_wrong")),
            "another_error" => return Ok(NullOperation::Error("went_wrong_again")),
            _ => {}
        },
        Term::Tuple(_) => {}
        _ => {
            return Err(ConfigError::setting(
                "operations",
                format!("{term} is not an operation; the operations are {KNOWN}"),
            ));
        }
    }
    Err(ConfigError::setting("operations", format!("the null driver does not support {term}; it supports {KNOWN}")))
}

impl NullWorker {
    pub(super) async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        match self.operations.get(operation) {
            Some(NullOperation::Draw) => match draw.pair() {
                Ok((key, value)) => {
                    std::hint::black_box((key, value));
                    DONE
                }
                Err(_) => Outcome::Stop,
            },
            Some(NullOperation::Error(reason)) => Outcome::Failed(Reason::Borrowed(reason)),
            Some(NullOperation::Nothing) | None => DONE,
        }
    }
}
