//! The drivers: what can be measured, and over which protocol (docs/riak/basho-bench.md §4).
//!
//! A driver consists of a [`Plan`], which is made once from the settings, and a [`Worker`] for each
//! worker of the run. This file lists the drivers. Everything else about a driver is in its own
//! folder.
//!
//! A worker is used in one of two ways. If [`Worker::depth`] is 1, it runs one operation at a time:
//!
//! ```text
//! let mut outcome = worker.run(operation, &mut draw).await;
//! while let Outcome::Retry(reason) = outcome {
//!     tally.failed(operation, &reason);                   // one attempt failed, not the operation
//!     outcome = worker.run(operation, &mut draw).await;   // pauses, then reuses key and value
//! }
//! ```
//!
//! If the depth is higher, up to that many operations are in flight. They end in the order in which
//! they began:
//!
//! ```text
//! while in_flight < worker.depth() && an operation is due {
//!     match worker.send(operation, &mut draw) {           // only writes to a buffer
//!         None => in_flight += 1,
//!         Some(outcome) => …                              // has ended already: `Stop` or `Failed`
//!     }
//! }
//! // Sends the buffer and waits for the oldest operation. The outcome is never `Retry`.
//! let Some((operation, outcome)) = worker.receive().await;
//! ```
//!
//! The future of [`Worker::receive`] may be dropped while it waits (because another operation
//! becomes due), and `receive` may be called again. The future of [`Worker::run`] may be dropped
//! only at the end of the run.

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

/// The reason of a failure, under which errors are counted.
pub type Reason = Cow<'static, str>;

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Done {
        /// The number of units that throughput counts. Most operations count as 1.
        units: u32,
    },
    /// It is not counted at all.
    Uncounted,
    /// It failed. Its latency is not recorded.
    Failed(Reason),
    /// It has not ended, because the connection was lost. The caller counts an error and calls
    /// `run` again with the same operation, which reuses key and value after a pause of at most a
    /// second.
    Retry(Reason),
    /// The worker has no more operations to run.
    Stop,
}

/// The outcome of most successful operations.
pub const DONE: Outcome = Outcome::Done { units: 1 };

/// An error that prevents a run from starting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DriverError(pub String);

/// The result of [`Plan::prepare`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The indices of operations that are not supported, with the reason.
    pub unsupported: Vec<(usize, String)>,
    /// Notes for the report, such as settings that differ from the configuration.
    pub notes: Vec<String>,
}

/// A driver with its settings.
#[derive(Debug)]
pub enum Plan {
    /// The driver `basho_bench_driver_riakc_pb`.
    Pb(pb::PbPlan),
    /// The drivers `basho_bench_driver_http_raw` and `basho_bench_driver_http_ibrowse`.
    HttpRaw(http::HttpPlan),
    /// The driver `basho_bench_driver_nhs`.
    Nhs(nhs::NhsPlan),
    /// The drivers `ombak_embedded`, `basho_bench_driver_bitcask` and others: an engine in this
    /// process.
    Embedded(embedded::EmbeddedPlan),
    /// The driver `basho_bench_driver_redis`.
    Redis(redis::RedisPlan),
    /// The driver `basho_bench_driver_null`.
    Null(null::NullPlan),
}

/// The driver's part of one worker.
#[derive(Debug)]
pub enum Worker {
    /// The driver `basho_bench_driver_riakc_pb`.
    Pb(pb::PbWorker),
    /// The drivers `basho_bench_driver_http_raw` and `basho_bench_driver_http_ibrowse`.
    HttpRaw(http::HttpWorker),
    /// The driver `basho_bench_driver_nhs`.
    Nhs(nhs::NhsWorker),
    /// An engine in this process.
    Embedded(embedded::EmbeddedWorker),
    /// The driver `basho_bench_driver_redis`.
    Redis(redis::RedisWorker),
    /// The driver `basho_bench_driver_null`.
    Null(null::NullWorker),
}

/// The names of the drivers, for an error message about an unknown one.
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

/// The highest number of threads for workers that block. If there are more workers, they share
/// threads and wait for each other.
const BLOCKING_THREADS_MAX: usize = 256;

impl Plan {
    /// The driver to use if a configuration names none.
    pub const DRIVER_DEFAULT: &str = "basho_bench_driver_http_raw";

    /// Creates the driver named `driver` with its settings, for these operations.
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
                let what = format!("there is no driver '{driver}'; the drivers are {}", NAMES.join(", "));
                return Err(ConfigError::setting("driver", what));
            }
        })
    }

    /// Describes in words what the driver will do, one fact per line.
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

    /// Checks that the measured system is available and supports the operations, and sets it up.
    /// With `skip_unsupported`, a setting that the system cannot honour is lowered to one that it
    /// can, and a note says so.
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

    /// Where the measured server answers `GET /stats` over HTTP, as far as the settings tell.
    pub fn stats_address(&self) -> Option<String> {
        match self {
            Self::Pb(plan) => plan.stats_address(),
            Self::HttpRaw(plan) => plan.stats_address(),
            Self::Nhs(plan) => plan.stats_address(),
            Self::Embedded(_) | Self::Redis(_) | Self::Null(_) => None,
        }
    }

    /// The highest number of threads for the workers. Workers that block need one thread each.
    pub fn threads(&self, processors: usize) -> usize {
        match self {
            Self::Embedded(_) | Self::Redis(_) => BLOCKING_THREADS_MAX,
            Self::Pb(_) | Self::HttpRaw(_) | Self::Nhs(_) | Self::Null(_) => processors,
        }
    }

    /// Creates the driver's part of worker `worker`, counted from 1.
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

/// The drivers of storage engines: Ombak's own and those of basho_bench.
const EMBEDDED: [&str; 6] = [
    "ombak_embedded",
    "basho_bench_driver_bitcask",
    "basho_bench_driver_eleveldb",
    "basho_bench_driver_eldb",
    "basho_bench_driver_leveled",
    "basho_bench_driver_ets",
];

impl Worker {
    /// Runs one operation. After [`Outcome::Retry`], the next call must have the same operation.
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

    /// How many operations are in flight at once. With 1, [`Worker::run`] runs them; with more,
    /// [`Worker::send`] and [`Worker::receive`] do.
    pub fn depth(&self) -> usize {
        match self {
            Self::Pb(worker) => worker.depth(),
            _ => 1,
        }
    }

    /// Begins an operation: writes its request to a buffer without waiting. If an outcome is
    /// returned, the operation has already ended.
    pub fn send(&mut self, operation: usize, draw: &mut Draw) -> Option<Outcome> {
        match self {
            Self::Pb(worker) => worker.send(operation, draw),
            _ => Some(Outcome::Failed(Cow::Borrowed("not_pipelined"))),
        }
    }

    /// Sends the operations that have begun and waits until the oldest one ends. `None` if no
    /// operation is in flight. The future may be dropped while it waits.
    pub async fn receive(&mut self) -> Option<(usize, Outcome)> {
        match self {
            Self::Pb(worker) => worker.receive().await,
            _ => None,
        }
    }
}
