//! The configuration of an engine.

mod kv_config;
mod transfer_config;

pub use kv_config::{DeleteMode, KvConfig, ObjectLimits, ReadRepairLimits, WithoutMajority};
pub use transfer_config::TransferConfig;
