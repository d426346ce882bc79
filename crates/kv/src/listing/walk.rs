//! Walks over the keys of all partitions, one batch at a time.

use crate::partition::{Partition, is_tombstone};
use bytes::Bytes;
use ombak_runtime::pause_if_due;
use ombak_storage::{Detail, Scope, Snapshot, StorageError};
use ombak_types::Bucket;
use ombak_types::names::{DEFAULT_TYPE, encode_bucket_prefix, split_storage_key};
use ombak_types::time::UnixMicros;
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of index entries that are read together, and the usual budget of a step.
pub(crate) const ENTRIES_MAX: usize = 1_000;
/// The cost of a snapshot of a store, counted as entries.
const SNAPSHOT_COST: usize = 30;
/// Maximum number of distinct buckets that a listing of buckets remembers.
pub(crate) const BUCKETS_MAX: usize = 1_000_000;

/// The names that a walk returns.
enum Wanted {
    Keys,
    Buckets { seen: HashSet<Bytes> },
}

/// An active walk. It holds a snapshot of one partition at a time, and is moved to an I/O thread
/// for each batch.
pub(crate) struct ListWalk {
    partitions: Vec<Arc<Partition>>,
    at: usize,
    /// The snapshot, and the seq up to which its versions are set aside.
    snapshot: Option<(Box<dyn Snapshot>, u64)>,
    prefix: Vec<u8>,
    wanted: Wanted,
    /// The time when the walk began: keys that had expired by then are not listed.
    begun: UnixMicros,
}

impl ListWalk {
    /// A walk over the keys of a bucket.
    pub(crate) fn over_keys(partitions: Vec<Arc<Partition>>, bucket: &Bucket, begun: UnixMicros) -> Self {
        let mut prefix = Vec::new();
        encode_bucket_prefix(bucket, &mut prefix);
        Self { partitions, at: 0, snapshot: None, prefix, wanted: Wanted::Keys, begun }
    }

    /// A walk over the buckets of a type.
    pub(crate) fn over_buckets(partitions: Vec<Arc<Partition>>, bucket_type: &Bytes, begun: UnixMicros) -> Self {
        // The common prefix of all storage keys of the type: the prefix of a bucket, without the
        // bucket's name.
        let nameless = Bucket { bucket_type: bucket_type.clone(), name: Bytes::new() };
        let mut prefix = Vec::new();
        encode_bucket_prefix(&nameless, &mut prefix);
        prefix.truncate(prefix.len() - 2);
        debug_assert!(*bucket_type != DEFAULT_TYPE || prefix.len() == 1);
        Self { partitions, at: 0, snapshot: None, prefix, wanted: Wanted::Buckets { seen: HashSet::new() }, begun }
    }

    /// Returns the next names; `None` at the end. A batch is empty only if the budget is used up.
    /// The walk reads only the index: it recognises deleted keys by their digests.
    ///
    /// `budget` is the number of index entries that may still be examined. It goes down by what the
    /// call has examined. One listing has many stores that have nothing for it, and each call waits
    /// for its turn at the threads, so a call goes over several stores.
    pub(crate) fn next_batch(&mut self, budget: &mut usize) -> Result<Option<Vec<Bytes>>, StorageError> {
        while *budget > 0 {
            pause_if_due();
            let Some(partition) = self.partitions.get(self.at) else { return Ok(None) };
            let (snapshot, since_seq) = match &mut self.snapshot {
                Some(snapshot) => snapshot,
                None => {
                    partition.store().tell_time(self.begun.secs());
                    let set_aside_to = partition.set_aside_to();
                    *budget = budget.saturating_sub(SNAPSHOT_COST);
                    self.snapshot.insert((partition.snapshot()?, set_aside_to))
                }
            };
            let scope = Scope { since_seq: *since_seq, ..Scope::prefix(&self.prefix) };
            let entries = snapshot.next(&scope, Detail::Keys, ENTRIES_MAX)?;
            if entries.is_empty() {
                self.at += 1;
                self.snapshot = None;
                continue;
            }
            *budget = budget.saturating_sub(entries.len());
            let alive = entries.iter().filter(|e| !is_tombstone(e.digest));
            let names: Vec<_> = match &mut self.wanted {
                Wanted::Keys => alive.map(|e| e.key.slice(self.prefix.len()..)).collect(),
                Wanted::Buckets { seen } => alive.filter_map(|e| new_bucket(&e.key, seen)).collect(),
            };
            if !names.is_empty() {
                return Ok(Some(names));
            }
        }
        Ok(Some(Vec::new()))
    }

    /// Whether a listing of buckets has found more buckets than it can remember.
    pub(crate) fn is_full(&self) -> bool {
        matches!(&self.wanted, Wanted::Buckets { seen } if seen.len() > BUCKETS_MAX)
    }
}

/// The bucket of a storage key; `None` when the walk has already returned it.
fn new_bucket(storage_key: &Bytes, seen: &mut HashSet<Bytes>) -> Option<Bytes> {
    let (_, bucket, _) = split_storage_key(storage_key).ok()?;
    if seen.contains(bucket) {
        return None;
    }
    // The name is copied, because a slice would keep the whole key in memory.
    let bucket = Bytes::copy_from_slice(bucket);
    seen.insert(bucket.clone());
    Some(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::ActorSource;
    use ombak_runtime::{give_way, pauses_of_this_thread};
    use ombak_storage::{BackendFactory, MemoryFactory, Write};
    use ombak_types::names::encode_storage_key;

    const KEYS: usize = 20_000;

    fn partition(bucket: &Bucket) -> Arc<Partition> {
        let store = MemoryFactory::default().open(0).unwrap();
        for n in 0..KEYS {
            let mut key = Vec::new();
            encode_storage_key(bucket, format!("k{n:06}").as_bytes(), &mut key);
            let digest = (n as u64) << 1;
            store
                .put(&Write {
                    key: &key,
                    head: b"h",
                    body: &[],
                    digest,
                    tstamp_secs: 1,
                    expires_secs: 0,
                    has_terms: false,
                })
                .unwrap();
        }
        Arc::new(Partition::new(0, store, Arc::new(ActorSource::new(1))))
    }

    /// On a thread that gives way, a walk lets others have the processor again and again.
    #[test]
    fn a_long_walk_pauses() {
        let bucket = Bucket::untyped("b");
        let partition = partition(&bucket);
        let walking = std::thread::spawn(move || {
            give_way();
            let mut walk = ListWalk::over_keys(vec![partition], &bucket, UnixMicros::from_secs(1));
            let mut names = 0;
            while let Some(batch) = walk.next_batch(&mut { KEYS }).unwrap() {
                names += batch.len();
            }
            (names, pauses_of_this_thread())
        });
        let (names, pauses) = walking.join().unwrap();
        assert!(names == KEYS && pauses >= 5, "{names} names, {pauses} pauses");
    }
}
