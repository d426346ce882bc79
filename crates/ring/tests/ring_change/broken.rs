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
    /// An exchange pushes what the other primary lacks.
    NoMarks,
    /// A store that lost something gives like any other.
    NoDoubt,
    /// Nobody keeps the seqs that others told.
    ToldIsForgotten,
    /// A drop needs the mark of one primary.
    OneMarkDrops,
    /// A drop needs one primary that lacks the version.
    OneLacksIt,
    /// What is owed is pushed below a mark.
    OwesTheCovered,
    /// Who fills takes everything.
    FillingTakesTheCovered,
    /// A stand-in forgets that it was empty.
    EmptyIsForgotten,
    /// Members exchange while a home changes.
    ExchangesWhileChanging,
    /// Members reap while a home changes.
    ReapsWhileChanging,
    /// A node that becomes a primary keeps its token.
    RolesKeepTokens,
    /// A node that ceases to be a primary forgets its own marks.
    RolesClearOwnMarks,
    /// A proof sends copies in doubt.
    ProofsSendTheDoubtful,
    /// A proof sends copies below the marks like any others.
    ProofsSendTheCovered,
    /// A proof gives no mark.
    ProofsMakeNoMark,
    /// What is owed is pushed to a primary for which there is no mark.
    OwesToNewPrimaries,
    /// A store that was set back doubts everything up to its last opening.
    DoubtUpToTheLastOpening,
    /// A store that was found to be set back still sends what it read before.
    SendsWhatWasReadBefore,
    /// A put whose time is over is tried again.
    TriesAfterItsTime,
    /// A foreign copy is judged by the marks for the present primaries alone.
    FormerMarksAreVoid,
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

    /// The rules about exchanges and marks, in histories with marks. Three have no seed yet: that
    /// who fills leaves out what is covered, that a new primary draws a token, and that nothing
    /// covered is owed to it.
    pub const KNOWN_WITH_MARKS: [(Self, u64); 17] = [
        (Self::NoMarks, 50),
        (Self::NoDoubt, 155),
        (Self::ToldIsForgotten, 199),
        (Self::OneMarkDrops, 822),
        (Self::OneLacksIt, 444),
        (Self::OwesTheCovered, 22),
        (Self::EmptyIsForgotten, 11),
        (Self::ExchangesWhileChanging, 2889),
        (Self::ReapsWhileChanging, 52),
        (Self::RolesClearOwnMarks, 58),
        (Self::ProofsSendTheDoubtful, 573),
        (Self::ProofsSendTheCovered, 58),
        (Self::ProofsMakeNoMark, 58),
        (Self::DoubtUpToTheLastOpening, 136),
        (Self::SendsWhatWasReadBefore, 1251),
        (Self::TriesAfterItsTime, 436),
        (Self::FormerMarksAreVoid, 3822),
    ];
}
