//! Imports objects that another store has acknowledged, a Riak node for instance.

use crate::engine::{Kv, check_bucket, check_key};
use crate::partition::{Access, Deadline, Failure, WriteRules};
use ombak_types::names::encode_storage_key;
use ombak_types::{Bucket, Error, Object, StoreFailure};

/// The result of importing one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The key was absent.
    New,
    /// The key was present and changed: it holds the values of both copies, or those of the newer
    /// copy.
    Merged,
    /// The key was present and already contained everything that the imported copy has.
    Known,
}

/// Imports objects as a replica would: merged by clock alone, with the clocks, siblings and
/// metadata that they carry. The size limits do not apply. Blocks: not for network threads.
///
/// Tombstones are imported like values. Until every copy of a key is imported, a tombstone may be
/// the only copy that keeps a deleted key deleted. Therefore open the engine with
/// [`crate::DeleteMode::Keep`].
pub struct Importer<'a> {
    kv: &'a Kv,
    /// For each partition, the last append that is not known to survive a power loss.
    unsynced: Vec<Option<u64>>,
}

impl Kv {
    /// Begins an import.
    pub fn importer(&self) -> Importer<'_> {
        Importer { kv: self, unsynced: vec![None; self.engine.partitions().ring_size()] }
    }
}

impl Importer<'_> {
    /// Imports one object. When this returns, the object survives the end of the process;
    /// [`Self::sync`] makes it survive a power loss. It fails while the node or the bucket takes no
    /// writes.
    pub fn import(&mut self, bucket: &Bucket, key: &[u8], object: Object) -> Result<ImportOutcome, Error> {
        check_bucket(bucket)?;
        check_key(key)?;
        let engine = &self.kv.engine;
        let _pass = engine.enter()?;
        let mut storage_key = Vec::new();
        encode_storage_key(bucket, key, &mut storage_key);
        // The ring and the properties that are looked at now hold until the gate closes.
        let open = engine.write_gate.pass(&storage_key).ok_or_else(|| engine.write_gate.refusal())?;
        let props = engine.buckets.props(bucket)?;
        let home = engine.home_of(&engine.placement(), bucket, key, &props);
        let partition = engine.partitions().find(home)?;
        let Some(unsynced) = self.unsynced.get_mut(home as usize) else {
            return Err(StoreFailure::internal(format!("the ring has no partition {home}")).into());
        };
        let rules = WriteRules {
            props: &props,
            limits: &engine.config.limits,
            now: engine.now(),
            values: None,
            deadline: Some(Deadline::at_time(None, &*engine.config.runtime).with_pass(open)),
        };
        let mut locked = partition.lock(&storage_key, Access::Blocking).map_err(Failure::of_blocking_call)?;
        let _counted = engine.transfers.begin_copy(&partition, props.n_val, &storage_key)?;
        locked.load_for(&object.clock, false).map_err(Failure::of_blocking_call)?;
        let was_there = locked.local().is_some();
        let written = locked.merge(object, &rules.merging()).map_err(Failure::of_blocking_call)?;
        engine.count_entries(&written);
        // A known object may still lack its sync, for instance when an import is repeated.
        *unsynced = (*unsynced).max(Some(written.seq));
        Ok(match (written.is_new, was_there) {
            (false, _) => ImportOutcome::Known,
            (true, true) => ImportOutcome::Merged,
            (true, false) => ImportOutcome::New,
        })
    }

    /// Waits until everything imported so far survives a power loss.
    pub fn sync(&mut self) -> Result<(), Error> {
        for (number, unsynced) in (0..).zip(&mut self.unsynced) {
            if let Some(seq) = *unsynced {
                self.kv.engine.partitions().find(number)?.store().sync(seq)?;
                *unsynced = None;
            }
        }
        Ok(())
    }
}
