//! The rules of a write.

use crate::config::ObjectLimits;
use crate::hooks::ValueKind;
use crate::partition::Deadline;
use ombak_storage::Origin;
use ombak_types::BucketProps;
use ombak_types::Error;
use ombak_types::clock::Pruning;
use ombak_types::time::UnixMicros;

/// Everything that a write depends on besides the object.
#[derive(Clone, Copy)]
pub struct WriteRules<'a> {
    /// The bucket's properties.
    pub props: &'a BucketProps,
    /// Limits for the size of objects.
    pub limits: &'a ObjectLimits,
    /// The time of the wall clock.
    pub now: UnixMicros,
    /// The kind of the bucket's values; `None` for plain values.
    pub values: Option<&'a dyn ValueKind>,
    /// The deadline by which the write must begin; `None` means that there is no deadline.
    pub(crate) deadline: Option<Deadline<'a>>,
}

/// What the merge of a version from another place depends on. No property of the bucket is among
/// it, so that replicas merge alike whichever properties they know (docs/design/replication.md
/// §11).
#[derive(Clone, Copy)]
pub struct MergeRules<'a> {
    /// The time of the wall clock.
    pub now: UnixMicros,
    /// Unix seconds at which the version was stored in the place that it comes from. `None`: its
    /// age counts from its arrival here.
    pub stored_secs: Option<u32>,
    /// Where the version comes from.
    pub origin: Origin,
    /// The deadline by which the write must begin; `None` means that there is no deadline.
    pub(crate) deadline: Option<Deadline<'a>>,
}

impl MergeRules<'_> {
    /// The time from which the age of the version counts. A clock that is ahead elsewhere makes
    /// nothing younger than its arrival.
    pub(super) fn age_from_secs(&self) -> u32 {
        let now = age_from_secs(self.now);
        self.stored_secs.map_or(now, |stored| stored.min(now))
    }

    /// Begins the write of a storage key. Called under the key's lock, immediately before a copy is
    /// stored.
    pub(super) fn begin(&self, key: &[u8]) -> Result<(), Error> {
        self.deadline.map_or(Ok(()), |deadline| deadline.begin(key))
    }
}

/// The time from which the age of a version counts that is stored now, in Unix seconds.
pub(super) fn age_from_secs(now: UnixMicros) -> u32 {
    u32::try_from(now.secs()).unwrap_or(u32::MAX)
}

/// The same for a version that is stored anew as it is, with what is known of when it was stored.
pub(super) fn age_from_stored(stored_secs: Option<u32>, now: UnixMicros) -> u32 {
    stored_secs.unwrap_or_else(|| age_from_secs(now))
}

impl<'a> WriteRules<'a> {
    /// The same rules for a version that is merged by clock alone.
    pub fn merging(&self) -> MergeRules<'a> {
        MergeRules { now: self.now, stored_secs: None, origin: Origin::Coordinated, deadline: self.deadline }
    }
}

impl WriteRules<'_> {
    /// The time from which the age of a new version counts.
    pub(super) fn age_from_secs(&self) -> u32 {
        age_from_secs(self.now)
    }

    /// Whether a coordinator keeps only the new value.
    pub fn newest_only(&self) -> bool {
        self.values.is_none() && self.props.is_newest_only()
    }

    /// Begins the write of a storage key. Called under the key's lock, immediately before an event
    /// is stamped or a copy is stored.
    pub(super) fn begin(&self, key: &[u8]) -> Result<(), Error> {
        self.deadline.map_or(Ok(()), |deadline| deadline.begin(key))
    }

    pub(super) fn pruning(&self) -> Pruning {
        Pruning {
            small: self.props.small_vclock as usize,
            big: self.props.big_vclock as usize,
            young_secs: u64::from(self.props.young_vclock),
            old_secs: u64::from(self.props.old_vclock),
        }
    }
}
