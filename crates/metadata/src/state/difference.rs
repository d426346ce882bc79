//! What differs between the bucket types, buckets and functions of two states.

use super::functions::FunctionRecord;
use super::metadata::Metadata;
use super::records::{BucketRecord, TypeRecord};
use bytes::Bytes;
use imbl::ordmap::DiffItem;
use ombak_types::Bucket;
use std::sync::Arc;

/// A bucket type, bucket or function whose record differs, with the newer record; `None` when it
/// has none any more.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedRecord {
    /// A bucket type.
    Type(Bytes, Option<TypeRecord>),
    /// A bucket.
    Bucket(Bucket, Option<BucketRecord>),
    /// A function.
    Function(Arc<str>, Option<FunctionRecord>),
}

/// The records that differ between two states, types first. Parts that both states share are
/// skipped: after one change this takes O(log n), whatever the number of buckets.
pub fn changed_records(old: &Metadata, new: &Metadata) -> Vec<ChangedRecord> {
    let types = old.types.diff(&new.types).map(|item| match item {
        DiffItem::Add(name, record) | DiffItem::Update { new: (name, record), .. } => {
            ChangedRecord::Type(name.clone(), Some(record.clone()))
        }
        DiffItem::Remove(name, _) => ChangedRecord::Type(name.clone(), None),
    });
    let buckets = old.buckets.diff(&new.buckets).map(|item| match item {
        DiffItem::Add(bucket, record) | DiffItem::Update { new: (bucket, record), .. } => {
            ChangedRecord::Bucket(bucket.clone(), Some(record.clone()))
        }
        DiffItem::Remove(bucket, _) => ChangedRecord::Bucket(bucket.clone(), None),
    });
    let functions = old.functions().diff(new.functions()).map(|item| match item {
        DiffItem::Add(name, record) | DiffItem::Update { new: (name, record), .. } => {
            ChangedRecord::Function(name.clone(), Some(record.clone()))
        }
        DiffItem::Remove(name, _) => ChangedRecord::Function(name.clone(), None),
    });
    types.chain(buckets).chain(functions).collect()
}
