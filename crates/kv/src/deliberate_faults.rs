//! Rules that a test breaks on purpose, to see that the simulator finds out.
//!
//! The switch exists only with the feature `deliberate-faults`, which the simulator and the tests
//! of `ombak-repair` enable, and in the tests of this crate. Without it, [`is_broken`] is the
//! constant `false`. The rules of `ombak-repair` are in this list, too, so that there is one list.
//! The numbers are those of the table at the end of docs/design/replication.md.

#[cfg(any(test, feature = "deliberate-faults"))]
use ombak_ring::Ring;
use ombak_ring::placement::Placement;
#[cfg(any(test, feature = "deliberate-faults"))]
use ombak_ring::placement::{HomePlacement, Phase};
#[cfg(any(test, feature = "deliberate-faults"))]
use ombak_types::NodeId;
#[cfg(any(test, feature = "deliberate-faults"))]
use std::sync::Arc;

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrokenRule {
    /// 1: a node gives back the copies of each class in which it is no primary, also if it is a
    /// primary of other classes of the partition.
    HintsGoByClass,
    /// 2: the "not found" of a replica that may lack something counts.
    FillingReplicasProveNoAbsence,
    /// A store that lost what was not synced is noticed, also if its machine ran on (§1).
    LostTailsAreNoticed,
    /// What a filling node has stored since it was compared with a primary is owed to that primary
    /// (§1).
    FillingNodesPassOn,
    /// 7: a copy that was proved is removed only if it is still the proven version.
    OnlyProvenVersionsAreRemoved,
    /// 8: a node syncs its store before it says what it holds.
    ProofsAreSynced,
    /// 3: copies that a node took for others, and what it owes, are not forgotten when it gets
    /// another role (§2).
    RolesKeepWhatIsOwed,
    /// A class that joins a node is not full before the home has flipped (§3).
    JoiningClassesAreNotFull,
    /// A proof counts only for the begin after which it was made (§3).
    ProofsBelongToTheirBegin,
    /// 4: the sets of a home change as a whole. Where this is broken, from the first flip on a node
    /// finds the replicas of each home in a ring in which each slot has the owner that its own home
    /// has in force.
    HomesMoveAsAWhole,
    /// A member says that it has proved a home only when it has (§3).
    FlipsNeedProofs,
    /// A member of the new set says that it lacks something until it is full (§3).
    NewSetsSayWhatTheyLack,
    /// A member of the old set keeps its copies until the home has finished (§3).
    OldSetsKeepTheirCopies,
    /// A copy for others goes when all primaries have proved that they hold it, not one (§4).
    AllPrimariesProve,
    /// Nothing of a home that is changing is reaped (§3).
    ChangingHomesReapNothing,
    /// 11: tombstones are removed only after a question to the members that are no primaries.
    OtherMembersAreAsked,
    /// 11: votes and answers of a round of reaping wait for the disk.
    ReapingAnswersAreSynced,
    /// 11: a primary that does not know whether it has everything does not vote.
    FillingPrimariesDoNotVote,
    /// 12: a copy is refused that was read before a fence.
    CopiesAreFenced,
    /// 12: a member that answers a round raises the fence of the class.
    AnswersRaiseFences,
    /// 12: a removal raises the fence of the key.
    RemovalsRaiseFences,
    /// In a bucket without siblings a newer tombstone hides an older value that it has not seen
    /// (§6).
    NewerTombstonesHide,
    /// A tombstone loses its time at all primaries before it is removed (§6).
    TombstonesLoseTheirTimes,
    /// A primary writes a tombstone anew that hides values (§6).
    HiddenValuesAreReplaced,
    /// 12: a copy that was refused is read again before it is sent again.
    RefusedCopiesAreReadAgain,
    /// 12: a forwarded put is executed although its deadline has passed.
    ForwardedPutsAreNeverLate,
    /// A primary accepts a conditional put only if the put has seen everything that it holds, and
    /// only if it has promised nothing later (§17).
    PrimariesCheckConditions,
    /// A primary accepts no conditional put with an earlier ballot than it has promised (§17).
    BallotsAreKept,
    /// A node keeps what it has promised over a restart (§17).
    BallotsOutliveRestarts,
    /// The value of a conditional put gets the time of its ballot (§17).
    BallotsDateValues,
    /// 13: the actor of an earlier run is used again.
    EachRunHasItsOwnActor,
    /// While a home changes, a put must meet its quorums in both sets
    /// (docs/design/ring-changes.md).
    BothSetsCount,
    /// While a home changes, a put goes to the members of both sets.
    PutsReachBothSets,
    /// A member acknowledges no write whose sender knows an older placement of the home.
    WritesAreFenced,
    /// The answer to a read whose sender knows an older placement of the home does not count.
    ReadsAreFenced,
    /// 15: a member that leaves is no fallback (§15).
    LeaversStandInForNobody,
    /// What a node has to note on a full disk is paid for by a reserve.
    ReservesPayForNotes,
    /// A leaver that cannot remove a copy for lack of room has proved it at all primaries (§15).
    LeaversProveWhatTheyKeep,
    /// 15: a member that leaves says that it holds copies for others as long as it does (§15).
    LeaversSayWhatTheyHold,
    /// 10: a node that was removed takes no part when it returns: members do not let it in, it
    /// believes them, and it brings nothing to a member that knows a later version of a home (§5,
    /// §15).
    RemovedNodesTakeNoPart,
    /// A node that is new in a goal is no fallback before all members have confirmed the goal.
    NewcomersStandInForNobody,
    /// What a node brought with it when it joined is handed back only when every member knows the
    /// node (§15).
    NewcomersHandBackLater,
    /// A member that adopts a flip without having proved the home, and stays a primary, owes what
    /// it holds.
    UnprovedPrimariesOwe,
    /// A key that a fold has found is erased only if its object has the clock that the fold has
    /// found.
    ErasesCheckClocks,
    /// A replica adds bytes to a value only if it has what they build on
    /// (docs/design/datatypes.md).
    AdditionsBuildOnTheirPast,
    /// 22: a node that goes on after a pause answers no read before the other members have told
    /// what they hold for it (docs/cluster.md).
    WakingNodesWait,
    /// What the disk does not give back is a version that cannot be read, which is repaired (§13).
    MediaErrorsAreRepaired,
    /// 14: a replica keeps only the newest of concurrent values, as if it were a coordinator of a
    /// bucket without siblings.
    ReplicasKeepSiblings,
    /// An exchange pushes at once only what is above all marks (docs/design/anti-entropy.md §5).
    MarksDecideWhatIsPushed,
    /// An exchange drops a version only if all other primaries have answered.
    DropsWaitForAllPrimaries,
    /// An exchange drops a version only if all other primaries lack it, not only the one of the
    /// exchange.
    DropsNeedAllPrimaries,
    /// A mark advances only to what the other primary has on its disk.
    MarksFollowSyncs,
    /// A mark advances only if everything was proved.
    MarksNeedProof,
    /// A mark holds only while the other primary has the token that it names.
    MarksNameTokens,
    /// A store that may lack something, or was set back, begins no exchange.
    DoubtfulStoresOnlyReceive,
    /// An exchange looks twice before a difference counts.
    DifferencesAreSeenTwice,
    /// A primary has on its disk what all members have told of their stores before it removes
    /// anything.
    ToldSeqsAreKept,
    /// Who fills takes what a mark covers last, and leaves out what a full primary lacks.
    FillingLeavesOutTheDead,
    /// A read spreads no copy that a mark covers or that is in doubt.
    ReadsLeaveItToExchanges,
    /// The sums of the run before are compared with the index at each opening, and not computed
    /// anew from what is there (docs/design/anti-entropy.md §6).
    SumsAreCheckedAtOpening,
}

