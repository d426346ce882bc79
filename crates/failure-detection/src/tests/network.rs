//! A simulated network of cores that detect failures.

use crate::{Change, DetectionConfig, DetectionCore, PeerState, Process, SoftState};
use bytes::Bytes;
use ombak_types::NodeId;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) const MS: fn(u64) -> Duration = Duration::from_millis;
pub(super) const SEC: fn(u64) -> Duration = Duration::from_secs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Running,
    Paused,
    Dead,
}

struct Node {
    core: DetectionCore,
    boot_number: u64,
    /// What the node's clock shows at the beginning.
    clock_offset: Duration,
    run: Run,
    /// What arrived while the node was paused.
    inbox: Vec<(NodeId, Bytes)>,
}

/// The nodes, and what is between them.
pub(super) struct Net {
    pub(super) now: Duration,
    pub(super) loss_per_mille: u64,
    pub(super) delay_max_ms: u64,
    members: BTreeSet<NodeId>,
    nodes: BTreeMap<NodeId, Node>,
    under_way: BTreeMap<(Duration, u64), (NodeId, NodeId, Bytes)>,
    sent: u64,
    /// Links that lose everything, each in one direction.
    cut: BTreeSet<(NodeId, NodeId)>,
    rng: Xoshiro256PlusPlus,
    /// All changes: when, by whom, what.
    pub(super) changes: Vec<(Duration, NodeId, Change)>,
}

pub(super) fn id(number: u64) -> NodeId {
    NodeId::new(number)
}

