//! The world: time, the network, clients, and faults.

use super::broken::Broken;
use super::leader::{Entry, Leader};
use super::member::{Member, Outbox, Shared};
use super::model::{Class, Key, Message, State};
use super::oracle::Oracle;
use super::request::Request;
use super::rng::Rng;
use super::silent_faults::{Fault, Snapshot};
use ombak_ring::placement::Placement;
use ombak_ring::staging::MemberStatus;
use ombak_ring::{Ring, RingSize, RingVersion, claim::Claim};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const SECOND: u64 = 1000;
/// Faults and clients come for so long.
pub const ACTIVE: u64 = 90 * SECOND;
/// After that everything has to end within this time.
const HEALING: u64 = 300 * SECOND;

pub enum Event {
    Deliver {
        from: NodeId,
        to: NodeId,
        message: Message,
        sent: u64,
    },
    Work(NodeId),
    Lead,
    Expire {
        node: NodeId,
        request: u64,
    },
    Client,
    Fault,
    Start(NodeId),
    Append(Entry),
    Heal,
    /// Members exchange and reap.
    LookAfter,
    Snapshots,
    SilentFault,
}

/// What an operator and the machines may do in this history.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    pub force: bool,
    pub down: bool,
    pub lost_stores: bool,
}

pub struct World {
    pub rng: Rng,
    pub now: u64,
    pub shared: Shared,
    pub members: BTreeMap<NodeId, Member>,
    pub leader: Leader,
    pub oracle: Oracle,
    pub allowed: Allowed,
    pub is_healed: bool,
    pub next_node: u64,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    pub requests: u64,
    cuts: BTreeMap<(NodeId, NodeId), u64>,
    /// The fault of this history that nobody is told of.
    pub silent: Option<Fault>,
    pub snapshots: Vec<Snapshot>,
    /// The keys that had such a fault.
    pub faulty: BTreeSet<usize>,
    /// How often primaries exchange, in percent.
    pub pace: u64,
}

