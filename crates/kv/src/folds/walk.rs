//! The walk of a fold over one store.

use super::entry::GatheredEntry;
use super::gathered::{Gathered, Visited};
use super::range::{FoldOf, FoldRange};
use super::wants::FoldWants;
use crate::buckets::BucketRegistry;
use crate::partition::Partition;
use crate::routing::{class_of_key, tree_class_of_key};
use bytes::Bytes;
use ombak_runtime::pause_if_due;
use ombak_storage::{Detail, FoldEntry, Scope, Snapshot, StorageError};
use ombak_types::names::{decode_storage_key, encode_bucket_prefix};
use ombak_types::stored_object::decode_head;
use ombak_types::time::{GREGORIAN_OFFSET_SECS, UnixMicros};
use ombak_types::{Bucket, Error, Object, StoreFailure};
use std::sync::Arc;

/// Maximum number of index entries that are read together. It takes about 0.1 ms, and the thread
/// that walks lets others have the processor in between.
const ENTRIES_MAX: usize = 100;

/// An active walk. Its snapshot is moved to a thread that may wait for each batch.
pub(crate) struct FoldWalk {
    range: Arc<FoldRange>,
    /// The n_vals of the classes that are wanted of this store, if the range is one of classes.
    classes: Vec<u32>,
    prefix: Vec<u8>,
    snapshot: Box<dyn Snapshot>,
    /// The seq up to which the versions of the store are set aside.
    set_aside_to: u64,
    gathered: Gathered,
    detail: Detail,
    /// Whether it makes a tree.
    is_tree: bool,
}

impl FoldWalk {
    /// A walk over the store of a partition. What had expired by `begun` is not visited.
    pub(crate) fn new(
        partition: &Partition,
        (range, wants): (Arc<FoldRange>, FoldWants),
        classes: &[u32],
        begun: UnixMicros,
    ) -> Result<Self, StorageError> {
        partition.store().tell_time(begun.secs());
        let set_aside_to = partition.set_aside_to();
        let snapshot = partition.snapshot()?;
        let (mut prefix, mut classes) = (Vec::new(), classes.to_vec());
        match &range.of {
            FoldOf::Bucket(bucket) => encode_bucket_prefix(bucket, &mut prefix),
            FoldOf::Classes(wanted) => classes.retain(|n| wanted.contains(n)),
        }
        let is_tree = matches!(wants, FoldWants::Tree(..) | FoldWants::Root(..));
        let detail = if wants == FoldWants::Buckets { Detail::Keys } else { Detail::Heads };
        Ok(Self { range, classes, prefix, snapshot, set_aside_to, gathered: Gathered::new(wants), detail, is_tree })
    }

    /// Visits the next objects. Returns the keys that they gave, or `None` if there are no more
    /// objects. The budget goes down by the number of index entries that were read.
    pub(crate) fn next_batch(
        &mut self,
        buckets: &BucketRegistry,
        budget: &mut usize,
    ) -> Result<Option<Vec<GatheredEntry>>, Error> {
        pause_if_due();
        let buckets = buckets.snapshot();
        let Self { range, classes, prefix, snapshot, set_aside_to, detail, is_tree, .. } = self;
        let class_of = if *is_tree { tree_class_of_key } else { class_of_key };
        let is_wanted = |key: &[u8]| {
            let of_class = match &range.of {
                FoldOf::Bucket(_) => true,
                FoldOf::Classes(_) => class_of(&buckets, key).is_some_and(|n| classes.contains(&n)),
            };
            of_class && includes_key(range, key)
        };
        let scope = Scope { class: Some(&is_wanted), since_seq: *set_aside_to, ..Scope::prefix(prefix) };
        let entries = snapshot.next(&scope, *detail, ENTRIES_MAX)?;
        if entries.is_empty() {
            return Ok(None);
        }
        *budget = budget.saturating_sub(entries.len());
        for entry in &entries {
            self.visit(entry)?;
        }
        Ok(Some(self.gathered.take_keys()))
    }

    /// What was gathered and not returned yet.
    pub(crate) fn finish(self) -> Vec<GatheredEntry> {
        self.gathered.into_entries()
    }

    fn visit(&mut self, entry: &FoldEntry) -> Result<(), Error> {
        let (bucket, key) = decode_storage_key(&entry.key).map_err(|_| internal())?;
        let bucket = owned(&bucket);
        let Some(stored) = &entry.stored else {
            self.gathered.visit(Visited { bucket, key: &key, object: Object::default(), bytes: 0 });
            return Ok(());
        };
        let (object, values_bytes) = decode_head(&stored.head).map_err(Error::from)?;
        if self.range.includes_time(written_secs(&object)) {
            let bytes = (stored.head.len() as u64).saturating_add(values_bytes);
            self.gathered.visit(Visited { bucket, key: &key, object, bytes });
        }
        Ok(())
    }
}

/// The Unix second of the latest write. A tombstone may have lost its time; then it is that of its
/// newest event.
fn written_secs(object: &Object) -> u64 {
    let newest = || object.clock.entries().iter().map(|entry| entry.stamp_secs).max().unwrap_or_default();
    object.last_modified().map_or_else(|| newest().saturating_sub(GREGORIAN_OFFSET_SECS), UnixMicros::secs)
}

fn includes_key(range: &FoldRange, storage_key: &[u8]) -> bool {
    if range.keys.is_none() && range.segments.is_none() {
        return true;
    }
    let Ok((bucket, key)) = decode_storage_key(&Bytes::copy_from_slice(storage_key)) else { return false };
    range.includes_key(&bucket, &key)
}

/// A bucket that does not keep the memory of a batch.
fn owned(bucket: &Bucket) -> Bucket {
    let Bucket { bucket_type, name } = bucket;
    Bucket { bucket_type: Bytes::copy_from_slice(bucket_type), name: Bytes::copy_from_slice(name) }
}

fn internal() -> Error {
    StoreFailure::internal("a store holds a key that is none").into()
}
