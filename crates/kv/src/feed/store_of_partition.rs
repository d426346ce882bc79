//! What consumers see of the store of a partition.

use super::led::Followed;
use crate::hooks::{FollowedStore, PresentVersion, merge_values};
use crate::partition::{Access, Failure, Partition};
use ombak_types::Error;

/// The store of a partition; see the module.
pub(super) struct StoreOfPartition<'a> {
    partition: &'a Partition,
    followed: &'a Followed,
}

impl<'a> StoreOfPartition<'a> {
    pub(super) const fn new(partition: &'a Partition, followed: &'a Followed) -> Self {
        Self { partition, followed }
    }
}

impl FollowedStore for StoreOfPartition<'_> {
    fn number(&self) -> u32 {
        self.partition.number()
    }

    fn set_aside_to(&self) -> u64 {
        self.partition.set_aside_to()
    }

    fn present(&self, key: &[u8]) -> Result<Option<PresentVersion>, Error> {
        let Some(props) = self.followed.buckets.snapshot().props_of_key(key).cloned() else { return Ok(None) };
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
        let kind = self.followed.kinds.iter().find(|kind| kind.serves(&props));
        match kind {
            Some(kind) => merge_values(&**kind, &mut object),
            None if !props.dvv_enabled => object.unite_equal_contents(),
            None => {}
        }
        if kind.is_none() && props.is_newest_only() {
            object.keep_newest();
        }
        // As in a read, the newest value is chosen before expired ones are dropped.
        object.drop_expired(self.followed.runtime.wall_clock());
        object.siblings.retain(|sibling| !sibling.meta.deleted);
        if object.siblings.is_empty() {
            return Ok(None);
        }
        Ok(Some(PresentVersion { object, props }))
    }
}
