//! What a write depends on besides the object.

use crate::config::ObjectLimits;
use ombak_types::BucketProps;
use ombak_types::clock::Pruning;
use ombak_types::time::UnixMicros;

/// What a write depends on besides the object.
#[derive(Clone, Copy, Debug)]
pub struct WriteRules<'a> {
    /// The bucket's properties.
    pub props: &'a BucketProps,
    /// How large objects may become.
    pub limits: &'a ObjectLimits,
    /// What the wall clock says.
    pub now: UnixMicros,
}

impl WriteRules<'_> {
    /// Whether a coordinator keeps only the value it was given.
    pub fn newest_only(&self) -> bool {
        self.props.last_write_wins || !self.props.allow_mult
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
