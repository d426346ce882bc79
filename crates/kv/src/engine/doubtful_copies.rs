//! Writes that meet a copy in doubt (docs/design/anti-entropy.md §5, "Writes").
//!
//! A copy in doubt may be one that was removed everywhere and came back here. Merged with another
//! copy it would be part of a new version, which no exchange can tell apart. So the other copy
//! takes its place, unless one of the two covers the other, and the copy goes to the file of
//! dropped copies. A key with one replica is left out: no other replica can show that its copy was
//! removed, and the copy may be all that there is of an acknowledged write.

use super::engine::Engine;
use crate::partition::{Access, Failure, Locked, Partition};
use crate::replica::ClassId;
use ombak_types::{Error, ShownKey, StoreFailure, VectorClock};
use tracing::warn;

/// What a write brings to a key.
#[derive(Clone, Copy)]
pub(super) enum Brings<'a> {
    /// A version with this clock.
    Version(&'a VectorClock),
    /// A new event, by somebody who has seen the versions of this clock.
    Event(&'a VectorClock),
}

impl Brings<'_> {
    /// Whether what is here and what comes do not become one version of two.
    fn replaces_or_is_replaced(self, local: &VectorClock) -> bool {
        match self {
            Self::Version(incoming) => incoming.descends(local) || local.descends(incoming),
            Self::Event(seen) => seen.descends(local),
        }
    }
}

impl Engine {
    /// Whether the version of a locked key is in doubt.
    pub(super) fn has_doubtful(&self, partition: &Partition, locked: &Locked<'_>) -> bool {
        self.transfers.is_doubtful(partition.number(), locked.local_seq()) && locked.local().is_some()
    }

    /// Lets a write take the place of a copy in doubt that it would be merged with. Without doubt
    /// this costs the load of one number. Waits for the disk only if it has to part the two.
    pub(super) fn part_from_doubtful(
        &self,
        (partition, n): (&Partition, u32),
        key: &[u8],
        locked: &mut Locked<'_>,
        brings: Brings<'_>,
        access: Access,
    ) -> Result<(), Failure> {
        // Where a key has one replica, nobody else can show that the copy was removed.
        if n == 1 || !self.has_doubtful(partition, locked) {
            return Ok(());
        }
        self.part((partition, n), key, locked, brings, access)
    }

    #[cold]
    fn part(
        &self,
        (partition, n): (&Partition, u32),
        key: &[u8],
        locked: &mut Locked<'_>,
        brings: Brings<'_>,
        access: Access,
    ) -> Result<(), Failure> {
        if locked.local().is_none_or(|local| brings.replaces_or_is_replaced(&local.clock)) {
            return Ok(());
        }
        if access == Access::Inline {
            return Err(Failure::WouldBlock);
        }
        // The lock keeps it as it is.
        let Some(found) = partition.read(key, access)? else { return Ok(()) };
        let class = ClassId { partition: partition.number(), n };
        self.transfers.other_ways.keep_dropped(class, key, &found).map_err(|why| {
            Error::from(StoreFailure::internal(format!("a copy in doubt could not be put aside: {why}")))
        })?;
        let (at, partition) = (ShownKey::of(key), class.partition);
        let what = "a copy in doubt is dropped, because a write takes its place";
        warn!(partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, "{what}");
        locked.part_from_local();
        Ok(())
    }
}