impl World {
    pub fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut rng = Rng::new(seed);
        let size = RingSize::new(8).unwrap();
        let nodes: BTreeSet<NodeId> = (1..=rng.within(2, 7)).map(NodeId::new).collect();
        let claim = Claim::of_new_ring(size, &nodes, 3).unwrap();
        let ring = Ring::from_owners(&claim.owners, RingVersion::first(7)).unwrap();
        let members = nodes.iter().map(|node| (*node, MemberStatus::Valid)).collect();
        let log = vec![State { placement: Placement::of_ring(Arc::new(ring)), members }];
        let ns: BTreeSet<u32> =
            [&[3][..], &[1, 3], &[2, 3], &[1, 2, 3]][rng.within(0, 3) as usize].iter().copied().collect();
        let homes: BTreeSet<u32> = (0..3).map(|_| rng.within(0, 7) as u32).collect();
        let keys: Vec<Class> = homes.iter().flat_map(|home| ns.iter().map(|n| Class { home: *home, n: *n })).collect();
        let allowed = Allowed { force: rng.percent(30), down: rng.percent(30), lost_stores: rng.percent(30) };
        let mut world = Self {
            now: 0,
            members: nodes.iter().map(|node| (*node, Member::new(*node, 0, keys.len()))).collect(),
            leader: Leader::new(NodeId::new(1)),
            oracle: Oracle::new(keys.len()),
            shared: Shared { log, events: vec![Vec::new(); keys.len()], keys, ns, broken, has_marks: false, now: 0 },
            allowed,
            is_healed: false,
            next_node: nodes.len() as u64 + 1,
            queue: BTreeMap::new(),
            sequence: 0,
            requests: 0,
            cuts: BTreeMap::new(),
            silent: None,
            snapshots: Vec::new(),
            faulty: BTreeSet::new(),
            pace: 0,
            rng,
        };
        for node in nodes {
            world.at(0, Event::Work(node));
        }
        for event in [Event::Lead, Event::Client, Event::Fault] {
            world.at(0, event);
        }
        world.at(ACTIVE, Event::Heal);
        world
    }

    /// A history in which clients delete, and members exchange and reap.
    pub fn with_marks(seed: u64, broken: Option<Broken>) -> Self {
        let mut world = Self::new(seed, broken);
        world.shared.has_marks = true;
        world.allowed = Allowed { force: false, lost_stores: false, ..world.allowed };
        let faults =
            [Fault::SetBack, Fault::SetBackDirectory, Fault::Rot, Fault::Rot, Fault::NoticedRot, Fault::Vanish];
        world.pace = world.rng.pick(&[3, 10, 30]).unwrap_or(10);
        world.silent = world.rng.pick(&faults).filter(|_| world.rng.percent(90));
        let when = world.rng.within(10 * SECOND, ACTIVE / 2);
        world.at(when, Event::SilentFault);
        world.at(SECOND, Event::LookAfter);
        world.at(SECOND, Event::Snapshots);
        world
    }

    pub fn at(&mut self, delay: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + delay, self.sequence), event);
    }

    /// Runs to the end. An error says which promise was broken.
    pub fn run(mut self) -> Result<(), String> {
        while let Some(((now, _), event)) = self.queue.pop_first() {
            (self.now, self.shared.now) = (now, now);
            let is_lead = matches!(event, Event::Lead);
            self.happen(event);
            self.oracle.broken_promise()?;
            if self.is_healed && is_lead {
                let Some(why) = self.not_settled() else { return self.oracle.check_end(&self.shared, &self.members) };
                if self.now > ACTIVE + HEALING {
                    return Err(format!("the change does not end: {why}"));
                }
            }
        }
        Err("nothing happens any more".into())
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Deliver { from, to, message, sent } => self.deliver(from, to, message, sent),
            Event::Work(node) => self.work(node),
            Event::Lead => self.lead(),
            Event::Expire { node, request } => {
                if self.wait_while_paused(node, || Event::Expire { node, request }) {
                    self.end_put_or_get(node, request, false);
                }
            }
            Event::Client => {
                self.client();
                if self.now < ACTIVE - 10 * SECOND {
                    let pause =
                        if self.shared.has_marks { self.rng.within(20, 1500) } else { self.rng.within(20, 500) };
                    self.at(pause, Event::Client);
                }
            }
            Event::Fault => {
                self.fault();
                if self.now < ACTIVE - 5 * SECOND {
                    let pause = self.rng.within(SECOND / 2, 5 * SECOND);
                    self.at(pause, Event::Fault);
                }
            }
            Event::Start(node) => {
                if let Some(member) = self.members.get_mut(&node).filter(|member| !member.is_running) {
                    member.start(&self.shared);
                }
            }
            Event::LookAfter => self.look_after(),
            Event::Snapshots => {
                self.take_snapshots();
                if self.now < ACTIVE {
                    self.at(3 * SECOND, Event::Snapshots);
                }
            }
            Event::SilentFault => self.silent_fault(),
            Event::Append(entry) => self.append(entry),
            Event::Heal => {
                self.is_healed = true;
                self.cuts.clear();
                for member in self.members.values_mut() {
                    (member.paused_until, member.deaf_until) = (0, 0);
                    if !member.is_running {
                        member.start(&self.shared);
                    }
                }
            }
        }
    }

    pub fn is_cut(&self, a: NodeId, b: NodeId) -> bool {
        self.cuts.get(&(a.min(b), a.max(b))).is_some_and(|until| *until > self.now)
    }

    pub fn is_alive(&self, node: NodeId) -> bool {
        self.members.get(&node).is_some_and(|member| member.is_running && member.paused_until <= self.now)
    }

    /// Messages are late, lost and doubled, and pass each other.
    pub fn send(&mut self, from: NodeId, to: NodeId, message: Message) {
        let sent = self.now;
        if self.say_hello(from, to) {
            return;
        }
        if from == to {
            return self.at(0, Event::Deliver { from, to, message, sent });
        }
        if self.is_healed {
            let delay = self.rng.within(1, 20);
            return self.at(delay, Event::Deliver { from, to, message, sent });
        }
        if self.is_cut(from, to) || self.rng.percent(4) {
            return;
        }
        if self.rng.percent(3) {
            let late = self.rng.within(1, 20 * SECOND);
            self.at(late, Event::Deliver { from, to, message: message.clone(), sent });
        }
        let delay = if self.rng.percent(5) { self.rng.within(1, 8 * SECOND) } else { self.rng.within(1, 60) };
        self.at(delay, Event::Deliver { from, to, message, sent });
    }

    pub fn send_all(&mut self, from: NodeId, out: Outbox) {
        let losses = self.known_losses(from);
        for (to, message) in out {
            if self.is_outdated(from, losses) {
                return;
            }
            self.send(from, to, message);
        }
    }

    /// How often the stores of a member were found to have lost something.
    pub fn known_losses(&self, node: NodeId) -> u64 {
        self.members.get(&node).map_or(0, |member| member.marking.losses)
    }

    /// Whether a store of the member was found to be set back since a message was made. The message
    /// may have what is in doubt now, so it is not sent, to nobody.
    pub fn is_outdated(&self, from: NodeId, losses: u64) -> bool {
        self.known_losses(from) != losses && !self.shared.is_broken(Broken::SendsWhatWasReadBefore)
    }

    /// Whether the event can happen. Otherwise it happens when the pause is over, or never.
    fn wait_while_paused(&mut self, node: NodeId, event: impl FnOnce() -> Event) -> bool {
        let Some(member) = self.members.get(&node).filter(|member| member.is_running) else { return false };
        if member.paused_until > self.now {
            let pause = member.paused_until - self.now + self.rng.within(0, 100);
            self.at(pause, event());
            return false;
        }
        true
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, message: Message, sent: u64) {
        if !self.wait_while_paused(to, || Event::Deliver { from, to, message: message.clone(), sent }) {
            return;
        }
        let started_at = self.members.get(&to).map_or(0, |member| member.started_at);
        if self.shared.has_marks && sent < started_at {
            return;
        }
        match message {
            Message::Written { request, attempt, newer } => self.written(to, from, request, attempt, newer),
            Message::Found { request, attempt, copy, counts, newer } => {
                self.learn(to, newer);
                let Some(asked) = self.request(to, request).filter(|asked| asked.attempt == attempt) else { return };
                if newer.is_some() {
                    return self.attempt(to, request);
                }
                if counts {
                    asked.counted.insert(from, copy);
                }
                self.end_if_met(to, request);
            }
            Message::Metadata { .. } if self.members.get(&to).is_some_and(|it| it.deaf_until > self.now) => {}
            Message::Answer { term, answer } => self.leader.hear(to, from, term, *answer, self.now),
            other => {
                let mut out = Outbox::new();
                self.look_for_returned(from, to, &other);
                let Some(member) = self.members.get_mut(&to) else { return };
                member.receive(&self.shared, from, other, &mut out);
                self.look_at_drops(to);
                self.send_all(to, out);
            }
        }
    }

    /// Notes that another member takes a copy which a fault brought back, before it was merged with
    /// anything.
    fn look_for_returned(&mut self, from: NodeId, to: NodeId, message: &Message) {
        let (Some(member), Some(receiver)) = (self.members.get(&from), self.members.get(&to)) else { return };
        let (sent, read_at) = match message {
            Message::Push { key, copy, read_at, .. } => (&[(*key, *copy)][..], *read_at),
            Message::Prove { copies, read_at, .. } => (&copies[..], *read_at),
            _ => return,
        };
        let is_taken = |key: Key| !receiver.is_fenced(&self.shared, key, read_at);
        let spread = sent.iter().filter(|sent| member.marking.returned.contains(sent) && is_taken(sent.0));
        self.oracle.spread.extend(spread.map(|(key, _)| *key));
    }

    /// A message comes over a connection, which began with a handshake. It ends with the processes.
    /// Returns whether a store was found to be set back: nothing of before is sent then.
    fn say_hello(&mut self, a: NodeId, b: NodeId) -> bool {
        let are_running = [a, b].iter().all(|node| self.members.get(node).is_some_and(|member| member.is_running));
        if !self.shared.has_marks || a == b || !are_running {
            return false;
        }
        let mut has_found = false;
        for (one, other) in [(a, b), (b, a)] {
            for key in 0..self.shared.keys.len() {
                let told =
                    self.members.get(&one).and_then(|member| member.marking.stores[key].told.get(&other).copied());
                if let Some(member) = self.members.get_mut(&other) {
                    has_found |= member.hear_told(&self.shared, key, told);
                }
            }
        }
        has_found
    }

    fn look_at_drops(&mut self, node: NodeId) {
        let Some(member) = self.members.get_mut(&node) else { return };
        for key in std::mem::take(&mut member.dropped) {
            self.oracle.check_key(&self.shared, &self.members, key, "a copy was dropped");
        }
        self.look_at_removals(node);
    }

    fn look_at_removals(&mut self, node: NodeId) {
        let Some(member) = self.members.get_mut(&node) else { return };
        for (key, copy) in std::mem::take(&mut member.marking.removed) {
            let replaced = self.shared.replaced(key, copy);
            self.oracle.remove(key, copy | replaced);
        }
        for (key, copy) in std::mem::take(&mut member.marking.dropped) {
            self.oracle.note_drop(&self.shared, key, copy);
        }
    }

    fn work(&mut self, node: NodeId) {
        let Some(member) = self.members.get_mut(&node) else { return };
        let mut out = Outbox::new();
        if member.is_running && member.paused_until <= self.now {
            member.work(&self.shared, &mut out);
        }
        self.look_at_removals(node);
        self.send_all(node, out);
        let pause = self.rng.within(800, 1500);
        self.at(pause, Event::Work(node));
    }

    pub fn learn(&mut self, node: NodeId, newer: Option<usize>) {
        if let (Some(newer), Some(member)) = (newer, self.members.get_mut(&node)) {
            member.adopt(&self.shared, newer);
        }
    }

    pub fn request(&mut self, node: NodeId, request: u64) -> Option<&mut Request> {
        self.members.get_mut(&node)?.requests.get_mut(&request)
    }

    pub fn cut(&mut self, a: NodeId, b: NodeId, time: u64) {
        self.cuts.insert((a.min(b), a.max(b)), self.now + time);
    }

    /// What is left to do.
    fn not_settled(&self) -> Option<String> {
        let now = self.shared.now();
        if !now.placement.is_settled() {
            return Some(format!("{:?}", self.leader.obstacles));
        }
        if let Some((node, status)) = now.members.iter().find(|(_, status)| **status != MemberStatus::Valid) {
            return Some(format!("{node} is {status}"));
        }
        for member in self.members.values() {
            let foreign = member.store.keys().find(|key| !now.is_primary(member.id, self.shared.keys[**key]));
            let left = [
                (member.known + 1 != self.shared.log.len(), "does not know the end"),
                (!member.owed.is_empty(), "owes"),
                (!member.lost.is_empty() || !member.joining.is_empty(), "fills"),
                (!member.requests.is_empty(), "has requests"),
                (foreign.is_some(), "has foreign copies"),
            ];
            if let Some((_, why)) = left.into_iter().find(|(is_left, _)| *is_left) {
                return Some(format!("{} {why}", member.id));
            }
        }
        self.shared.has_marks.then(|| self.oracle.difference(&self.shared, &self.members)).flatten()
    }
}