impl Net {
    /// `count` nodes, numbered from 1, that have just been started.
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let members: BTreeSet<NodeId> = (1..=count).map(id).collect();
        let mut net = Self {
            now: Duration::ZERO,
            loss_per_mille: 0,
            delay_max_ms: 5,
            members: members.clone(),
            nodes: BTreeMap::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            cut: BTreeSet::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            changes: Vec::new(),
        };
        members.into_iter().for_each(|node| net.start(node, 1));
        net
    }

    /// A network in which all nodes know each other.
    pub(super) fn formed(count: u64, seed: u64) -> Self {
        let mut net = Self::new(count, seed);
        net.run_for(SEC(2));
        net.expect_all_up();
        net.changes.clear();
        net
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.rng.next_u64() % below
    }

    pub(super) fn members(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.members.clone().into_iter()
    }

    pub(super) fn set_members(&mut self, of: NodeId, members: &BTreeSet<NodeId>) {
        self.step(of, |core, now| core.set_members(now, members.clone()));
    }

    pub(super) fn start(&mut self, node: NodeId, boot_number: u64) {
        let me = Process::new(node, boot_number, self.rng.next_u64());
        let core = DetectionCore::new(me, DetectionConfig::default(), self.rng.next_u64());
        // The clocks of different nodes have nothing to do with each other.
        let clock_offset = MS(self.random(1 << 30));
        self.nodes.insert(node, Node { core, boot_number, clock_offset, run: Run::Running, inbox: Vec::new() });
        self.set_members(node, &self.members.clone());
    }

    pub(super) fn restart(&mut self, node: NodeId) {
        self.start(node, self.nodes[&node].boot_number + 1);
    }

    pub(super) fn kill(&mut self, node: NodeId) {
        self.node(node).run = Run::Dead;
    }

    pub(super) fn is_dead(&self, node: NodeId) -> bool {
        self.nodes[&node].run == Run::Dead
    }

    pub(super) fn pause(&mut self, node: NodeId) {
        if self.nodes[&node].run == Run::Running {
            self.node(node).run = Run::Paused;
        }
    }

    /// The node goes on. It either looks at its timers first or at what has arrived.
    pub(super) fn resume(&mut self, node: NodeId) {
        if self.nodes[&node].run != Run::Paused {
            return;
        }
        self.node(node).run = Run::Running;
        if self.random(2) == 0 {
            self.step(node, DetectionCore::tick);
        }
        for (from, packet) in std::mem::take(&mut self.node(node).inbox) {
            self.step(node, |core, now| core.receive(now, from, &packet));
        }
    }

    pub(super) fn cut(&mut self, from: NodeId, to: NodeId) {
        self.cut.insert((from, to));
    }

    pub(super) fn heal(&mut self) {
        self.cut.clear();
        self.loss_per_mille = 0;
        for node in self.members() {
            self.resume(node);
        }
    }

    pub(super) fn publish(&mut self, node: NodeId, state: SoftState) {
        self.step(node, |core, now| core.publish(now, state));
    }

    pub(super) fn leave(&mut self, node: NodeId) {
        self.step(node, DetectionCore::leave);
        self.kill(node);
    }

    /// Lets a packet arrive that no core sent.
    pub(super) fn inject(&mut self, from: NodeId, to: NodeId, packet: &[u8]) {
        self.step(to, |core, now| core.receive(now, from, packet));
    }

    pub(super) fn core(&self, node: NodeId) -> &DetectionCore {
        &self.nodes[&node].core
    }

    pub(super) fn state(&self, of: NodeId, seen_by: NodeId) -> PeerState {
        self.core(seen_by).view().peers[&of].state
    }

    /// Whether all running nodes see each other up.
    pub(super) fn all_up(&self) -> bool {
        let running: Vec<NodeId> = self.members().filter(|node| self.nodes[node].run == Run::Running).collect();
        let sees = |a: &NodeId| running.iter().all(|b| a == b || self.core(*a).view().is_up(*b));
        running.iter().all(sees)
    }

    pub(super) fn expect_all_up(&self) {
        for a in self.members() {
            for b in self.members().filter(|b| *b != a) {
                assert!(self.core(a).view().is_up(b), "{b} is down for {a} at {:?}", self.now);
            }
        }
    }

    /// Runs until `done`. Returns how long that took.
    pub(super) fn run_until(&mut self, limit: Duration, done: impl Fn(&Self) -> bool) -> Duration {
        let began = self.now;
        while !done(self) {
            assert!(self.now - began < limit, "not after {:?}", self.now - began);
            self.run_for(MS(10));
        }
        self.now - began
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let wake = |node: &Node| (node.run == Run::Running).then(|| node.core.next_due() - node.clock_offset);
            let woken = self.nodes.iter().filter_map(|(id, node)| Some((wake(node)?.max(self.now), *id))).min();
            let arrives = self.under_way.first_key_value().map(|((at, _), _)| *at);
            match (woken, arrives) {
                (_, Some(at)) if at <= end && woken.is_none_or(|(wake, _)| at <= wake) => self.deliver(at),
                (Some((wake, node)), _) if wake <= end => {
                    self.now = wake;
                    self.step(node, DetectionCore::tick);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    fn node(&mut self, node: NodeId) -> &mut Node {
        self.nodes.get_mut(&node).unwrap()
    }

    fn deliver(&mut self, at: Duration) {
        let (_, (from, to, packet)) = self.under_way.pop_first().unwrap();
        self.now = self.now.max(at);
        let Some(node) = self.nodes.get_mut(&to) else { return };
        match node.run {
            Run::Running => self.step(to, |core, now| core.receive(now, from, &packet)),
            Run::Paused => node.inbox.push((from, packet)),
            Run::Dead => {}
        }
    }

    fn step(&mut self, node: NodeId, step: impl FnOnce(&mut DetectionCore, Duration)) {
        let now = self.now;
        let (effects, offset) = {
            let node = self.node(node);
            step(&mut node.core, now + node.clock_offset);
            (node.core.take_effects(), node.clock_offset)
        };
        assert!(self.core(node).next_due() + MS(1) > offset, "the clock of the node has begun at its offset");
        self.changes.extend(effects.changes.into_iter().map(|change| (now, node, change)));
        for (to, packet) in effects.packets {
            assert!(to != node && self.members.contains(&to));
            if self.cut.contains(&(node, to)) || self.random(1000) < self.loss_per_mille {
                continue;
            }
            let copies = if self.random(50) == 0 { 2 } else { 1 };
            for _ in 0..copies {
                let at = now + Duration::from_micros(50 + self.random(1000 * self.delay_max_ms));
                self.under_way.insert((at, self.sent), (node, to, packet.clone()));
                self.sent += 1;
            }
        }
    }

    /// The changes of a kind that nodes noticed about others.
    pub(super) fn downs(&self) -> Vec<(Duration, NodeId, NodeId)> {
        let down = |(at, by, change): &(Duration, NodeId, Change)| match change {
            Change::Down(node) => Some((*at, *by, *node)),
            _ => None,
        };
        self.changes.iter().filter_map(down).collect()
    }
}
