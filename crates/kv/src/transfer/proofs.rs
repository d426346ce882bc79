//! The proofs of homes that are changing, as far as they have come (`ombak-repair` makes them).

use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::replica::ClassId;
use ombak_ring::placement::{HomePlacement, Phase, Placement, ProofOrder, ProvedHome};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long the parts of others may differ without getting fewer before this node brings them, too.
/// They may wait for their turn, or for a pause after a failure.
const OTHERS_STAND_STILL_MAX: Duration = Duration::from_secs(5);

/// What the node knows at the moment at which it is asked about its proofs.
pub struct Asked<'a> {
    /// The placement in force.
    pub placement: &'a Placement,
    /// This node.
    pub here: NodeId,
    /// The n of all classes.
    pub ns: &'a BTreeSet<u32>,
    /// Whether this node is known to hold everything of the class (home, n).
    pub is_full: &'a dyn Fn(u32, u32) -> bool,
}

/// The proofs that the driver wants, by home.
#[derive(Default)]
pub struct Proofs(Mutex<BTreeMap<u32, Proof>>);

/// The proof of a home.
#[derive(Default)]
struct Proof {
    /// The number of the home version of the begin.
    begun: u64,
    /// The members of the new set that are to be shown to hold everything.
    to: BTreeSet<NodeId>,
    comparisons: BTreeMap<(u32, NodeId), Comparison>,
}

/// The comparison of a class with a member of the new set.
#[derive(Default)]
pub struct Comparison {
    /// Whether this node was full when it began last.
    was_full: bool,
    /// Whether the member durably holds everything of the class.
    pub is_proved: bool,
    /// The number of ranges in the parts of others that differed last, and since when.
    pub left_to_others: Option<(usize, Instant)>,
    /// Why it did not end.
    pub obstacle: Option<String>,
}

/// What keeps this node from proving a class to a member of the new set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofObstacle {
    /// The class.
    pub class: ClassId,
    /// The member of the new set.
    pub node: NodeId,
    /// What happened, for an operator.
    pub why: String,
}

impl Proofs {
    /// Takes orders of the driver. What was proved for the same begin stays. An order that is not
    /// repeated stands until the home flips or is aborted: a new driver has given none yet, and
    /// what every member had confirmed once stays confirmed.
    pub fn want(&self, orders: Vec<ProofOrder>, placement: &Placement) {
        let mut proofs = self.0.lock();
        for ProofOrder { home, begun, to } in orders {
            let kept = proofs.remove(&home);
            let kept = kept.filter(|proof| proof.begun == begun || is_broken(BrokenRule::ProofsBelongToTheirBegin));
            proofs.insert(home, Proof { begun, to, ..kept.unwrap_or_default() });
        }
        proofs.retain(|home, proof| !proof.is_over(&placement.home(*home)));
    }

    /// Whether this node has proved a class since a begin to everybody to whom it was ordered to.
    pub(crate) fn has_proved(&self, home: &HomePlacement<'_>, here: NodeId, n: u32) -> bool {
        let proofs = self.0.lock();
        proofs.get(&home.home()).filter(|proof| proof.is_of(home)).is_some_and(|proof| {
            let needed = proof.needed(home, here, &BTreeSet::from([n]));
            needed.iter().all(|place| proof.comparisons.get(place).is_some_and(|comparison| comparison.is_proved))
        })
    }

    /// The comparisons that are still to be made: also those that were made while this node was
    /// filling, and would now be those of a full member.
    pub fn open(&self, asked: &Asked<'_>) -> Vec<(ClassId, NodeId)> {
        let Asked { placement, here, ns, is_full } = *asked;
        let proofs = self.0.lock();
        let of_home = |(home, proof): (&u32, &Proof)| {
            let home = placement.home(*home);
            let is_made = |c: &Comparison, n| c.is_proved && (c.was_full || !is_full(home.home(), n));
            let is_open = |place: &(u32, NodeId)| !proof.comparisons.get(place).is_some_and(|c| is_made(c, place.0));
            let needed = if proof.is_of(&home) { proof.needed(&home, here, ns) } else { Vec::new() };
            let class = |n| ClassId { partition: home.home(), n };
            needed.into_iter().filter(is_open).map(|(n, node)| (class(n), node)).collect::<Vec<_>>()
        };
        proofs.iter().flat_map(of_home).collect()
    }

