//! What consumers see of the store of a partition.

use crate::buckets::BucketRegistry;
use crate::hooks::{FollowedStore, PresentVersion, ValueKind, merge_values};
use crate::partition::{Access, Failure, Partition};
use ombak_types::Error;
use ombak_types::props::BucketProps;
use ombak_types::time::UnixMicros;
use std::sync::Arc;

/// The store of a partition; see the module.
pub(super) struct StoreOfPartition<'a> {
    partition: &'a Partition,
    buckets: &'a BucketRegistry,
    kinds: &'a [Arc<dyn ValueKind>],
    now: UnixMicros,
}

impl<'a> StoreOfPartition<'a> {
    pub(super) const fn new(
        partition: &'a Partition,
        buckets: &'a BucketRegistry,
        kinds: &'a [Arc<dyn ValueKind>],
        now: UnixMicros,
    ) -> Self {
        Self { partition, buckets, kinds, now }
    }
}

impl FollowedStore for StoreOfPartition<'_> {
    fn number(&self) -> u32 {
        self.partition.number()
    }

    fn now(&self) -> UnixMicros {
        self.now
    }

    fn props_of_key(&self, key: &[u8]) -> Option<Arc<BucketProps>> {
        self.buckets.snapshot().props_of_key(key).cloned()
    }

    fn present(&self, key: &[u8]) -> Result<Option<PresentVersion>, Error> {
        let Some(props) = self.props_of_key(key) else { return Ok(None) };
        let found = self.partition.read(key, Access::Blocking).map_err(Failure::of_blocking_call)?;
        // A loss of power must not take from the store what the consumer has seen: neither this
        // version, nor the removal of another one.
        let store = self.partition.store();
        let seq = found.as_ref().map_or_else(|| store.last_seq(), |found| found.seq);
        if !store.is_synced(seq) {
            store.sync(seq)?;
        }
        let Some(found) = found else { return Ok(None) };
        let mut object = self.partition.decode(key, &found).map_err(Failure::of_blocking_call)?;
        let kind = self.kinds.iter().find(|kind| kind.serves(&props));
        match kind {
            Some(kind) => merge_values(&**kind, &mut object),
            None if !props.dvv_enabled => object.unite_equal_contents(),
            None => {}
        }
        if kind.is_none() && props.is_newest_only() {
            object.keep_newest();
        }
        // As in a read, the newest value is chosen before expired ones are dropped.
        object.drop_expired(self.now);
        object.siblings.retain(|sibling| !sibling.meta.deleted);
        if object.siblings.is_empty() {
            return Ok(None);
        }
        Ok(Some(PresentVersion { object, props }))
    }
}
