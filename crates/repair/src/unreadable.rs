//! What an operator sees of versions that nobody can read, and does with them.
//!
//! A version that this node cannot read stays until something has taken its place, because it may
//! be the only copy of an acknowledged write (docs/design/replication.md §13). A primary gets what
//! the other primaries have, or the same version from whoever brings it. If none of them has a
//! version, or only one that has not seen the unreadable version as far as its clock is known,
//! nothing takes its place. A hint goes when each primary has proved that it holds a version with
//! the same digest (§4). If they hold another version by now, nobody can tell whether that one has
//! seen the hint.
//!
//! What needs such a version waits for it: the hint, the marks of the peers to which it is owed,
//! the filling of the class, the reaping of the key. It waits until an operator gives the version
//! up. The disk may be readable again after a repair of the machine, so nothing else decides that.

use crate::Host;
use crate::compare::refusal;
use crate::key_choice::KeyChoice;
use crate::repair::Repair;
use bytes::Bytes;
use ombak_kv::repair_host::{Partition, class_of_key};
use ombak_kv::{ClassId, FillReason};
use ombak_storage::{Detail, FoldEntry, Scope};
use ombak_types::names::decode_storage_key;
use ombak_types::{Bucket, Error, ShownKey, StoreFailure};
use std::collections::{BTreeMap, BTreeSet};
use tracing::warn;

/// Number of entries that a fold takes from a snapshot at a time.
const FOLD_ENTRIES: usize = 2_000;

/// A version that this node holds and cannot read, and in whose place nothing has come yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableVersion {
    /// The bucket.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// The home partition.
    pub partition: u32,
    /// Whether this node holds it for other nodes.
    pub is_hint: bool,
    /// How often its repair has failed since the start, or since another node came up.
    pub failures: u32,
}

/// The versions that this node has found to be unreadable since its start, and that were not
/// repaired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadableReport {
    /// Some of them, in the order of partitions and keys.
    pub versions: Vec<UnreadableVersion>,
    /// The number of the others.
    pub more: u64,
}

impl Repair {
    /// What this node cannot read, with at most `versions_max` keys.
    pub fn unreadable_report(&self, versions_max: usize) -> UnreadableReport {
        let mut report = UnreadableReport::default();
        for ((partition, storage_key), failures) in self.host.partitions().unreadable_keys().list() {
            match decode_storage_key(&storage_key) {
                Ok((bucket, key)) if report.versions.len() < versions_max => {
                    let is_hint = is_hint(&self.host, partition, &storage_key);
                    report.versions.push(UnreadableVersion { bucket, key, partition, is_hint, failures });
                }
                _ => report.more += 1,
            }
        }
        report
    }

    /// Gives up versions that this node cannot read: removes each that still cannot be read. Before
    /// that, the classes of which this node is a primary count as not full, so it is compared with
    /// the other primaries and gets what they have. Returns the number of versions. Blocks for as
    /// long as a walk over the keys of these partitions takes: not for network threads.
    pub fn drop_unreadable(&self, choice: &KeyChoice) -> Result<u64, Error> {
        let host = &self.host;
        let mut chosen: BTreeMap<u32, BTreeSet<Bytes>> = BTreeMap::new();
        for ((partition, key), _) in host.partitions().unreadable_keys().list() {
            if choice.includes(&key) {
                chosen.entry(partition).or_default().insert(key);
            }
        }
        let mut dropped = 0;
        for (number, keys) in chosen {
            let lacks = keys.iter().any(|key| !is_hint(host, number, key));
            if lacks {
                note_given_up(host, number)?;
            }
            let given_up = give_up(host, number, &keys);
            if lacks {
                // A comparison that began before the removal proves nothing.
                note_given_up(host, number)?;
            }
            dropped += given_up?;
        }
        host.transfers().retry_at_once();
        Ok(dropped)
    }
}

/// Removes those of the keys that still cannot be read. Blocks.
fn give_up(host: &Host, number: u32, keys: &BTreeSet<Bytes>) -> Result<u64, Error> {
    let partition = host.partitions().find(number)?;
    let mut dropped = 0;
    for entry in entries_of(&partition, keys)? {
        if partition.give_up_unreadable(&entry.key, entry.digest).map_err(refusal)? {
            let (at, what) = (ShownKey::of(&entry.key), "an operator gave up what cannot be read");
            warn!(partition = number, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, "{what}");
            host.partitions().unreadable_keys().forget(&(number, entry.key));
            dropped += 1;
        }
    }
    Ok(dropped)
}

/// Makes a partition filling, durably, before a version of it is given up.
fn note_given_up(host: &Host, partition: u32) -> Result<(), Error> {
    if host.is_alone_in(&host.placement())
        || host.transfers().set_filling(host.partitions(), partition, FillReason::Unreadable)
    {
        return Ok(());
    }
    Err(StoreFailure::internal("what this node must compare with others could not be saved").into())
}

/// Whether this node is known to be no primary of the key's class.
fn is_hint(host: &Host, partition: u32, storage_key: &[u8]) -> bool {
    let n = class_of_key(&host.buckets().snapshot(), storage_key);
    n.is_some_and(|n| host.transfers().foreign.is_foreign(ClassId { partition, n }))
}

/// The entries of some keys as the index knows them. Blocks.
fn entries_of(partition: &Partition, keys: &BTreeSet<Bytes>) -> Result<Vec<FoldEntry>, Error> {
    let is_wanted = |key: &[u8]| keys.contains(key);
    let scope = Scope { class: Some(&is_wanted), ..Scope::KEPT };
    let mut snapshot = partition.snapshot()?;
    let mut entries = Vec::with_capacity(keys.len());
    loop {
        let mut found = snapshot.next(&scope, Detail::Keys, FOLD_ENTRIES)?;
        if found.is_empty() {
            return Ok(entries);
        }
        entries.append(&mut found);
    }
}
