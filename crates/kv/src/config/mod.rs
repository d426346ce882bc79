//! The configuration of an engine, and the clocks that it is given.

pub mod clock;
mod kv_config;

pub use kv_config::{DeleteMode, KvConfig, ObjectLimits};
