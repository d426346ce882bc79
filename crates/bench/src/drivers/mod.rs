//! What can be measured, and how it is spoken to (docs/riak/basho-bench.md §4).
//!
//! A driver is a [`Plan`], made once of the settings, and a [`Worker`] for each worker. This file is the list of them;
//! everything else about a driver is in its own folder.
//!
//! A worker is used in one of two ways. Where [`Worker::depth`] is 1, one operation at a time:
//!
//! ```text
//! let mut outcome = worker.run(operation, &mut draw).await;
//! while let Outcome::Retry(reason) = outcome {
//!     tally.failed(operation, &reason);                       // an attempt; the operation is still on
//!     outcome = worker.run(operation, &mut draw).await;       // goes on with the same key and value, after a pause
//! }
//! ```
//!
//! Where it is more, up to so many operations are in flight, and end in the order in which they began:
//!
//! ```text
//! while in_flight < worker.depth() && one is due {
//!     match worker.send(operation, &mut draw) {               // only writes into a buffer
//!         None => in_flight += 1,
//!         Some(outcome) => …                                  // over at once: `Stop` or `Failed`
//!     }
//! }
//! let Some((operation, outcome)) = worker.receive().await;    // writes the buffer out, waits for the oldest; never `Retry`
//! ```
//!
//! [`Worker::receive`] may be dropped while it waits (for the next operation that becomes due) and called again.
//! [`Worker::run`] may be dropped only at the end of the run.

pub mod embedded;
pub mod http;
mod network;
pub mod nhs;
pub mod null;
pub mod pb;
pub mod redis;
#[cfg(test)]
pub(crate) mod testing;

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
    /// It has not ended: the connection went. To be counted as an error; then `run` is to be called with the same
    /// operation again, which goes on with the same key and value after a pause of at most a second.
    Retry(Reason),
    /// The worker has nothing more to do.
    Stop,
}

/// The outcome of most operations.
pub const DONE: Outcome = Outcome::Done { units: 1 };

/// Something that keeps a run from starting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DriverError(pub String);

/// What [`Plan::prepare`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The operations (by their place) that cannot be done, and why.
    pub unsupported: Vec<(usize, String)>,
    /// What was set up differently from what was configured, or is worth a line in the report.
    pub notes: Vec<String>,
}

/// A driver with its settings.
#[derive(Debug)]
pub enum Plan {
    /// `basho_bench_driver_riakc_pb`.
    Pb(pb::PbPlan),
    /// `basho_bench_driver_http_raw`, `basho_bench_driver_http_ibrowse`.
    HttpRaw(http::HttpPlan),
    /// `basho_bench_driver_nhs`.
    Nhs(nhs::NhsPlan),
    /// `ombak_embedded`, `basho_bench_driver_bitcask`: an engine in this process.
    Embedded(embedded::EmbeddedPlan),
    /// `basho_bench_driver_redis`.
    Redis(redis::RedisPlan),
    /// `basho_bench_driver_null`.
    Null(null::NullPlan),
}

/// A driver's part in one worker.
#[derive(Debug)]
pub enum Worker {
    /// `basho_bench_driver_riakc_pb`.
    Pb(pb::PbWorker),
    /// `basho_bench_driver_http_raw`, `basho_bench_driver_http_ibrowse`.
    HttpRaw(http::HttpWorker),
    /// `basho_bench_driver_nhs`.
    Nhs(nhs::NhsWorker),
    /// An engine in this process.
    Embedded(embedded::EmbeddedWorker),
    /// `basho_bench_driver_redis`.
    Redis(redis::RedisWorker),
    /// `basho_bench_driver_null`.
    Null(null::NullWorker),
}

/// The drivers' names, for the person who mistyped one.
const NAMES: [&str; 8] = [
    "basho_bench_driver_riakc_pb",
    "basho_bench_driver_http_raw",
    "basho_bench_driver_http_ibrowse",
    "basho_bench_driver_nhs",
    "basho_bench_driver_bitcask",
    "ombak_embedded",
    "basho_bench_driver_redis",
    "basho_bench_driver_null",
];

/// Beyond, workers that block share threads and wait for each other.
const BLOCKING_THREADS_MAX: usize = 256;

impl Plan {
    /// What `driver` is where a configuration names none.
    pub const DRIVER_DEFAULT: &str = "basho_bench_driver_http_raw";

