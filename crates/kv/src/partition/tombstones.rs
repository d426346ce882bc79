//! What becomes of a tombstone on its way out, and of values that a tombstone hides
//! (docs/design/replication.md §6).

use super::locked::{Locked, Written, append};
use super::rules::{age_from_secs, age_from_stored};
use super::{Access, Failure};
use crate::requests::PutCondition;
use ombak_storage::Origin;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, Object, Sibling, SiblingMeta};

impl Locked<'_> {
    /// Checks the condition of a write as a reader of the bucket sees the key. A tombstone or an
    /// expired version counts as an absent key. `newest_only` says that the bucket has no siblings.
    pub(crate) fn check(&self, condition: &PutCondition, newest_only: bool, now: UnixMicros) -> Result<(), Error> {
        let is_hidden = |local: &&Object| newest_only && local.is_hidden_by_tombstone();
        condition.check(self.local.as_ref().filter(|local| !is_hidden(local)), now)
    }

    /// Takes the time from the tombstone that the key holds, if it is exactly the version with this
    /// digest and has a time. The fence comes first, as before a removal. Blocks.
    pub fn take_time(
        self,
        expected: u64,
        now: UnixMicros,
        raise_fence: impl FnOnce(),
    ) -> Result<Option<Written>, Failure> {
        let (partition, key) = (self.partition, self.key);
        let Some(found) = partition.read(key, Access::Blocking)?.filter(|found| found.digest == expected) else {
            return Ok(None);
        };
        let mut object = partition.decode(key, &found)?;
        if !object.is_absent(now) || !object.has_timed_tombstone() {
            return Ok(None);
        }
        raise_fence();
        object.take_times_of_tombstones();
        let age_from_secs = age_from_stored(found.stored_secs, now);
        append(partition, key, object, self.replaced(), Origin::Reap, None, age_from_secs).map(Some)
    }

    /// Writes the tombstone that hides the values beside it anew, as a coordinator does: it gets an
    /// event that has seen them. It keeps its time, so that it hides no value that it did not hide
    /// before. Returns nothing if no value is hidden.
    pub(crate) fn replace_hidden(self, now: UnixMicros) -> Result<Option<Written>, Failure> {
        let (partition, key, replaced) = (self.partition, self.key, self.replaced());
        let Some(mut local) = self.local.filter(Object::is_hidden_by_tombstone) else { return Ok(None) };
        let mut clock = std::mem::take(&mut local.clock);
        local.keep_newest();
        let hiding = local.siblings.pop().map(|newest| newest.meta).unwrap_or_default();
        let actor = partition.actor_of_event(&clock);
        let dot = Some(clock.increment(&actor, now));
        let meta = SiblingMeta { dot, ..hiding };
        let object = Object { clock, siblings: vec![Sibling { value: bytes::Bytes::new(), meta }] };
        append(partition, key, object, replaced, Origin::Coordinated, None, age_from_secs(now)).map(Some)
    }
}
