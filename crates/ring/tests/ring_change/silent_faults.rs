//! Faults that nobody is told of, and when members exchange and reap. A history has at most one
//! such fault.

use super::marks::{Store, covers, lacks};
use super::member::Outbox;
use super::model::{Copied, Key};
use super::world::{Event, SECOND, World};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A killed member comes back with its stores, and what it keeps about stores, as they were.
    SetBack,
    /// The same, with its placement and the state of its classes.
    SetBackDirectory,
    /// The newest records of a removal cannot be read, so an older version shows.
    Rot,
    /// The same, and the store notices it.
    NoticedRot,
    /// The only record of a key is gone.
    Vanish,
}

/// What goes back.
#[derive(Clone)]
pub struct Snapshot {
    node: NodeId,
    taken_at: u64,
    known: usize,
    copies: BTreeMap<Key, Copied>,
    stores: Vec<Store>,
    joining: BTreeSet<(u32, u32)>,
    lost: BTreeSet<(u32, u32)>,
    owed: BTreeSet<(Key, NodeId)>,
}

impl World {
    /// Members exchange and reap. As long as not all is well, that goes on.
    pub fn look_after(&mut self) {
        let keys = self.shared.keys.len();
        let pairs: Vec<(Key, NodeId, NodeId)> = (0..keys)
            .flat_map(|key| {
                let primaries = self.shared.now().primaries(self.shared.keys[key]);
                let pairs =
                    primaries.clone().into_iter().flat_map(move |a| primaries.clone().into_iter().map(move |b| (a, b)));
                pairs.filter(|(a, b)| a != b).map(move |(a, b)| (key, a, b))
            })
            .collect();
        for (key, a, b) in pairs {
            if (self.is_healed || self.rng.percent(self.pace)) && self.is_alive(a) {
                self.act(a, |member, shared, out| member.begin_exchange(shared, key, b, out));
            }
        }
        for key in 0..keys {
            let primaries: Vec<NodeId> = self.shared.now().primaries(self.shared.keys[key]).into_iter().collect();
            let driver = self.rng.pick(&primaries).filter(|node| self.is_alive(*node));
            if let Some(driver) = driver.filter(|_| self.rng.percent(60)) {
                self.act(driver, |member, shared, out| member.begin_round(shared, key, out));
            }
        }
        let pause = if self.is_healed { SECOND } else { self.rng.within(200, 1500) };
        self.at(pause, Event::LookAfter);
    }

    fn act(&mut self, node: NodeId, run: impl FnOnce(&mut super::member::Member, &super::member::Shared, &mut Outbox)) {
        let mut out = Outbox::new();
        if let Some(member) = self.members.get_mut(&node) {
            run(member, &self.shared, &mut out);
        }
        self.send_all(node, out);
    }

    pub fn take_snapshots(&mut self) {
        let running = self.members.values().filter(|member| member.is_running);
        let snapshots = running.map(|member| Snapshot {
            node: member.id,
            taken_at: self.now,
            known: member.known,
            copies: member.store.clone(),
            stores: member.marking.stores.clone(),
            joining: member.joining.clone(),
            lost: member.lost.clone(),
            owed: member.owed.clone(),
        });
        let snapshots: Vec<Snapshot> = snapshots.collect();
        self.snapshots.extend(snapshots);
    }

    pub fn silent_fault(&mut self) {
        let Some(fault) = self.silent else { return };
        let done = match fault {
            Fault::SetBack => self.set_back(false),
            Fault::SetBackDirectory => self.set_back(true),
            Fault::Rot => self.rot(false),
            Fault::NoticedRot => self.rot(true),
            Fault::Vanish => self.vanish(),
        };
        // Each class has at most one fault, and a member that is set back has one in each class.
        if !(done && matches!(fault, Fault::SetBack | Fault::SetBackDirectory))
            && self.now < super::world::ACTIVE - 3 * SECOND
        {
            self.at(SECOND / 2, Event::SilentFault);
        }
    }

    /// Whether values of the copy were removed.
    fn has_removed_values(&self, key: Key, copy: Copied) -> bool {
        self.shared.values(key, copy) & self.oracle.removed(key) != 0
    }

    fn set_back(&mut self, with_placement: bool) -> bool {
        // What is set back to before its last start is found by its milestones.
        let is_of_this_run = |snapshot: &Snapshot| {
            let member = self.members.get(&snapshot.node);
            member.is_some_and(|member| member.is_running && member.started_at <= snapshot.taken_at)
        };
        let usable: Vec<usize> = (0..self.snapshots.len()).filter(|at| is_of_this_run(&self.snapshots[*at])).collect();
        let returns = |at: &usize| {
            let copies = &self.snapshots[*at].copies;
            copies.iter().any(|(key, copy)| self.has_removed_values(*key, *copy))
        };
        let best: Vec<usize> = usable.iter().copied().filter(returns).collect();
        let from = if best.is_empty() || self.rng.percent(20) { usable } else { best };
        let Some(chosen) = self.rng.pick(&from) else { return false };
        let snapshot = self.snapshots[chosen].clone();
        let node = snapshot.node;
        self.oracle.begin_fault();
        self.oracle.excuse(&self.shared, &self.members, node);
        self.kill(node, 100);
        let Some(member) = self.members.get_mut(&node) else { return false };
        if with_placement {
            (member.known, member.joining, member.lost) = (snapshot.known, snapshot.joining, snapshot.lost);
        }
        member.marking.returned = snapshot.copies.iter().map(|(key, copy)| (*key, *copy)).collect();
        (member.store, member.owed) = (snapshot.copies, snapshot.owed);
        let stores = snapshot.stores.into_iter().zip(&mut member.marking.stores);
        for (key, (then, store)) in stores.enumerate() {
            *store = then;
            member.marking.journals[key].retain(|(seq, _)| *seq <= store.seq);
        }
        self.oracle.excuse(&self.shared, &self.members, node);
        true
    }

