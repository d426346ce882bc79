//! Drops versions that were removed everywhere else: each goes to the file of dropped copies, and
//! what the others hold of its key takes its place (docs/design/anti-entropy.md §5, rules 5 and 6).
//!
//! Invariants:
//! * A version is in the file, synced, before it leaves the store.
//! * It goes only if it is still exactly the version that was judged.
//! * Of a key that others hold in another version, nothing goes before that version was fetched.
//! * A key that cannot be read or written keeps its version, and no other key waits for it.

use super::back::KeyedItem;
use super::dropped::{DroppedCopies, DroppedCopy};
use super::pairs::busy;
use crate::Host;
use crate::compare::refusal;
use crate::work::Work;
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::coordination::get::Ask;
use ombak_kv::repair_host::{Access, Partition, RepairHost};
use ombak_kv::replica::{NodeCounter, ReplicaRead};
use ombak_ring::RingVersion;
use ombak_storage::Stored;
use ombak_types::{Error, NodeId, Object, StoreFailure, stored_object};
use tracing::warn;

/// What takes the place of a version that is dropped.
pub(super) enum InPlace {
    /// Nothing: no other primary holds anything of the key.
    Nothing,
    /// What another primary holds.
    Copy {
        /// The version.
        object: Box<Object>,
        /// Unix seconds of its write, if they are known.
        stored_secs: Option<u32>,
        /// The counter of fences of this node from before it was read.
        noted: NodeCounter,
    },
    /// It could not be read. The version stays.
    Unknown,
}

/// A version that is to be dropped.
pub(super) struct ToDrop {
    pub(super) keyed: KeyedItem,
    pub(super) in_place: InPlace,
}

/// Reads what other primaries hold of a key: the first one that answers counts. The others bring
/// what they have by their own exchanges.
pub(super) async fn fetch(work: &Work, host: &Host, class: ClassId, key: &Bytes, nodes: &[NodeId]) -> InPlace {
    let Some(noted) = host.counter_of(host.node_id()) else { return InPlace::Unknown };
    let mut has_gone = false;
    for node in nodes {
        let read = ReplicaRead {
            partition: class.partition,
            n: class.n,
            ring: host.placement().version(),
            key: key.clone(),
            ask: Ask::Object,
            deadline: None,
        };
        let client = host.clone().replica_client(*node);
        let Ok(reply) = work.in_time(client.read(read)).await else { continue };
        if reply.outdated.is_some() {
            continue;
        }
        let Some(found) = reply.version else {
            has_gone = true;
            continue;
        };
        let Some(body) = &found.body else { continue };
        if let Ok(object) = stored_object::decode(&found.head, Some(body)) {
            return InPlace::Copy { object: Box::new(object), stored_secs: found.stored_secs, noted };
        }
    }
    if has_gone { InPlace::Nothing } else { InPlace::Unknown }
}

/// As [`drop_all`], for versions of which no other node holds anything. Blocks.
pub(super) fn drop_copies(
    host: &dyn RepairHost,
    file: &DroppedCopies,
    at: (ClassId, RingVersion),
    keys: &[KeyedItem],
) -> Result<Vec<bool>, Error> {
    let drops = keys.iter().map(|keyed| ToDrop { keyed: keyed.clone(), in_place: InPlace::Nothing });
    drop_all(host, file, at, drops.collect())
}

/// Writes versions to the file of dropped copies, and drops each that is still the same, as long as
/// the home has the version that the exchange is for. Returns for each whether it went. Blocks.
pub(super) fn drop_all(
    host: &dyn RepairHost,
    file: &DroppedCopies,
    (class, home_version): (ClassId, RingVersion),
    drops: Vec<ToDrop>,
) -> Result<Vec<bool>, Error> {
    let partition = host.partitions().find(class.partition)?;
    let mut dropped = Vec::with_capacity(drops.len());
    for to_drop in drops {
        // This may have waited for long, for a thread or for the lock before.
        if host.home_version(class.partition) != home_version {
            return Err(busy("the home has begun to change"));
        }
        let went = drop_one(host, &partition, file, (class, home_version), to_drop).unwrap_or_else(|why| {
            let number = class.partition;
            warn!(partition = number, n = class.n, %why, "a version that was removed everywhere else stays here");
            false
        });
        dropped.push(went);
    }
    Ok(dropped)
}

fn drop_one(
    host: &dyn RepairHost,
    partition: &Partition,
    file: &DroppedCopies,
    (class, home_version): (ClassId, RingVersion),
    ToDrop { keyed: KeyedItem { item, key, digest }, in_place }: ToDrop,
) -> Result<bool, Error> {
    let locked = partition.lock(&key, Access::Blocking).map_err(refusal)?;
    if host.home_version(class.partition) != home_version {
        return Ok(false);
    }
    // The lock keeps it as it is. What cannot be read stays.
    let found = partition.read(&key, Access::Blocking).map_err(refusal)?;
    let Some(found) = found.filter(|found| found.digest == digest && found.seq == item.seq) else { return Ok(false) };
    match in_place {
        InPlace::Unknown => Ok(false),
        InPlace::Nothing => {
            put_aside(host, file, (class, &key), found)?;
            host.reaping().fences.raise_for_key(class.partition, &key);
            locked.remove_proven(digest).map_err(refusal)
        }
        InPlace::Copy { object, stored_secs, noted } => {
            if !host.reaping().fences.admit((class.partition, class.n), &key, Some(noted)) {
                return Ok(false);
            }
            put_aside(host, file, (class, &key), found)?;
            host.reaping().fences.raise_for_key(class.partition, &key);
            let written = locked.replace_dropped(*object, host.now(), stored_secs).map_err(refusal)?;
            host.note_stored(partition, &key, &written);
            Ok(true)
        }
    }
}

