//! Failure detection and soft state as one state machine.

use crate::config::DetectionConfig;
use crate::detector::Detector;
use crate::local_clock::LocalClock;
use crate::packet::{Body, Packet};
use crate::process::Process;
use crate::reader::Malformed;
use crate::soft_state::SoftState;
use crate::state_exchange::StateExchange;
use crate::view::{PeerState, PeerView, PeersView};
use bytes::Bytes;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Something that a node noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A member came up, or was restarted.
    Up(Process),
    /// A member went down.
    Down(NodeId),
    /// A member stopped on purpose.
    Left(NodeId),
    /// A member told something new about itself.
    Told(NodeId),
    /// A peer knows this node under a higher boot number: [`PeersView::later_boot_number`].
    LaterBoot(u64),
}

/// What the core asks its driver to do.
#[derive(Debug, Default)]
pub struct Effects {
    /// Packets to send. They may be lost.
    pub packets: Vec<(NodeId, Bytes)>,
    /// What was noticed, in order.
    pub changes: Vec<Change>,
    /// Whether [`DetectionCore::view`] differs from what it was.
    pub view_changed: bool,
}

/// The state machine of one node. Times are readings of the node's clock since any fixed moment.
pub struct DetectionCore {
    config: DetectionConfig,
    clock: LocalClock,
    detector: Detector,
    exchange: StateExchange,
    /// What the driver was told last.
    view: PeersView,
    left: BTreeMap<NodeId, Process>,
    next_announcement: Duration,
    /// The member that was called last. The next round of calls begins after it.
    last_called: Option<NodeId>,
    effects: Effects,
}

impl DetectionCore {
    /// A node that knows nobody. All choices follow from `seed`.
    pub fn new(me: Process, config: DetectionConfig, seed: u64) -> Self {
        Self {
            clock: LocalClock::new(config.late_after),
            detector: Detector::new(me, &config, seed),
            exchange: StateExchange::new(config.state_interval, config.state_retry),
            view: PeersView::default(),
            left: BTreeMap::new(),
            next_announcement: Duration::ZERO,
            last_called: None,
            effects: Effects::default(),
            config,
        }
    }

    /// Replaces the list of members. New members are called at once.
    pub fn set_members(&mut self, now: Duration, members: BTreeSet<NodeId>) {
        let local = self.local(now);
        self.detector.set_members(local, members);
        let detector = &self.detector;
        self.exchange.forget_all_but(|node| detector.is_member(node));
        self.left.retain(|node, _| detector.is_member(*node));
        self.announce(local);
        self.finish(local);
    }

    /// Sets what this node tells the others.
    pub fn publish(&mut self, now: Duration, state: SoftState) {
        let local = self.local(now);
        self.exchange.publish(state);
        self.finish(local);
    }

    /// Takes a packet of a node that the transport has identified.
    pub fn receive(&mut self, now: Duration, from: NodeId, bytes: &[u8]) {
        let local = self.local(now);
        if !self.detector.is_member(from) {
            return;
        }
        let received = Packet::decode(bytes).and_then(|packet| match packet.from.node == from {
            true => self.take(local, packet),
            false => Err(Malformed),
        });
        if received.is_err() {
            tracing::debug!(%from, "a packet of a member is malformed");
        }
        self.finish(local);
    }

    /// Does what is due.
    pub fn tick(&mut self, now: Duration) {
        let local = self.local(now);
        self.detector.tick(local);
        if local >= self.next_announcement {
            self.announce(local);
        }
        self.finish(local);
    }

    /// When [`Self::tick`] has something to do, as a reading of the node's clock.
    pub fn next_due(&self) -> Duration {
        self.clock.reading_at(self.due())
    }

    /// Tells all members that this node stops.
    pub fn leave(&mut self, now: Duration) {
        self.local(now);
        for node in self.detector.members().clone() {
            self.send(node, Body::Leaving);
        }
    }

    /// Takes what is to be done.
    pub fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// What this node knows about the others.
    pub const fn view(&self) -> &PeersView {
        &self.view
    }

    /// Whether the failure detector has heard of a node, by whomever.
    #[cfg(test)]
    pub(crate) fn has_heard_of(&self, node: NodeId) -> bool {
        self.detector.known_process(node).is_some()
    }

    fn due(&self) -> Duration {
        self.detector.next_due().map_or(self.next_announcement, |due| due.min(self.next_announcement))
    }

