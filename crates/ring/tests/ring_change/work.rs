//! What a member does by itself: it hands foreign copies back, gives what it owes, fills its
//! classes and proves homes.

use super::broken::Broken;
use super::marks::{About, covers, holding, lacks};
use super::member::{Member, Outbox, Shared};
use super::model::{Copied, Key, Message, Purpose};
use ombak_ring::placement::{Phase, ProofOrder};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

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
    said: BTreeMap<(Key, NodeId), About>,
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
            if !self.is_handed_back(shared, key, out) {
                continue;
            }
            let changed = view.changed(class);
            let under_way = self.hand_backs.get(&key).filter(|it| (it.copy, it.changed) == (copy, changed));
            if under_way.is_none() {
                self.hand_backs.insert(key, HandBack { copy, changed, proved: BTreeSet::new() });
            }
            let proved = &self.hand_backs[&key].proved;
            for peer in view.primaries(class).difference(proved) {
                let push =
                    Message::Push { key, copy, stamp: view.number(), purpose: Purpose::HandBack, read_at: shared.now };
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
            self.set_copy(key, 0);
            self.hand_backs.remove(&key);
            self.dropped.push(key);
        }
    }

    fn give_owed(&mut self, shared: &Shared, out: &mut Outbox) {
        let view = self.view(shared);
        let id = self.id;
        let mut owed = std::mem::take(&mut self.owed);
        owed.retain(|(key, peer)| {
            let class = shared.keys[*key];
            let is_between_primaries = view.is_primary(id, class) && view.is_primary(*peer, class);
            let store = &self.marking.stores[*key];
            let is_named = store.is_covered_for(*peer) || self.is_doubtful(shared, *key);
            // A primary for which there is no mark may be new.
            let may_be_new = !store.marks.contains_key(peer) && !shared.is_broken(Broken::OwesToNewPrimaries);
            let is_covered = is_named || may_be_new && store.is_covered();
            let is_given = !is_covered || shared.is_broken(Broken::OwesTheCovered) || shared.is_broken(Broken::NoMarks);
            is_given && self.copy(*key) != 0 && (is_between_primaries || view.home(class).is_changing())
        });
        self.owed = owed;
        for (key, peer) in &self.owed {
            let (copy, stamp, purpose, read_at) = (self.copy(*key), view.number(), Purpose::Owed, shared.now);
            let push = Message::Push { key: *key, copy, stamp, purpose, read_at };
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
            let fill = self.fills.entry((home, n)).or_insert(Fill {
                changed,
                compared: BTreeSet::new(),
                said: BTreeMap::new(),
            });
            if fill.changed != changed {
                *fill = Fill { changed, compared: BTreeSet::new(), said: BTreeMap::new() };
            }
            if fill.compared.is_superset(&others) {
                let said = self.fills.remove(&(home, n)).map_or_else(BTreeMap::new, |fill| fill.said);
                self.take_flagged(shared, &said);
                self.lost.remove(&(home, n));
                self.draw_tokens(shared, (home, n));
                if others.is_empty() {
                    shared.keys_of(home, n).for_each(|key| self.marking.stores[key].doubt = 0);
                }
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
        ((home, n), changed): ((u32, u32), u64),
        copies: Vec<(Key, About)>,
        read_at: u64,
    ) {
        let is_now = self.view(shared).placement.home(home).version().number == changed;
        let is_flagged = |about: &About| {
            let is_flagged = about.is_doubtful || about.store.is_covered();
            is_flagged && shared.has_marks && !shared.is_broken(Broken::FillingTakesTheCovered)
        };
        let plain = copies.iter().filter(|(_, about)| !is_flagged(about)).map(|(key, about)| (*key, about.copy));
        if !self.take(shared, read_at, &plain.collect::<Vec<_>>()) {
            return;
        }
        for (key, about) in &copies {
            let told = about.store.told.iter().filter(|(node, _)| **node != self.id);
            told.for_each(|(node, told)| self.marking.stores[*key].keep_told(*node, *told));
        }
        if let Some(fill) = self.fills.get_mut(&(home, n)).filter(|fill| is_now && fill.changed == changed) {
            fill.compared.insert(from);
            fill.said.extend(copies.into_iter().map(|(key, about)| ((key, from), about)));
        }
    }

    /// A copy in doubt or below the marks of its store comes last, and not if a full primary that
    /// had it lacks it.
    fn take_flagged(&mut self, shared: &Shared, said: &BTreeMap<(Key, NodeId), About>) {
        for ((key, giver), about) in said {
            let had =
                |node: NodeId, other: &About| about.is_doubtful || about.store.at <= holding(&about.store, node, other);
            let others = said.iter().filter(|((of, node), _)| of == key && node != giver);
            let is_removed = others
                .clone()
                .any(|((_, node), other)| other.is_full && lacks(other.copy, about.copy) && had(*node, other));
            let own = self.about(shared, *key, *giver);
            let was_here = !about.is_doubtful && had(self.id, &own) && lacks(own.copy, about.copy);
            let is_fenced = covers(own.copy, about.copy);
            if !is_removed && !was_here && !is_fenced {
                if about.is_doubtful {
                    self.marking.written_over.insert(*key);
                }
                self.merge(shared, *key, about.copy);
            }
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
        let proofs: Vec<(u32, u64, BTreeSet<NodeId>)> =
            self.proofs.iter().map(|(home, proof)| (*home, proof.begun, proof.waiting.clone())).collect();
        for (home, begun, waiting) in proofs {
            let placed = view.placement.home(home);
            for peer in waiting {
                let goes =
                    |n: &&u32| placed.replica_set(**n).contains(&self.id) && placed.other_set(**n).contains(&peer);
                let keys: Vec<Key> = shared.ns.iter().filter(goes).flat_map(|n| shared.keys_of(home, *n)).collect();
                let held: Option<Vec<_>> =
                    keys.iter().map(|key| Some((*key, self.is_left_out_of_proof(shared, *key, out)?))).collect();
                let Some(held) = held else { continue };
                let sent = held.iter().filter(|(key, is_left_out)| !is_left_out && self.copy(*key) != 0);
                let copies = sent.map(|(key, _)| (*key, self.copy(*key))).collect();
                let certain = keys.iter().filter(|key| !self.is_doubtful(shared, **key));
                let seqs = certain.map(|key| (*key, self.marking.stores[*key].seq)).collect();
                out.push((peer, Message::Prove { home, begun, copies, seqs, read_at: shared.now }));
            }
        }
    }

    /// What was proved to a primary is marked, as after an exchange.
    pub fn note_proved(
        &mut self,
        shared: &Shared,
        from: NodeId,
        (home, begun): (u32, u64),
        seqs: Vec<(Key, u64, About)>,
    ) {
        let is_now = self.view(shared).placement.home(home).version().number == begun;
        let is_marked = is_now && shared.has_marks && !shared.is_broken(Broken::ProofsMakeNoMark);
        for (key, seq, about) in seqs.into_iter().filter(|_| is_marked) {
            self.note_mark(key, from, seq, &about);
        }
    }
}
