//! A registered function, and what names it.

use super::open_record::OpenRecord;
use bytes::Bytes;
use ombak_types::Bucket;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A registered function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRecord {
    /// Its source.
    pub source: Arc<str>,
    /// A hash of the source. Each source that a name has had has another one.
    pub digest: u64,
    /// The number of the change that made it so; 0 without a cluster.
    pub version: u64,
}

impl FunctionRecord {
    /// The record of a source.
    pub fn new(source: Arc<str>, version: u64) -> Self {
        let digest = xxh3_64(source.as_bytes());
        Self { source, digest, version }
    }

    /// The function that a record holds.
    pub(super) fn of(record: &OpenRecord) -> Self {
        Self::new(record.value.clone(), record.version)
    }
}

/// What names a function as a commit hook.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookUser {
    /// A bucket type.
    Type(Bytes),
    /// A bucket with hooks of its own.
    Bucket(Bucket),
}