#[cfg(any(test, feature = "deliberate-faults"))]
mod switch {
    use super::BrokenRule;
    use std::cell::Cell;

    thread_local! {
        static BROKEN: Cell<Option<BrokenRule>> = const { Cell::new(None) };
    }

    /// Breaks a rule in everything that this thread runs, or none any more.
    #[cfg_attr(not(feature = "deliberate-faults"), allow(dead_code, unreachable_pub))]
    pub fn break_rule(rule: Option<BrokenRule>) {
        BROKEN.set(rule);
    }

    /// Whether a rule is broken in what this thread runs.
    pub fn is_broken(rule: BrokenRule) -> bool {
        BROKEN.get() == Some(rule)
    }
}

#[cfg(all(test, not(feature = "deliberate-faults")))]
pub(crate) use switch::break_rule;
#[cfg(feature = "deliberate-faults")]
pub use switch::break_rule;
#[cfg(any(test, feature = "deliberate-faults"))]
pub use switch::is_broken;

/// Whether a rule is broken on purpose.
#[cfg(not(any(test, feature = "deliberate-faults")))]
pub const fn is_broken(_rule: BrokenRule) -> bool {
    false
}

/// The placement that a node puts in force. Where slots flip one by one on purpose, each home has
/// the ring whose slots have the owners that their own homes have in force.
#[cfg(any(test, feature = "deliberate-faults"))]
pub(crate) fn to_put_in_force(placement: Placement) -> Placement {
    let has_flipped = placement.homes().any(|home| home.phase() == Phase::Flipped);
    if !is_broken(BrokenRule::HomesMoveAsAWhole) || !has_flipped {
        return placement;
    }
    let owner = |home: HomePlacement<'_>| home.in_force().id(home.in_force().owner(home.home()));
    let owners: Vec<NodeId> = placement.homes().map(owner).collect();
    match Ring::from_owners(&owners, placement.version()) {
        Ok(ring) => Placement::of_ring(Arc::new(ring)),
        Err(_) => placement,
    }
}

/// The placement that a node puts in force.
#[cfg(not(any(test, feature = "deliberate-faults")))]
pub(crate) const fn to_put_in_force(placement: Placement) -> Placement {
    placement
}
