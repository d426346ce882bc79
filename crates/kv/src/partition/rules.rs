//! The rules of a write.

use crate::config::ObjectLimits;
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
    /// The deadline by which the write must begin; `None` means that there is no deadline.
    pub(crate) deadline: Option<Deadline<'a>>,
}

/// What the merge of a version from another place depends on.
#[derive(Clone, Copy)]
pub struct MergeRules<'a> {
    /// Whether siblings are merged by dots.
    pub dvv: bool,
    /// The time of the wall clock.
    pub now: UnixMicros,
    /// The deadline by which the write must begin; `None` means that there is no deadline.
    pub(crate) deadline: Option<Deadline<'a>>,
}

impl MergeRules<'_> {
    /// Begins the write. Called under the key's lock, immediately before a copy is stored.
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.deadline.map_or(Ok(()), |deadline| deadline.begin())
    }
}

impl<'a> WriteRules<'a> {
    /// The same rules for a version that is merged by clock alone.
    pub fn merging(&self) -> MergeRules<'a> {
        MergeRules { dvv: self.props.dvv_enabled, now: self.now, deadline: self.deadline }
    }
}

impl WriteRules<'_> {
    /// Whether a coordinator keeps only the new value.
    pub fn newest_only(&self) -> bool {
        self.props.last_write_wins || !self.props.allow_mult
    }

    /// Begins the write. Called under the key's lock, immediately before an event is stamped or a
    /// copy is stored.
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.deadline.map_or(Ok(()), |deadline| deadline.begin())
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
