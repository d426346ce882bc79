//! What a partition says of the sums of a class.

use super::plain::Sums;

/// What is known of the sums of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumsState {
    /// Nothing is summed up. A walk begins it.
    Unknown,
    /// This many ranges are behind until a walk has ended.
    Behind(u32),
    /// The sums are those of the store.
    Exact,
}

/// The sums of a class at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCut {
    /// Each append up to this place of the store is in the sums, and no later one.
    pub seq: u64,
    /// The sums.
    pub sums: Sums,
    /// Whether the last walk of this run has shown that the sums are right. Those that an earlier
    /// run has saved are not answered to other nodes before that: a record that was lost meanwhile
    /// would look as if it were there.
    pub is_checked: bool,
    /// Whether the store removes versions by itself, by its configuration. Then it may hold expired
    /// versions that it is about to remove, and replicas need not agree on the slots of versions.
    /// Such sums show that two replicas are equal. That they are not shows nothing.
    pub removes_by_itself: bool,
}
