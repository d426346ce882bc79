//! What an operator sees of versions that are set aside, and does with them.
//!
//! There is no list that could be behind: the versions lie in the stores, and a report walks over
//! them.

use crate::Host;
use crate::compare::refusal;
use crate::key_choice::KeyChoice;
use crate::repair::Repair;
use crate::take_back::SetAsideWalk;
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, Partition, UNKNOWN_N, class_of_key};
use ombak_storage::FoldEntry;
use ombak_types::names::decode_storage_key;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error};

/// A version that a restored store held, and of which no other replica is known to hold the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAsideVersion {
    /// The bucket.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// The home partition.
    pub partition: u32,
    /// Bytes of key, head and values.
    pub bytes: u64,
    /// When the newest value was written; `None` if that cannot be read.
    pub last_modified: Option<UnixMicros>,
    /// Whether all other primaries were compared. Then the version is on none of them; it may have
    /// been deleted. Until then it may still be taken back.
    pub is_compared: bool,
}

/// The versions of this node that are set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAsideReport {
    /// Some of them, in the order of partitions and keys.
    pub versions: Vec<SetAsideVersion>,
    /// The number of the others.
    pub more: u64,
    /// How many of all have been compared with all other primaries.
    pub compared: u64,
}

impl Repair {
    /// What is set aside, with at most `versions_max` keys. Blocks for as long as a walk over the
    /// keys of all restored stores takes: not for network threads.
    pub fn set_aside_report(&self, versions_max: usize) -> Result<SetAsideReport, Error> {
        let mut report = SetAsideReport::default();
        let host = &self.host;
        walk_all(host, |partition, entry| {
            let n = class_of_key(&host.buckets().snapshot(), &entry.key);
            let is_compared = n.is_some_and(|n| {
                let placement = host.placement();
                let is_primary = placement.home(partition.number()).is_primary(host.node_id(), n);
                is_primary && host.is_full(partition.number(), n)
            });
            report.compared += u64::from(is_compared);
            match describe(partition, entry, is_compared) {
                Some(version) if report.versions.len() < versions_max => report.versions.push(version),
                _ => report.more += 1,
            }
            Ok(())
        })?;
        Ok(report)
    }

    /// Takes back what is set aside, whether it was deleted since or not, and has it brought to all
    /// primaries. Returns the number of versions. Blocks: not for network threads.
    pub fn push_set_aside(&self, choice: &KeyChoice) -> Result<u64, Error> {
        self.decide(choice, |host, partition, entry| {
            let n = class_of_key(&host.buckets().snapshot(), &entry.key).unwrap_or(UNKNOWN_N);
            push_set_aside(host, partition, n, entry)
        })
    }

    /// Removes what is set aside. Returns the number of versions. Blocks: not for network threads.
    pub fn drop_set_aside(&self, choice: &KeyChoice) -> Result<u64, Error> {
        self.decide(choice, |_, partition, entry| {
            let locked = partition.lock(&entry.key, Access::Blocking).map_err(refusal)?;
            locked.drop_set_aside(entry.digest).map_err(refusal)
        })
    }

    fn decide(
        &self,
        choice: &KeyChoice,
        one: impl Fn(&Host, &Partition, &FoldEntry) -> Result<bool, Error>,
    ) -> Result<u64, Error> {
        let mut decided = 0;
        walk_all(&self.host, |partition, entry| {
            if choice.includes(&entry.key) && one(&self.host, partition, entry)? {
                decided += 1;
            }
            Ok(())
        })?;
        if *choice == KeyChoice::All {
            nothing_is_set_aside(&self.host)?;
        }
        self.host.transfers().wake();
        Ok(decided)
    }
}

fn push_set_aside(host: &Host, partition: &Partition, n: u32, entry: &FoldEntry) -> Result<bool, Error> {
    let class = ClassId { partition: partition.number(), n };
    let awaited = host.transfers().await_replicas(host.placement().home(class.partition), host.node_id(), n);
    let locked = partition.lock(&entry.key, Access::Blocking).map_err(refusal)?;
    let _counted = host.transfers().begin_copy(partition, n, &entry.key)?;
    let Some(written) = locked.take_back(entry.digest, host.now()).map_err(refusal)? else { return Ok(false) };
    // No other primary has it: all of them are owed.
    if let Some(mut awaited) = awaited {
        awaited.written(written.seq);
    }
    Ok(true)
}

/// Ends the search for what is set aside in partitions of which nothing is left.
fn nothing_is_set_aside(host: &Host) -> Result<(), Error> {
    for partition in host.partitions().all_open() {
        let Some(mut walk) = SetAsideWalk::begin(partition.clone())? else { continue };
        let mut left = 0;
        while let Some(entries) = walk.next(&|_| true)? {
            left += entries.len();
        }
        if left == 0 {
            host.transfers().set_aside.up_to(&partition, 0);
        }
    }
    Ok(())
}

fn walk_all(host: &Host, mut each: impl FnMut(&Partition, &FoldEntry) -> Result<(), Error>) -> Result<(), Error> {
    for partition in host.partitions().all_open() {
        let Some(mut walk) = SetAsideWalk::begin(partition.clone())? else { continue };
        while let Some(entries) = walk.next(&|_| true)? {
            for entry in &entries {
                each(&partition, entry)?;
            }
        }
    }
    Ok(())
}

fn describe(partition: &Partition, entry: &FoldEntry, is_compared: bool) -> Option<SetAsideVersion> {
    let (bucket, key) = decode_storage_key(&entry.key).ok()?;
    let head = partition.read_set_aside(&entry.key).ok().flatten();
    let bytes = partition.store().record_bytes(&entry.key).ok().flatten().unwrap_or(0);
    let last_modified = head.and_then(|found| partition.decode(&entry.key, &found).ok()?.last_modified());
    Some(SetAsideVersion { bucket, key, partition: partition.number(), bytes, last_modified, is_compared })
}
