//! What a write depends on besides the object.

use crate::config::ObjectLimits;
use crate::deadline::Deadline;
use ombak_types::BucketProps;
use ombak_types::Error;
use ombak_types::clock::Pruning;
use ombak_types::time::UnixMicros;

/// What a write depends on besides the object.
#[derive(Clone, Copy)]
pub struct WriteRules<'a> {
    /// The bucket's properties.
    pub props: &'a BucketProps,
    /// How large objects may become.
    pub limits: &'a ObjectLimits,
    /// What the wall clock says.
    pub now: UnixMicros,
    /// Until when the write may begin; none: it may always.
    pub(crate) deadline: Option<Deadline<'a>>,
}

impl WriteRules<'_> {
    /// Whether a coordinator keeps only the value it was given.
    pub fn newest_only(&self) -> bool {
        self.props.last_write_wins || !self.props.allow_mult
    }

    /// To be called under the key's lock, immediately before an event is stamped or a copy is stored.
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
