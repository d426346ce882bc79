//! What a member does by itself: it hands foreign copies back, gives what it owes, fills its
//! classes and proves homes.

use super::broken::Broken;
use super::member::{Member, Outbox, Shared};
use super::model::{Copied, Key, Message, Purpose};
use ombak_ring::placement::{Phase, ProofOrder};
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// A foreign copy on its way to the primaries.
pub struct HandBack {
    copy: Copied,
    changed: u64,
    pub proved: BTreeSet<NodeId>,
}

/// A class that fills from the other primaries.
pub struct Fill {
    changed: u64,
    compared: BTreeSet<NodeId>,
}

/// A home that a member of its old set proves.
pub struct Proof {
    pub begun: u64,
    pub full: BTreeSet<u32>,
    to: BTreeSet<NodeId>,
    pub waiting: BTreeSet<NodeId>,
}

impl Member {
    pub fn work(&mut self, shared: &Shared, out: &mut Outbox) {
        self.hand_back(shared, out);
        self.give_owed(shared, out);
        self.fill(shared, out);
        self.prove(shared, out);
    }

    fn hand_back(&mut self, shared: &Shared, out: &mut Outbox) {
        let view = self.view(shared);
        for (key, copy) in self.store.clone() {
            let class = shared.keys[key];
            if view.is_primary(self.id, class) || view.home(class).is_changing() {
                self.hand_backs.remove(&key);
                continue;
            }
            let changed = view.changed(class);
            let under_way = self.hand_backs.get(&key).filter(|it| (it.copy, it.changed) == (copy, changed));
            if under_way.is_none() {
                self.hand_backs.insert(key, HandBack { copy, changed, proved: BTreeSet::new() });
            }
            let proved = &self.hand_backs[&key].proved;
            for peer in view.primaries(class).difference(proved) {
                let push = Message::Push { key, copy, stamp: view.number(), purpose: Purpose::HandBack };
                out.push((*peer, push));
            }
        }
    }

    pub fn note_hand_back(&mut self, shared: &Shared, from: NodeId, key: Key, copy: Copied, stamp: u64) {
        let (view, class) = (self.view(shared), shared.keys[key]);
        let held = self.copy(key);
        let Some(under_way) = self.hand_backs.get_mut(&key) else { return };
        let is_of_now = under_way.changed == view.changed(class) && stamp >= under_way.changed;
        if !is_of_now || under_way.copy != held || copy & held != held {
            return;
        }
        under_way.proved.insert(from);
        let is_settled = !view.home(class).is_changing() && !view.is_primary(self.id, class);
        let is_proved = under_way.proved.is_superset(&view.primaries(class)) || shared.is_broken(Broken::DropAfterOne);
        if is_settled && is_proved {
            self.store.remove(&key);
            self.hand_backs.remove(&key);
            self.dropped.push(key);
        }
    }

    fn give_owed(&mut self, shared: &Shared, out: &mut Outbox) {
        let view = self.view(shared);
        let store = &self.store;
        let id = self.id;
        self.owed.retain(|(key, peer)| {
            let class = shared.keys[*key];
            let is_between_primaries = view.is_primary(id, class) && view.is_primary(*peer, class);
            store.contains_key(key) && (is_between_primaries || view.home(class).is_changing())
        });
        for (key, peer) in &self.owed {
            let push = Message::Push { key: *key, copy: self.copy(*key), stamp: view.number(), purpose: Purpose::Owed };
            out.push((*peer, push));
        }
    }

    fn fill(&mut self, shared: &Shared, out: &mut Outbox) {
        let view = self.view(shared);
        for (home, n) in self.lost.clone() {
            let placed = view.placement.home(home);
            let changed = placed.version().number;
            // Nobody can compare with a primary that was removed.
            let is_peer = |peer: &NodeId| *peer != self.id && view.members.contains_key(peer);
            let others: BTreeSet<NodeId> = placed.primaries(n).into_iter().filter(is_peer).collect();
            let fill = self.fills.entry((home, n)).or_insert(Fill { changed, compared: BTreeSet::new() });
            if fill.changed != changed {
                *fill = Fill { changed, compared: BTreeSet::new() };
            }
            if fill.compared.is_superset(&others) {
                self.fills.remove(&(home, n));
                self.lost.remove(&(home, n));
                for key in shared.keys_of(home, n).filter(|key| self.store.contains_key(key)) {
                    self.owed.extend(others.iter().map(|peer| (key, *peer)));
                }
                continue;
            }
            let missing = others.difference(&fill.compared);
            out.extend(missing.map(|peer| (*peer, Message::Fill { class: (home, n), changed })));
        }
    }

    pub fn note_filled(
        &mut self,
        shared: &Shared,
        from: NodeId,
        (home, n): (u32, u32),
        changed: u64,
        copies: Vec<(Key, Copied)>,
    ) {
        self.merge_all(copies);
        let is_now = self.view(shared).placement.home(home).version().number == changed;
        if let Some(fill) = self.fills.get_mut(&(home, n)).filter(|fill| is_now && fill.changed == changed) {
            fill.compared.insert(from);
        }
    }

    /// Takes the orders of the leader.
    pub fn obey(&mut self, shared: &Shared, orders: &[ProofOrder]) {
        for ProofOrder { home, begun, to } in orders {
            let placed = self.view(shared).placement.home(*home);
            if placed.phase() != Phase::Pending || placed.version().number != *begun {
                continue;
            }
            let proves = |n: &&u32| placed.replica_set(**n).contains(&self.id);
            let full: BTreeSet<u32> =
                shared.ns.iter().filter(proves).copied().filter(|n| self.is_full(*home, *n)).collect();
            let begin = || Proof { begun: *begun, full: full.clone(), to: to.clone(), waiting: to.clone() };
            let proof = self.proofs.entry(*home).or_insert_with(begin);
            let is_stale = proof.begun != *begun || !proof.full.is_superset(&full);
            if is_stale {
                *proof = begin();
            }
            proof.waiting = &(&proof.waiting & to) | &(to - &proof.to);
            proof.to = to.clone();
            if proof.waiting.is_empty() {
                self.ever_proved.insert(*home);
            }
        }
    }

    /// Each copy is read when it is sent, so it has at least what the cut had.
    fn prove(&mut self, shared: &Shared, out: &mut Outbox) {
        let view = self.view(shared);
        for (home, proof) in &self.proofs {
            let placed = view.placement.home(*home);
            for peer in &proof.waiting {
                let goes =
                    |n: &&u32| placed.replica_set(**n).contains(&self.id) && placed.other_set(**n).contains(peer);
                let keys = shared.ns.iter().filter(goes).flat_map(|n| shared.keys_of(*home, *n));
                let held = keys.filter(|key| self.store.contains_key(key));
                let copies = held.map(|key| (key, self.copy(key))).collect();
                out.push((*peer, Message::Prove { home: *home, begun: proof.begun, copies }));
            }
        }
    }
}