    fn rot(&mut self, is_noticed: bool) -> bool {
        let mut found = Vec::new();
        for member in self.members.values().filter(|member| member.is_running) {
            for (key, journal) in member.marking.journals.iter().enumerate() {
                // What follows the version is its tombstone and its removal.
                let dead = (0..journal.len()).rev().find(|at| self.has_removed_values(key, journal[*at].1));
                let Some(at) = dead.filter(|at| at + 1 < journal.len()) else { continue };
                let (older, later) = (journal[at].1, &journal[at + 1..]);
                let is_removal = |copy| copy == 0 || covers(copy, older) && self.shared.is_tombstone(key, copy);
                if later.iter().all(|(_, copy)| is_removal(*copy)) {
                    found.push((member.id, key, at));
                }
            }
        }
        let changes = |(_, key, _): &(NodeId, Key, usize)| self.shared.now().home(self.shared.keys[*key]).is_changing();
        let changing: Vec<_> = found.iter().copied().filter(changes).collect();
        if changing.is_empty() && self.rng.percent(70) {
            return false;
        }
        let Some((node, key, at)) = self.rng.pick(if changing.is_empty() { &found } else { &changing }) else {
            return false;
        };
        let class = self.shared.keys[key];
        if class.n == 1 || self.faulty.contains(&key) || !is_noticed && !self.is_known_removal(node, key, at) {
            return false;
        }
        self.oracle.begin_fault();
        self.oracle.excuse(&self.shared, &self.members, node);
        self.kill(node, 100);
        let Some(member) = self.members.get_mut(&node) else { return false };
        self.faulty.insert(key);
        let (seq, copy) = member.marking.journals[key][at];
        member.marking.journals[key].truncate(at + 1);
        member.store.insert(key, copy);
        member.marking.stores[key].at = seq;
        if is_noticed {
            let end = member.marking.stores[key].seq;
            member.lose_middle(&self.shared, key, end);
        } else {
            member.marking.returned.push((key, copy));
        }
        true
    }

    /// Whether the store can know that the version was removed. What was written since the last
    /// marks looks like a write that the others missed.
    fn is_known_removal(&self, node: NodeId, key: Key, at: usize) -> bool {
        let Some(member) = self.members.get(&node) else { return false };
        let (store, class) = (&member.marking.stores[key], self.shared.keys[key]);
        let seq = member.marking.journals[key][at].0;
        let set: Vec<NodeId> = self.shared.now().home(class).replica_set(class.n).to_vec();
        let is_primary = self.shared.now().is_primary(node, class);
        let are_marked = set.iter().filter(|peer| **peer != node).all(|peer| {
            let id =
                self.members.get(peer).map(|other| (other.marking.stores[key].id, other.marking.stores[key].token));
            store.marks.get(peer).is_some_and(|mark| seq <= mark.a && Some((mark.id, mark.token)) == id)
        });
        are_marked || !is_primary && seq <= store.empty_at
    }

    fn vanish(&mut self) -> bool {
        let now = self.shared.now();
        let mut found = Vec::new();
        for (key, class) in self.shared.keys.iter().enumerate() {
            let primaries = now.primaries(*class);
            let (set, other) = (now.home(*class).replica_set(class.n), now.home(*class).other_set(class.n));
            let is_small = set.len() < 3 || !other.is_empty() && other.len() < 3;
            let full = |node: &NodeId| {
                self.members.get(node).is_some_and(|member| member.is_running && member.is_full(class.home, class.n))
            };
            if class.n < 3 || is_small || self.faulty.contains(&key) || !primaries.iter().all(full) {
                continue;
            }
            for node in &primaries {
                let copy = self.members[node].copy(key);
                let has = |other: &NodeId| !lacks(self.members[other].copy(key), copy);
                let others = primaries.iter().filter(|other| *other != node);
                if copy != 0
                    && (others.clone().all(has) || others.clone().any(has) && self.shared.values(key, copy) != 0)
                {
                    found.push((*node, key));
                }
            }
        }
        let Some((node, key)) = self.rng.pick(&found) else { return false };
        self.faulty.insert(key);
        self.oracle.begin_fault();
        self.oracle.excuse(&self.shared, &self.members, node);
        if let Some(member) = self.members.get_mut(&node) {
            member.store.remove(&key);
            member.marking.stores[key].at = 0;
            member.marking.journals[key].clear();
        }
        true
    }
}