    /// The homes that are proved to every other member of their new sets.
    pub fn proved(&self, asked: &Asked<'_>) -> Vec<ProvedHome> {
        let Asked { placement, here, ns, is_full } = *asked;
        if is_broken(BrokenRule::FlipsNeedProofs) {
            let pending = placement.homes().filter(|home| home.phase() == Phase::Pending);
            let as_if = |home: HomePlacement<'_>| {
                let (home, begun) = (home.home(), home.version().number);
                ProvedHome { home, begun, full: ns.clone() }
            };
            return pending.map(as_if).collect();
        }
        let proofs = self.0.lock();
        let of_home = |(home, proof): (&u32, &Proof)| {
            let home = placement.home(*home);
            if !proof.is_of(&home) {
                return None;
            }
            let mut full: BTreeSet<u32> = ns.iter().copied().filter(|n| home.replica_set(*n).contains(&here)).collect();
            full.retain(|n| is_full(home.home(), *n));
            for (n, node) in proof.needed(&home, here, ns) {
                let comparison = proof.comparisons.get(&(n, node)).filter(|comparison| comparison.is_proved)?;
                if !comparison.was_full {
                    full.remove(&n);
                }
            }
            Some(ProvedHome { home: home.home(), begun: proof.begun, full })
        };
        proofs.iter().filter_map(of_home).collect()
    }

    /// What keeps this node from proving classes.
    pub fn obstacles(&self) -> Vec<ProofObstacle> {
        let proofs = self.0.lock();
        let of_home = |(home, proof): (&u32, &Proof)| {
            let of_place = |((n, node), comparison): (&(u32, NodeId), &Comparison)| {
                let why = comparison.obstacle.clone()?;
                Some(ProofObstacle { class: ClassId { partition: *home, n: *n }, node: *node, why })
            };
            proof.comparisons.iter().filter_map(of_place).collect::<Vec<_>>()
        };
        proofs.iter().flat_map(of_home).collect()
    }

    /// Begins a comparison. Returns the number of the begin that it is for.
    pub fn begin(&self, class: ClassId, node: NodeId, is_full: bool) -> Option<u64> {
        let mut proofs = self.0.lock();
        let proof = proofs.get_mut(&class.partition)?;
        let comparison = proof.comparisons.entry((class.n, node)).or_default();
        comparison.was_full = is_full;
        Some(proof.begun)
    }

    /// Changes a comparison, unless it is for another begin by now.
    pub fn note(&self, class: ClassId, node: NodeId, begun: u64, change: impl FnOnce(&mut Comparison)) {
        let mut proofs = self.0.lock();
        if let Some(proof) = proofs.get_mut(&class.partition).filter(|proof| proof.begun == begun) {
            change(proof.comparisons.entry((class.n, node)).or_default());
        }
    }

    /// Whether to wait for others whose parts still differ: as long as they go on, and for a moment
    /// longer.
    pub fn is_to_wait(&self, class: ClassId, node: NodeId, begun: u64, left_to_others: usize, now: Instant) -> bool {
        let mut waits = false;
        self.note(class, node, begun, |comparison| {
            let before = comparison.left_to_others.filter(|(before, _)| left_to_others >= *before);
            let (_, since) = *comparison.left_to_others.insert(before.unwrap_or((left_to_others, now)));
            waits = left_to_others > 0 && now < since + OTHERS_STAND_STILL_MAX;
        });
        waits
    }
}

impl Proof {
    /// Whether the order is for the begin that this node has adopted.
    fn is_of(&self, home: &HomePlacement<'_>) -> bool {
        home.phase() == Phase::Pending && home.version().number == self.begun
    }

    /// Whether the home has gone on since the begin that the order is for. The order can also be
    /// for a begin that this node has not adopted yet.
    fn is_over(&self, home: &HomePlacement<'_>) -> bool {
        home.version().number > self.begun || (home.version().number == self.begun && !self.is_of(home))
    }

    /// The classes in which a node is a member of the old set, each with the other members of the
    /// new set that the order names.
    fn needed(&self, home: &HomePlacement<'_>, here: NodeId, ns: &BTreeSet<u32>) -> Vec<(u32, NodeId)> {
        let mut needed = Vec::new();
        for n in ns.iter().filter(|n| home.replica_set(**n).contains(&here)) {
            let new = home.other_set(*n).into_iter().filter(|node| *node != here && self.to.contains(node));
            needed.extend(new.map(|node| (*n, node)));
        }
        needed
    }
}
