//! What differs between the bucket types, buckets and records of namespaces of two states.

use super::metadata::Metadata;
use super::open_records::{Namespace, OpenRecord, OpenRecords, RecordName};
use super::records::{BucketRecord, TypeRecord};
use bytes::Bytes;
use imbl::ordmap::DiffItem;
use ombak_types::Bucket;
use std::sync::Arc;

/// A bucket type, bucket or record of a namespace that differs, with the newer record; `None` when
/// it has none any more.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedRecord {
    /// A bucket type.
    Type(Bytes, Option<TypeRecord>),
    /// A bucket.
    Bucket(Bucket, Option<BucketRecord>),
    /// A record of a namespace.
    Open(RecordName, Option<OpenRecord>),
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
    let mut changed: Vec<ChangedRecord> = types.chain(buckets).collect();
    add_open(&old.open, &new.open, &mut changed);
    changed
}

fn add_open(old: &OpenRecords, new: &OpenRecords, changed: &mut Vec<ChangedRecord>) {
    let none = Namespace::default();
    for item in old.namespaces.diff(&new.namespaces) {
        match item {
            DiffItem::Add(name, new) => add_of_namespace(name, &none, new, changed),
            DiffItem::Update { old: (name, old), new: (_, new) } => add_of_namespace(name, old, new, changed),
            DiffItem::Remove(name, old) => add_of_namespace(name, old, &none, changed),
        }
    }
}

fn add_of_namespace(namespace: &Arc<str>, old: &Namespace, new: &Namespace, changed: &mut Vec<ChangedRecord>) {
    let name = |key: &Bytes| RecordName { namespace: namespace.clone(), key: key.clone() };
    changed.extend(old.records.diff(&new.records).map(|item| match item {
        DiffItem::Add(key, record) | DiffItem::Update { new: (key, record), .. } => {
            ChangedRecord::Open(name(key), Some(record.clone()))
        }
        DiffItem::Remove(key, _) => ChangedRecord::Open(name(key), None),
    }));
}
