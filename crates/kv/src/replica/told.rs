//! What a node tells of its store, and others keep (docs/design/anti-entropy.md §3).

/// A seq that a store had on its disk when its node said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToldSeq {
    /// The random id of the store; never 0.
    pub store_id: u64,
    /// Every append up to this seq was on the disk.
    pub seq: u64,
}
