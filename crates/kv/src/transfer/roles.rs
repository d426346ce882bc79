//! What this node becomes in the classes of each home when the placement changes
//! (docs/design/ring-changes.md, "Filling").
//!
//! What it is: pure functions of two placements. A class (home, n) has this node as a primary if n
//! is above the node's rank among the distinct owners that a walk from the home finds. So the
//! classes that are alike are a span of n.
//!
//! What it is not: it keeps nothing.

use ombak_ring::Ring;
use ombak_ring::placement::{HomePlacement, Phase, Placement};
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// Some classes of a home: those with an n above the first number, up to the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    above: u32,
    up_to: u32,
}

impl Span {
    pub(crate) const fn includes(self, n: u32) -> bool {
        self.above < n && n <= self.up_to
    }

    #[cfg(test)]
    const fn is_empty(self) -> bool {
        self.above >= self.up_to
    }

    /// One number for an atomic place.
    pub(crate) const fn to_bits(self) -> u64 {
        (self.above as u64) << 32 | self.up_to as u64
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self { above: (bits >> 32) as u32, up_to: bits as u32 }
    }
}

/// The place of a node among the distinct owners that a walk from a home finds, from 0; the largest
/// number if it owns nothing.
fn rank(ring: &Ring, home: u32, node: NodeId) -> u32 {
    let owners = ring.replica_set(home, ring.size().get());
    owners.iter().position(|owner| *owner == node).map_or(u32::MAX, |rank| rank as u32)
}

/// The place of a node in the ring in force of a home.
pub(crate) fn rank_in_force(home: &HomePlacement<'_>, node: NodeId) -> u32 {
    rank(home.in_force(), home.home(), node)
}

fn rank_in_other(home: &HomePlacement<'_>, node: NodeId) -> u32 {
    home.other().map_or(u32::MAX, |ring| rank(ring, home.home(), node))
}

/// The classes that a node is to get, and does not hold yet: the home is pending, and the node is
/// in the pending set alone.
pub(crate) fn joining(home: &HomePlacement<'_>, node: NodeId) -> Span {
    match home.phase() {
        Phase::Pending => Span { above: rank_in_other(home, node), up_to: rank_in_force(home, node) },
        Phase::Settled | Phase::Flipped => Span::default(),
    }
}

/// Whether a begin of a home has made a node a member that was none of it at all.
pub(crate) fn is_newcomer(home: &HomePlacement<'_>, node: NodeId) -> bool {
    joining(home, node).up_to == u32::MAX
}

/// Whether a node is to hold everything of a class: it is in the set in force, or in the set that
/// is to be in force. A member of the former set alone is on its way out.
pub fn is_to_be_full(home: &HomePlacement<'_>, node: NodeId, n: u32) -> bool {
    home.replica_set(n).contains(&node) || home.phase() == Phase::Pending && home.other_set(n).contains(&node)
}

/// Whether all homes got the ring at once, because there was nothing to move.
pub fn is_of_one_ring(placement: &Placement) -> bool {
    let version = placement.version();
    placement.goal().version() == version && placement.homes().all(|h| !h.is_changing() && h.version() == version)
}

/// The classes of each home in which a node finds itself in the set in force, without having
/// adopted the begin that led there: it does not know that it holds everything of them. `before` is
/// the placement that it adopted last. Classes with an n that no bucket has hold nothing: homes in
/// which only these move take no steps, and count only if a class with one of `ns` is among them.
pub(crate) fn unprepared(
    before: Option<&Placement>,
    after: &Placement,
    node: NodeId,
    ns: &BTreeSet<u32>,
) -> Vec<(u32, Span)> {
    let is_first = |before: &Placement| before.is_settled() && before.goal().node_count() == 1;
    let before = before.filter(|before| before.version().lineage == after.version().lineage);
    let before = before.filter(|before| before.size() == after.size());
    if is_of_one_ring(after) && before.is_none_or(is_first) {
        // A cluster without data is formed in one step.
        return Vec::new();
    }
    let of_home = |home: HomePlacement<'_>| {
        let span = match before {
            Some(before) => unprepared_since(&before.home(home.home()), &home, node),
            None => unprepared_of_unknown(after, &home, node),
        };
        (home.home(), span)
    };
    after.homes().map(of_home).filter(|(_, span)| ns.iter().any(|n| span.includes(*n))).collect()
}

fn unprepared_since(before: &HomePlacement<'_>, after: &HomePlacement<'_>, node: NodeId) -> Span {
    if before.version() == after.version() {
        return Span::default();
    }
    let mut had = rank_in_force(before, node);
    match before.phase() {
        Phase::Settled => {}
        // What the former set has, it keeps until the home is settled.
        Phase::Flipped => had = had.min(rank_in_other(before, node)),
        // Steps may have been skipped. The home cannot have flipped without this node, so the begin
        // that led to the flip is the one that was adopted, or a later one to the same ring.
        Phase::Pending => {
            let has_flipped = before.other().is_some_and(|ring| ring.version() == after.in_force().version());
            if has_flipped {
                had = had.min(rank_in_other(before, node));
            }
        }
    }
    Span { above: rank_now(after, node), up_to: had }
}

