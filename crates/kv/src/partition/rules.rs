//! The rules of a write.

use crate::config::ObjectLimits;
use crate::hooks::ValueKind;
use crate::partition::Deadline;
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
    /// The deadline by which the write must begin; `None` means that there is no deadline.
    pub(crate) deadline: Option<Deadline<'a>>,
}

impl MergeRules<'_> {
    /// Begins the write of a storage key. Called under the key's lock, immediately before a copy is
    /// stored.
    pub(super) fn begin(&self, key: &[u8]) -> Result<(), Error> {
        self.deadline.map_or(Ok(()), |deadline| deadline.begin(key))
    }
}

impl<'a> WriteRules<'a> {
    /// The same rules for a version that is merged by clock alone.
    pub fn merging(&self) -> MergeRules<'a> {
        MergeRules { now: self.now, deadline: self.deadline }
    }
}

impl WriteRules<'_> {
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