fn put_aside(
    host: &dyn RepairHost,
    file: &DroppedCopies,
    (class, key): (ClassId, &Bytes),
    found: Stored,
) -> Result<(), Error> {
    let copy = DroppedCopy {
        class,
        seq: found.seq,
        dropped_at: host.now(),
        stored_secs: found.stored_secs,
        key: key.clone(),
        head: found.head,
        body: found.body.unwrap_or_default(),
    };
    let not_kept = |why| StoreFailure::internal(format!("the file of dropped copies could not be written: {why}"));
    file.append(&copy).map_err(|why| not_kept(why).into())
}

#[cfg(test)]
mod tests {
    use super::super::lists::Item;
    use super::*;
    use ombak_kv::repair_host::{Taken, digest};
    use ombak_kv::replica::{ReplicaStore, StoreKind, StoreMode};
    use ombak_kv::{Kv, KvConfig};
    use ombak_storage::{MemoryConfig, MemoryFactory, Origin};
    use ombak_types::names::encode_storage_key;
    use ombak_types::time::UnixMicros;
    use ombak_types::{Actor, Bucket, Sibling, VectorClock};
    use std::sync::Arc;

    #[tokio::test]
    async fn nothing_is_dropped_once_the_home_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
        let kv = Kv::open(KvConfig::new("node", dir.path(), stores)).unwrap();
        let (host, class) = (kv.repair_host(), ClassId { partition: 0, n: 3 });
        let file = DroppedCopies::new(kv.file_system().clone(), dir.path().to_owned());
        let mut key = Vec::new();
        encode_storage_key(&Bucket::untyped("b"), b"k", &mut key);
        let keys = [KeyedItem { item: Item { mix: 1, seq: 1 }, key: key.into(), digest: 1 }];
        let drop_at = |version| drop_copies(&*host, &file, (class, version), &keys);
        let version = host.home_version(class.partition);
        assert_eq!(drop_at(version), Ok(vec![false]), "nothing is there");
        let later = RingVersion { number: version.number + 1, ..version };
        assert_eq!(drop_at(later), Err(busy("the home has begun to change")));
    }

    /// A version with an event of this actor, as it is stored.
    fn version(actor: u8) -> Object {
        let mut clock = VectorClock::new();
        let _ = clock.increment(&Actor::new(&[actor; 9]), UnixMicros(1_600_000_000_000_000));
        Object { clock, siblings: vec![Sibling::new(Bytes::from(vec![actor]))] }
    }

    fn copy_of(host: &dyn RepairHost, key: &Bytes, object: &Object) -> ReplicaStore {
        let mut head = Vec::new();
        stored_object::encode_head(object, &mut head);
        ReplicaStore {
            partition: 0,
            n: 3,
            ring: host.placement().version(),
            key: key.clone(),
            head: head.into(),
            body: object.siblings[0].value.clone(),
            stored_secs: None,
            kind: StoreKind::default(),
            mode: StoreMode::Merge,
            noted: host.counter_of(host.node_id()),
            synced: false,
            deadline: None,
        }
    }

    #[tokio::test]
    async fn what_others_hold_takes_the_place_of_a_dropped_version() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
        let kv = Kv::open(KvConfig::new("node", dir.path(), stores)).unwrap();
        let (host, class) = (kv.repair_host(), ClassId { partition: 0, n: 3 });
        let file = DroppedCopies::new(kv.file_system().clone(), dir.path().to_owned());
        let mut key = Vec::new();
        encode_storage_key(&Bucket::untyped("b"), b"k", &mut key);
        let key = Bytes::from(key);
        let copy = copy_of(&*host, &key, &version(1));
        let Ok(Taken::Stored(written)) = host.store_copy(&copy, Origin::Handoff, Access::Blocking) else { panic!() };
        let partition = host.partitions().find(0).unwrap();
        let keyed = KeyedItem { item: Item { mix: 1, seq: written.seq }, key: key.clone(), digest: written.digest };
        let drop_with = |in_place| {
            let drops = vec![ToDrop { keyed: keyed.clone(), in_place }];
            drop_all(&*host, &file, (class, host.home_version(0)), drops).unwrap()
        };
        let held = || partition.read(&key, Access::Blocking).unwrap().map(|found| found.digest);
        assert_eq!(drop_with(InPlace::Unknown), [false]);
        assert_eq!((held(), file.list().unwrap().len()), (Some(written.digest), 0), "the others hold something");
        let noted = host.counter_of(host.node_id()).unwrap();
        let in_place = || InPlace::Copy { object: Box::new(version(2)), stored_secs: None, noted };
        assert_eq!(drop_with(in_place()), [true]);
        assert_eq!((held(), file.list().unwrap().len()), (Some(digest(&version(2))), 1));
        assert_eq!(drop_with(in_place()), [false], "another version is here by now");
    }
}
