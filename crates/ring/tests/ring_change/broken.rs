//! The rules that can be broken, one at a time. Each has to show in some seed.

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A put counts the members of both sets as one set.
    BothSetsAsOne,
    /// A put counts the old set alone until the flip.
    OldSetAlone,
    /// A put counts the new set alone after the flip, before all have confirmed it.
    NewSetAloneAfterFlip,
    /// A member acknowledges writes that are stamped too low.
    NoFenceForWrites,
    /// A member answers reads that are stamped too low like any other.
    NoFenceForReads,
    /// The driver does not wait until all have confirmed.
    NoConfirmations,
    /// A member confirms while its earlier requests go on.
    ConfirmsTooEarly,
    /// The driver takes a member that is marked as down for one that was removed.
    DownIsRemoved,
    /// A member that was away when its home flipped owes the new primaries nothing.
    ReturnsWithoutProof,
    /// Proofs of an earlier attempt count.
    OldProofs,
    /// A change of role clears owed marks.
    RolesClearMarks,
    /// A foreign copy is dropped when one primary has it.
    DropAfterOne,
    /// An abort drops what the new members took.
    AbortDrops,
}

impl Broken {
    /// The rules with a seed in which each shows. Neither rule about confirmations has one: fences
    /// stand in for them (docs/design/ring-changes.md).
    pub const KNOWN: [(Self, u64); 11] = [
        (Self::BothSetsAsOne, 3),
        (Self::OldSetAlone, 25),
        (Self::NewSetAloneAfterFlip, 1945),
        (Self::NoFenceForWrites, 22_439),
        (Self::NoFenceForReads, 78),
        (Self::DownIsRemoved, 1279),
        (Self::ReturnsWithoutProof, 630),
        (Self::OldProofs, 8),
        (Self::RolesClearMarks, 222),
        (Self::DropAfterOne, 76),
        (Self::AbortDrops, 26),
    ];
}
