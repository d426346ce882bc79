//! Dropped copies, as an operator sees them, and their way back.
//!
//! A copy that is pushed is stored like any copy that arrives: merged by clock, with a new seq, and
//! owed to all other primaries. Its seq is above all marks, so no exchange takes it for a copy that
//! was removed. Tombstones stay where they are: a tombstone that came back could hide a value that
//! was written since.

use super::dropped::DroppedCopy;
use crate::Host;
use crate::compare::refusal;
use crate::key_choice::KeyChoice;
use crate::repair::Repair;
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, Taken, UNKNOWN_N, class_of_key};
use ombak_kv::replica::{ReplicaStore, StoreKind, StoreMode};
use ombak_storage::Origin;
use ombak_types::names::decode_storage_key;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, Error, Object, StoreFailure, StoreFailureKind, stored_object};

/// A copy that an exchange has dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedVersion {
    /// The bucket.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// The home partition.
    pub partition: u32,
    /// Bytes of key, head and values.
    pub bytes: u64,
    /// When it was dropped.
    pub dropped_at: UnixMicros,
    /// Whether it is a tombstone. Tombstones are not pushed.
    pub is_tombstone: bool,
    /// Whether this node holds the version or a descendant now.
    pub is_held: bool,
}

/// The dropped copies of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedReport {
    /// The newest of them, the oldest first.
    pub versions: Vec<DroppedVersion>,
    /// The number of the others.
    pub more: u64,
}

impl Repair {
    /// The copies that exchanges have dropped, as far as the file has them, with at most
    /// `versions_max` keys. Blocks: not for network threads.
    pub fn dropped_report(&self, versions_max: usize) -> Result<DroppedReport, Error> {
        let copies = self.dropped_copies().map_err(not_read)?;
        let listed = copies.len().saturating_sub(versions_max);
        let described: Vec<DroppedVersion> =
            copies.get(listed..).unwrap_or_default().iter().filter_map(|copy| describe(&self.host, copy)).collect();
        let more = (copies.len() - described.len()) as u64;
        Ok(DroppedReport { versions: described, more })
    }

    /// Stores dropped copies again, and has them brought to all primaries. Of several copies of a
    /// key all are merged. Tombstones, and copies that this node holds again, are left out. Returns
    /// the number of copies. Blocks: not for network threads.
    pub fn push_dropped(&self, choice: &KeyChoice) -> Result<u64, Error> {
        let mut pushed = 0;
        for copy in self.dropped_copies().map_err(not_read)? {
            if choice.includes(&copy.key) && push(&self.host, &copy)? {
                pushed += 1;
            }
        }
        self.host.transfers().wake();
        Ok(pushed)
    }
}

fn push(host: &Host, copy: &DroppedCopy) -> Result<bool, Error> {
    let object = stored_object::decode(&copy.head, Some(&copy.body)).map_err(Error::from)?;
    if object.is_deleted() || is_held(host, copy, &object)? {
        return Ok(false);
    }
    let buckets = host.buckets().snapshot();
    let n = class_of_key(&buckets, &copy.key).unwrap_or(UNKNOWN_N);
    let class = ClassId { partition: copy.class.partition, n };
    let placement = host.placement();
    let awaited = host.transfers().await_replicas(placement.home(class.partition), host.node_id(), n);
    let store = ReplicaStore {
        partition: class.partition,
        n,
        ring: placement.version(),
        key: copy.key.clone(),
        head: copy.head.clone(),
        body: copy.body.clone(),
        stored_secs: copy.stored_secs,
        kind: StoreKind { dvv: buckets.props_of_key(&copy.key).is_none_or(|props| props.dvv_enabled), values: 0 },
        mode: StoreMode::Merge,
        // The operator decides now, so every fence of before is known.
        noted: host.counter_of(host.node_id()),
        synced: true,
        deadline: None,
    };
    match host.store_copy(&store, Origin::Repair, Access::Blocking).map_err(refusal)? {
        Taken::Stored(written) => {
            let partition = host.partitions().find(class.partition)?;
            host.note_stored(&partition, &copy.key, &written);
            partition.store().sync(written.seq)?;
            // No other primary has it: all of them are owed.
            if let Some(mut awaited) = awaited {
                awaited.written(written.seq);
            }
            Ok(true)
        }
        // A fence was raised in this moment: the key is being removed.
        _ => Err(StoreFailure::new(StoreFailureKind::Busy, "the key is being changed; try again").into()),
    }
}

fn describe(host: &Host, copy: &DroppedCopy) -> Option<DroppedVersion> {
    let (bucket, key) = decode_storage_key(&copy.key).ok()?;
    let object = stored_object::decode(&copy.head, Some(&copy.body)).ok()?;
    Some(DroppedVersion {
        bucket,
        key,
        partition: copy.class.partition,
        bytes: (copy.key.len() + copy.head.len() + copy.body.len()) as u64,
        dropped_at: copy.dropped_at,
        is_tombstone: object.is_deleted(),
        is_held: is_held(host, copy, &object).unwrap_or(false),
    })
}

/// Whether this node holds the version or a descendant. What it cannot read counts as lacking.
fn is_held(host: &Host, copy: &DroppedCopy, object: &Object) -> Result<bool, Error> {
    let partition = host.partitions().find(copy.class.partition)?;
    let Ok(Some(found)) = partition.read_head(&copy.key, Access::Blocking) else { return Ok(false) };
    let Ok(local) = partition.decode(&copy.key, &found) else { return Ok(false) };
    Ok(local.clock.descends(&object.clock))
}

fn not_read(why: std::io::Error) -> Error {
    StoreFailure::internal(format!("the file of dropped copies could not be read: {why}")).into()
}