    fn local(&mut self, now: Duration) -> Duration {
        let due = self.due();
        self.clock.read(now, Some(due))
    }

    fn take(&mut self, local: Duration, packet: Packet<'_>) -> Result<(), Malformed> {
        let from = packet.from;
        let me = self.detector.me();
        if packet.known_boot_number > me.boot_number && Some(packet.known_boot_number) > self.view.later_boot_number {
            self.view.later_boot_number = Some(packet.known_boot_number);
            self.effects.view_changed = true;
            self.effects.changes.push(Change::LaterBoot(packet.known_boot_number));
        }
        // A packet of a process that has stopped, or of one before the present, is late.
        if self.left.get(&from.node).is_some_and(|left| left.is_same_start(&from)) {
            return Ok(());
        }
        if packet.body == Body::Leaving {
            self.detector.declare_down(local, from);
            self.left.insert(from.node, from);
            return Ok(());
        }
        self.detector.heard(local, from);
        match packet.body {
            Body::Detector(message) => self.detector.receive(local, from, message)?,
            Body::State { number, state } => {
                let (is_taken, is_news) = self.exchange.receive(from, number, state);
                if is_taken {
                    self.send(from.node, Body::StateReceived { number });
                }
                if is_news {
                    self.effects.changes.push(Change::Told(from.node));
                }
            }
            Body::StateReceived { number } => self.exchange.acknowledged(from, number),
            Body::Leaving => {}
        }
        Ok(())
    }

    /// Calls members that are down, in turn.
    fn announce(&mut self, local: Duration) {
        self.next_announcement = local + self.config.announce_interval;
        let up = self.detector.opinions();
        let down: Vec<NodeId> = self.detector.members().iter().copied().filter(|node| !up.contains_key(node)).collect();
        let first = self.last_called.map_or(0, |last| down.partition_point(|node| *node <= last));
        for node in down.iter().cycle().skip(first).take(down.len().min(self.config.announce_max)) {
            self.detector.announce_to(local, *node);
            self.last_called = Some(*node);
        }
    }

    /// Collects what the detector wants to send, sends soft state, and compares the view.
    fn finish(&mut self, local: Duration) {
        let up = self.detector.opinions();
        for (to, number, state) in self.exchange.take_due(local, up.values().map(|opinion| opinion.process)) {
            self.send(to, Body::State { number, state: &state });
        }
        while let Some((to, message)) = self.detector.take_message() {
            self.send(to, Body::Detector(&message));
        }
        self.compare(&up);
    }

    fn compare(&mut self, up: &BTreeMap<NodeId, crate::detector::Opinion>) {
        let mut peers = BTreeMap::new();
        for node in self.detector.members() {
            let before = self.view.peers.get(node);
            let opinion = up.get(node);
            if opinion
                .is_some_and(|opinion| self.left.get(node).is_some_and(|left| !left.is_same_start(&opinion.process)))
            {
                self.left.remove(node);
            }
            let was_up = before.is_some_and(|peer| peer.state.is_up());
            let mut times_up = before.map_or(0, |peer| peer.times_up);
            let state = match opinion {
                Some(opinion) if opinion.is_suspect => PeerState::Suspect,
                Some(_) => PeerState::Up,
                None if self.left.contains_key(node) => PeerState::Left,
                None => PeerState::Down,
            };
            match opinion {
                Some(opinion) => {
                    let is_restart = before
                        .and_then(|peer| peer.process)
                        .is_some_and(|before| !before.is_same_start(&opinion.process));
                    if !was_up || is_restart {
                        times_up += 1;
                        self.effects.changes.push(Change::Up(opinion.process));
                    }
                }
                None if was_up && state == PeerState::Left => self.effects.changes.push(Change::Left(*node)),
                None if was_up => self.effects.changes.push(Change::Down(*node)),
                None => {}
            }
            let process = opinion.map(|opinion| opinion.process).or_else(|| self.detector.known_process(*node));
            let soft_state = self.exchange.state(*node).cloned();
            peers.insert(*node, PeerView { state, process, times_up, soft_state });
        }
        self.effects.view_changed |= self.view.peers != peers;
        self.view.peers = peers;
    }

    fn send(&mut self, to: NodeId, body: Body<'_>) {
        let known_boot_number = self.detector.known_process(to).map_or(0, |process| process.boot_number);
        let packet = Packet { from: self.detector.me(), known_boot_number, body };
        self.effects.packets.push((to, packet.encode()));
    }
}
