//! Any sequence of staged changes, carried out by the driver with reports in any order: no unforced
//! step lowers the number of full replicas of a class too far, and every sequence ends.

use super::leader::planned;
use super::rng::Rng;
use ombak_ring::claim::Claim;
use ombak_ring::placement::{Heard, LackingHome, Phase, Placement, ProofOrder, ProvedHome, Report, Situation, StepOf};
use ombak_ring::staging::{Change, MemberStatus, Members};
use ombak_ring::{Ring, RingSize, RingVersion};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A class and a node that is full in it, or has lost its store of it.
type Held = BTreeSet<(u32, u32, NodeId)>;

struct Cluster {
    rng: Rng,
    placement: Placement,
    members: Members,
    ns: BTreeSet<u32>,
    heard: BTreeMap<NodeId, Heard>,
    orders: BTreeMap<NodeId, Vec<ProofOrder>>,
    down: BTreeSet<NodeId>,
    full: Held,
    lost: Held,
    next_node: u64,
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let size = RingSize::new([8, 16, 32][rng.within(0, 2) as usize]).unwrap();
        let nodes: BTreeSet<NodeId> = (1..=rng.within(1, 6)).map(NodeId::new).collect();
        let owners = Claim::of_new_ring(size, &nodes, 3).unwrap().owners;
        let placement = Placement::of_ring(Arc::new(Ring::from_owners(&owners, RingVersion::first(3)).unwrap()));
        let ns = BTreeSet::from([1, rng.within(2, 4) as u32]);
        let full = placement.homes().flat_map(|home| {
            let ns = ns.iter().copied().collect::<Vec<_>>();
            ns.into_iter().flat_map(move |n| home.replica_set(n).into_iter().map(move |node| (home.home(), n, node)))
        });
        Self {
            full: full.collect(),
            next_node: nodes.len() as u64 + 1,
            members: nodes.into_iter().map(|node| (node, MemberStatus::Valid)).collect(),
            heard: BTreeMap::new(),
            orders: BTreeMap::new(),
            down: BTreeSet::new(),
            lost: Held::new(),
            rng,
            placement,
            ns,
        }
    }

    fn run(mut self) {
        for _ in 0..80 {
            self.trouble();
            self.round();
        }
        self.down.clear();
        self.members
            .values_mut()
            .filter(|status| **status == MemberStatus::Down)
            .for_each(|status| *status = MemberStatus::Valid);
        for _ in 0..150 {
            self.round();
        }
        assert!(self.placement.is_settled() && self.placement.rings().len() == 1);
    }

    fn trouble(&mut self) {
        let nodes: Vec<NodeId> = self.members.keys().copied().collect();
        let Some(node) = self.rng.pick(&nodes) else { return };
        match self.rng.within(0, 19) {
            0..5 if self.down.contains(&node) => {
                self.down.remove(&node);
            }
            0..5 => {
                self.down.insert(node);
            }
            5 if self.down.contains(&node) && self.members[&node] == MemberStatus::Valid => {
                self.members.insert(node, MemberStatus::Down);
            }
            6 => {
                let primaries = self.primaries();
                self.full.retain(|(_, _, holder)| *holder != node);
                // It starts again, and what it said before it lost its store is not taken for new.
                self.heard.remove(&node);
                self.lost.extend(primaries.into_iter().filter(|(_, _, holder)| *holder == node));
            }
            7..10 => self.change(node),
            _ => {}
        }
    }

    fn change(&mut self, node: NodeId) {
        let joiner = NodeId::new(self.next_node);
        self.next_node += 1;
        let join = Change::Join { node: joiner };
        let changes = match self.rng.within(0, 7) {
            0..3 => vec![join],
            3..5 => vec![Change::Leave { node }],
            5 => vec![join, Change::Replace { node, with: joiner }],
            6 => vec![Change::ForceRemove { node }],
            _ => vec![join, Change::ForceReplace { node, with: joiner }],
        };
        let Some((goal, members)) = planned(&self.placement, &self.members, &changes) else { return };
        let Ok(next) = self.placement.with_goal(Arc::new(goal), &self.ns) else { return };
        (self.placement, self.members) = (next, members);
        self.forget_strangers();
    }

    fn primaries(&self) -> Held {
        let of_home = |home: ombak_ring::placement::HomePlacement<'_>| {
            let of_class =
                |n: &u32| home.primaries(*n).into_iter().map(|node| (home.home(), *n, node)).collect::<Vec<_>>();
            self.ns.iter().flat_map(of_class).collect::<Vec<_>>()
        };
        self.placement.homes().flat_map(of_home).collect()
    }

    /// Who is no primary any more is neither full nor filling.
    fn forget_strangers(&mut self) {
        let primaries = self.primaries();
        let stays = |held: &(u32, u32, NodeId)| primaries.contains(held) && self.members.contains_key(&held.2);
        self.full.retain(stays);
        self.lost.retain(stays);
        self.down.retain(|node| self.members.contains_key(node));
    }

    /// Some members report, and the leader takes what the driver decides.
    fn round(&mut self) {
        for node in self.members.keys().copied().collect::<Vec<_>>() {
            let heard = self.heard.entry(node).or_insert(Heard { report: None, silent_for: Duration::ZERO });
            heard.silent_for += Duration::from_secs(7);
            if !self.down.contains(&node) && self.rng.percent(70) {
                self.fill(node);
                let report = Some(self.report(node));
                self.heard.insert(node, Heard { report, silent_for: Duration::ZERO });
            }
        }
        let Self { placement, members, ns, heard, .. } = self;
        let decision = Situation { placement, members, ns, heard }.decide();
        self.orders = decision.proofs;
        let after = self.placement.after(&decision.steps).filter(|_| self.rng.percent(80));
        if let Some(after) = after {
            self.take(after, &decision.steps);
        }
    }

    /// A store that was lost fills from the other primaries, if all of them are up.
    fn fill(&mut self, node: NodeId) {
        let lost: Vec<_> = self.lost.iter().copied().filter(|held| held.2 == node).collect();
        for (home, n, _) in lost {
            let others = self.placement.home(home).primaries(n);
            let others = others.iter().filter(|other| self.members.contains_key(other) && **other != node);
            if others.clone().all(|other| !self.down.contains(other)) && self.rng.percent(30) {
                self.lost.remove(&(home, n, node));
                if self.placement.home(home).replica_set(n).contains(&node) {
                    self.full.insert((home, n, node));
                }
            }
        }
    }

    fn report(&mut self, node: NodeId) -> Report {
        let last = self.heard.get(&node).and_then(|heard| heard.report.as_ref());
        let mut proved: Vec<ProvedHome> = last.map_or_else(Vec::new, |report| report.proved.clone());
        for ProofOrder { home, begun, .. } in self.orders.get(&node).cloned().unwrap_or_default() {
            let full = self.ns.iter().copied().filter(|n| self.full.contains(&(home, *n, node))).collect();
            if self.rng.percent(60) {
                proved.retain(|proof| proof.home != home);
                proved.push(ProvedHome { home, begun, full });
            }
        }
        let lacking = self.placement.homes().filter(|home| home.is_changing()).map(|home| {
            let ns = self.ns.iter().copied().filter(|n| self.lost.contains(&(home.home(), *n, node)));
            LackingHome { home: home.home(), ns: ns.collect() }
        });
        Report { confirmed: self.placement.version(), proved, lacking: lacking.collect(), takes_no_copies: false }
    }

    fn take(&mut self, after: Placement, steps: &[StepOf]) {
        let before = std::mem::replace(&mut self.placement, after);
        for StepOf { home, .. } in steps {
            let (was, is) = (before.home(*home), self.placement.home(*home));
            for n in self.ns.clone() {
                let count =
                    |full: &Held, set: &[NodeId]| set.iter().filter(|node| full.contains(&(*home, n, **node))).count();
                let (old, new) = (was.replica_set(n), is.replica_set(n));
                let had = count(&self.full, &old);
                if is.phase() == Phase::Flipped {
                    let joined = new.iter().filter(|node| !old.contains(node)).map(|node| (*home, n, *node));
                    self.full.extend(joined.filter(|held| !self.lost.contains(held)).collect::<Vec<_>>());
                }
                let alive = |set: &[NodeId]| {
                    set.iter().filter(|node| self.members.contains_key(node) && !self.down.contains(node)).count()
                };
                let least = (n as usize).min(alive(&old)).min(alive(&new));
                let has = count(&self.full, &new);
                assert!(
                    has >= least.min(had),
                    "class ({home}, {n}): {has} of {new:?} are full, and {had} of {old:?} were"
                );
            }
        }
        self.forget_strangers();
    }
}

#[test]
fn any_sequence_of_changes_keeps_full_replicas_and_ends() {
    for seed in 0..400 {
        Cluster::new(seed).run();
    }
}
