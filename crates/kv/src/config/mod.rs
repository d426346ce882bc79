//! The configuration of an engine.

mod kv_config;

pub use kv_config::{DeleteMode, KvConfig, ObjectLimits, ReadRepairLimits, WithoutMajority};
