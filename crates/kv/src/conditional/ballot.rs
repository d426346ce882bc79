//! The ballot of a conditional put.

use ombak_types::time::UnixMicros;

/// The place of one conditional put in the order of all puts of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ballot {
    /// The last-modified time of the value.
    pub stamp: UnixMicros,
    /// A random number: two puts can have the same time.
    pub number: u64,
}

impl Ballot {
    /// Whether a primary that has promised `promised` may promise or accept this ballot.
    pub(crate) fn follows(&self, promised: &Self) -> bool {
        self == promised || self.stamp > promised.stamp
    }
}
