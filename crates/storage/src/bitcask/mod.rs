//! Bitcask: append-only files and an index in memory that knows where the current version of each key lies.
//!
//! What it is: one directory a partition, with data files (`<id>.data`, before the first
//! sync `<id>.fresh`), hint files (`<id>.hint`) and, while a merge
//! ends, commit files (`<id>.merged`). A put is one write call, a get is one read of known length.
//!
//! What it is not: it has no order and no secondary indexes. Riak's own files are read elsewhere.
//!
//! Invariants:
//! * a file that was closed is never appended to again;
//! * a hint file is there only when its data file was synced as a whole;
//! * the index points only at records that a write call has put in place.

mod budget;
mod config;
mod data_file;
mod factory;
mod head_cache;
mod index;
mod merge;
mod read;
mod recovery;
mod shared;
mod snapshot;
mod store;
mod upkeep;
mod writer;

pub use config::{BitcaskConfig, MergeConfig, MergePolicy, SyncStrategy};
pub use factory::BitcaskFactory;
