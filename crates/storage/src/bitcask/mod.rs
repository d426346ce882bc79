//! Bitcask: append-only files and an index in memory that knows where the current version of each key lies.

mod config;
mod factory;

pub use config::{BitcaskConfig, MergeConfig, MergePolicy, SyncStrategy};
pub use factory::BitcaskFactory;