    /// The driver that `driver` names, with its settings and the operations that it is to know.
    pub fn new(driver: &str, settings: &Settings, operations: &[Operation]) -> Result<Self, ConfigError> {
        Ok(match driver {
            "basho_bench_driver_riakc_pb" => Self::Pb(pb::PbPlan::new(settings, operations)?),
            "basho_bench_driver_http_raw" | "basho_bench_driver_http_ibrowse" => {
                Self::HttpRaw(http::HttpPlan::new(settings, operations)?)
            }
            "basho_bench_driver_nhs" => Self::Nhs(nhs::NhsPlan::new(settings, operations)?),
            _ if EMBEDDED.contains(&driver) => {
                Self::Embedded(embedded::EmbeddedPlan::new(driver, settings, operations)?)
            }
            "basho_bench_driver_redis" => Self::Redis(redis::RedisPlan::new(settings, operations)?),
            "basho_bench_driver_null" => Self::Null(null::NullPlan::new(settings, operations)?),
            _ => {
                let what = format!("there is no driver '{driver}'; there are {}", NAMES.join(", "));
                return Err(ConfigError::setting("driver", what));
            }
        })
    }

    /// What it will do, in words, one thing a line.
    pub fn describe(&self) -> Vec<String> {
        match self {
            Self::Pb(plan) => plan.describe(),
            Self::HttpRaw(plan) => plan.describe(),
            Self::Nhs(plan) => plan.describe(),
            Self::Embedded(plan) => plan.describe(),
            Self::Redis(plan) => plan.describe(),
            Self::Null(plan) => plan.describe(),
        }
    }

    /// Looks whether what is measured is there and can do what is asked for, and sets it up. With `skip_unsupported` a
    /// setting that what is measured cannot honour is lowered to one that it can, which a note says.
    pub async fn prepare(&mut self, skip_unsupported: bool) -> Result<Prepared, DriverError> {
        match self {
            Self::Pb(plan) => plan.prepare().await,
            Self::HttpRaw(plan) => plan.prepare().await,
            Self::Nhs(plan) => plan.prepare(skip_unsupported).await,
            Self::Embedded(plan) => plan.prepare().await,
            Self::Redis(plan) => plan.prepare().await,
            Self::Null(plan) => plan.prepare().await,
        }
    }

    /// On how many threads its workers are to be, at most: those that wait by blocking need one each.
    pub fn threads(&self, processors: usize) -> usize {
        match self {
            Self::Embedded(_) | Self::Redis(_) => BLOCKING_THREADS_MAX,
            Self::Pb(_) | Self::HttpRaw(_) | Self::Nhs(_) | Self::Null(_) => processors,
        }
    }

    /// The driver's part in worker `worker` (from 1).
    pub async fn connect(&self, worker: usize) -> Result<Worker, DriverError> {
        Ok(match self {
            Self::Pb(plan) => Worker::Pb(plan.connect(worker).await?),
            Self::HttpRaw(plan) => Worker::HttpRaw(plan.connect(worker).await?),
            Self::Nhs(plan) => Worker::Nhs(plan.connect(worker).await?),
            Self::Embedded(plan) => Worker::Embedded(plan.connect().await?),
            Self::Redis(plan) => Worker::Redis(plan.connect(worker).await?),
            Self::Null(plan) => Worker::Null(plan.connect().await?),
        })
    }
}

/// Drivers of engines, ours and those of basho_bench.
const EMBEDDED: [&str; 6] = [
    "ombak_embedded",
    "basho_bench_driver_bitcask",
    "basho_bench_driver_eleveldb",
    "basho_bench_driver_eldb",
    "basho_bench_driver_leveled",
    "basho_bench_driver_ets",
];

impl Worker {
    /// Does one operation. After [`Outcome::Retry`] it has to be the same one.
    pub async fn run(&mut self, operation: usize, draw: &mut Draw) -> Outcome {
        match self {
            Self::Pb(worker) => worker.run(operation, draw).await,
            Self::HttpRaw(worker) => worker.run(operation, draw).await,
            Self::Nhs(worker) => worker.run(operation, draw).await,
            Self::Embedded(worker) => worker.run(operation, draw).await,
            Self::Redis(worker) => worker.run(operation, draw).await,
            Self::Null(worker) => worker.run(operation, draw).await,
        }
    }

    /// How many operations are to be in flight at once: with 1 [`Worker::run`] does them, with more [`Worker::send`] and
    /// [`Worker::receive`].
    pub fn depth(&self) -> usize {
        match self {
            Self::Pb(worker) => worker.depth(),
            _ => 1,
        }
    }

    /// Begins an operation: writes its request into a buffer, without waiting. An outcome means that it is over already.
    pub fn send(&mut self, operation: usize, draw: &mut Draw) -> Option<Outcome> {
        match self {
            Self::Pb(worker) => worker.send(operation, draw),
            _ => Some(Outcome::Failed(Cow::Borrowed("not_pipelined"))),
        }
    }

    /// Writes out what was begun and waits for the oldest operation to end; `None` when none is in flight. May be dropped
    /// while it waits.
    pub async fn receive(&mut self) -> Option<(usize, Outcome)> {
        match self {
            Self::Pb(worker) => worker.receive().await,
            _ => None,
        }
    }
}