/// As [`unprepared_since`], for a node that does not know what it had.
fn unprepared_of_unknown(placement: &Placement, home: &HomePlacement<'_>, node: NodeId) -> Span {
    let had = match home.phase() {
        Phase::Pending => return Span::default(),
        Phase::Flipped => rank_in_other(home, node),
        // The home got the goal without a step because nothing of it moved, or never left its ring.
        Phase::Settled if home.version() == placement.goal().version() => return Span::default(),
        Phase::Settled if home.in_force().version() != placement.goal().version() => return Span::default(),
        Phase::Settled => u32::MAX,
    };
    Span { above: rank_now(home, node), up_to: had }
}

/// The classes above this are to be full now.
fn rank_now(home: &HomePlacement<'_>, node: NodeId) -> u32 {
    match home.phase() {
        Phase::Settled | Phase::Pending => rank_in_force(home, node),
        Phase::Flipped => rank_in_force(home, node).min(rank_in_other(home, node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_ring::RingVersion;
    use ombak_ring::placement::{Step, StepOf};
    use std::sync::Arc;

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);
    const C: NodeId = NodeId::new(3);
    const D: NodeId = NodeId::new(4);

    fn ring(owners: &[NodeId], number: u64) -> Arc<Ring> {
        Arc::new(Ring::from_owners(owners, RingVersion { lineage: 1, number }).unwrap())
    }

    /// D takes slot 4 from A: home 4 goes from {A, B, C} to {D, B, C}.
    fn before() -> Placement {
        Placement::of_ring(ring(&[A, B, C, A, A, B, C, A], 1))
    }

    fn with_goal() -> Placement {
        before().with_goal(ring(&[A, B, C, A, D, B, C, A], 2), &BTreeSet::from([1, 3])).unwrap()
    }

    fn after(placement: &Placement, step: Step) -> Placement {
        let seen = placement.home(4).version().number;
        placement.after(&[StepOf { home: 4, seen, step }]).unwrap()
    }

    fn unprepared(before: Option<&Placement>, after: &Placement, node: NodeId) -> Vec<(u32, Span)> {
        super::unprepared(before, after, node, &BTreeSet::from([1, 3]))
    }

    fn span(above: u32, up_to: u32) -> Vec<(u32, Span)> {
        vec![(4, Span { above, up_to })]
    }

    #[test]
    fn a_span_survives_an_atomic_place() {
        let some = Span { above: 2, up_to: u32::MAX };
        assert_eq!(Span::from_bits(some.to_bits()), some);
        assert!(some.includes(3) && !some.includes(2) && Span::default().is_empty());
    }

    #[test]
    fn a_member_of_the_pending_set_alone_joins() {
        let begun = after(&with_goal(), Step::Begin);
        let home = begun.home(4);
        assert_eq!(joining(&home, D), Span { above: 0, up_to: u32::MAX });
        assert!(is_newcomer(&home, D) && !is_newcomer(&home, A));
        // B is the second owner in both sets.
        assert!(joining(&home, B).is_empty() && joining(&home, A).is_empty());
        assert!(joining(&after(&begun, Step::Flip).home(4), D).is_empty());
    }

    #[test]
    fn who_adopted_the_begin_is_prepared() {
        let begun = after(&with_goal(), Step::Begin);
        let flipped = after(&begun, Step::Flip);
        let finished = after(&flipped, Step::Finish);
        for node in [A, B, C, D] {
            for (one, next) in [(&before(), &with_goal()), (&with_goal(), &begun), (&begun, &flipped)] {
                assert_eq!(unprepared(Some(one), next, node), []);
            }
            assert_eq!(unprepared(Some(&begun), &finished, node), [], "it has not seen the flip by itself");
            assert_eq!(unprepared(Some(&flipped), &finished, node), []);
            assert_eq!(unprepared(Some(&flipped), &flipped, node), []);
        }
    }

    #[test]
    fn who_skipped_the_begin_is_not_prepared() {
        let flipped = after(&after(&with_goal(), Step::Begin), Step::Flip);
        let finished = after(&flipped, Step::Finish);
        for (one, next) in [(&with_goal(), &flipped), (&before(), &flipped), (&with_goal(), &finished)] {
            assert_eq!(unprepared(Some(one), next, D), span(0, u32::MAX));
            assert_eq!(unprepared(Some(one), next, A), []);
            assert_eq!(unprepared(Some(one), next, B), []);
        }
        assert_eq!(unprepared(None, &flipped, D), span(0, u32::MAX), "nothing is known");
        assert_eq!(unprepared(None, &finished, D), span(0, u32::MAX));
        assert_eq!(unprepared(None, &with_goal(), A), []);
        // An attempt that was aborted does not prepare for a later one.
        let aborted = after(&after(&with_goal(), Step::Begin), Step::Abort);
        assert_eq!(unprepared(Some(&aborted), &finished, D), span(0, u32::MAX));
    }

    #[test]
    fn a_cluster_without_data_is_formed_in_one_step() {
        let alone = Placement::of_ring(ring(&[A; 8], 1));
        let formed = Placement::of_ring(ring(&[A, B, C, A, A, B, C, A], 2));
        for before in [None, Some(&alone)] {
            assert_eq!(unprepared(before, &formed, B), []);
        }
        let other = Placement::of_ring(ring(&[A, B, A, B, A, B, A, B], 1));
        assert!(!unprepared(Some(&other), &formed, C).is_empty(), "C was no owner of a cluster that may have data");
    }
}
