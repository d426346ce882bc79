//! The changes that an operator may want.

use crate::world::HostId;

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// A node joins.
    Join,
    /// A member hands over what it owns, and leaves.
    Leave,
    /// A node joins in the place of a member, which leaves.
    Replace,
    /// A member that is dead is removed.
    ForceRemove,
    /// A node joins in the place of a member that is dead.
    ForceReplace,
    /// Any change that was decided before the last one had ended: a new plan for a pending one.
    NewPlan,
    /// Staged changes that were dropped.
    Clear,
    /// A node that was removed has started again.
    Return,
    /// A node has taken writes while it was alone, and joins with them.
    Bring,
    /// The join of such a node was taken back before its commit.
    TakeBack,
}

impl ChangeKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Join,
        Self::Leave,
        Self::Replace,
        Self::ForceRemove,
        Self::ForceReplace,
        Self::NewPlan,
        Self::Clear,
        Self::Return,
        Self::Bring,
        Self::TakeBack,
    ];

    /// The kinds with which a run begins, in turn.
    pub(super) const FIRST: [Self; 5] = [Self::Join, Self::Leave, Self::Replace, Self::ForceRemove, Self::ForceReplace];
}

/// A change of the members that an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The member that goes.
    pub(super) goes: Option<HostId>,
    /// The node that joins.
    pub(super) joins: Option<HostId>,
    /// The member that goes is dead.
    pub(super) is_forced: bool,
}

impl Wanted {
    pub(super) const fn kind(&self) -> ChangeKind {
        match (self.goes, self.joins, self.is_forced) {
            (None, ..) => ChangeKind::Join,
            (Some(_), None, false) => ChangeKind::Leave,
            (Some(_), Some(_), false) => ChangeKind::Replace,
            (Some(_), None, true) => ChangeKind::ForceRemove,
            (Some(_), Some(_), true) => ChangeKind::ForceReplace,
        }
    }
}
