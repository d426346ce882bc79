//! The configuration of an engine.

mod kv_config;
mod scrub_config;
mod transfer_config;
mod trees_config;
mod worker_pools;

pub use kv_config::{DeleteMode, KvConfig, ObjectLimits, ReadRepairLimits, WithoutMajority};
pub use scrub_config::ScrubConfig;
pub use transfer_config::TransferConfig;
pub use trees_config::{KeepTrees, TreesConfig};
pub use worker_pools::{PoolStrategy, WorkerPools};
