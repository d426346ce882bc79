//! Exchanges between the primaries of a class, and the questions that come before a copy leaves a
//! store on another way: with a proof, and when it is handed back.

use super::broken::Broken;
use super::marks::{About, Mark, covers, holding, lacks};
use super::member::{Member, Outbox, Shared};
use super::model::{Copied, Key, Message, Purpose};
use ombak_ring::staging::MemberStatus;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// A question that is not answered within this time ends.
const PATIENCE: u64 = 5000;

/// What the question is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An exchange with this primary.
    With(NodeId),
    /// Whether the proof of a home leaves the copy out.
    Proof,
    /// Whether a foreign copy is handed back.
    HandBack,
}

/// A question about one key that is under way.
#[derive(Clone, Debug)]
pub struct Exchange {
    number: u64,
    changed: u64,
    copy: Copied,
    at: u64,
    seq: u64,
    asks_all: bool,
    waiting: BTreeSet<NodeId>,
    answers: BTreeMap<NodeId, About>,
    since: u64,
}

/// What was found out about a copy that is to leave the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    at: u64,
    changed: u64,
    pub is_dead: bool,
}

impl Member {
    pub fn is_doubtful(&self, shared: &Shared, key: Key) -> bool {
        let store = &self.marking.stores[key];
        self.copy(key) != 0 && store.at <= store.doubt && !shared.is_broken(Broken::NoDoubt)
    }

    /// The copy that a write of a client is merged with.
    pub fn kept_copy(&self, shared: &Shared, key: Key) -> Copied {
        if self.is_doubtful(shared, key) { 0 } else { self.copy(key) }
    }

    /// Whether the copy leaves the store only after a look at the others.
    pub fn is_flagged(&self, shared: &Shared, key: Key) -> bool {
        let is_covered = self.marking.stores[key].is_covered() && !shared.is_broken(Broken::NoMarks);
        self.copy(key) != 0 && (self.is_doubtful(shared, key) || is_covered)
    }

    pub fn about(&self, shared: &Shared, key: Key, asker: NodeId) -> About {
        let class = shared.keys[key];
        let store = &self.marking.stores[key];
        About {
            copy: self.copy(key),
            is_full: self.is_full(class.home, class.n),
            is_doubtful: self.is_doubtful(shared, key),
            of_you: store.of_others.get(&asker).copied(),
            told_you: store.told.get(&asker).copied(),
            store: store.clone(),
        }
    }

    pub fn begin_exchange(&mut self, shared: &Shared, key: Key, peer: NodeId, out: &mut Outbox) {
        let (view, class) = (self.view(shared), shared.keys[key]);
        let may_exchange = !view.home(class).is_changing() || shared.is_broken(Broken::ExchangesWhileChanging);
        if may_exchange && view.is_primary(self.id, class) && view.is_primary(peer, class) {
            self.ask(shared, key, Kind::With(peer), BTreeSet::from([peer]), out);
        }
    }

    /// Asks, unless the same question is under way.
    fn ask(&mut self, shared: &Shared, key: Key, kind: Kind, whom: BTreeSet<NodeId>, out: &mut Outbox) {
        if self.marking.exchanges.get(&(key, kind)).is_some_and(|it| shared.now < it.since + PATIENCE) {
            return;
        }
        let asks_all = !matches!(kind, Kind::With(_));
        self.ask_anew(shared, key, kind, (whom, asks_all), out);
    }

    fn ask_anew(
        &mut self,
        shared: &Shared,
        key: Key,
        kind: Kind,
        (whom, asks_all): (BTreeSet<NodeId>, bool),
        out: &mut Outbox,
    ) {
        let store = &self.marking.stores[key];
        let changed = self.view(shared).changed(shared.keys[key]);
        let (copy, at, seq, since) = (self.copy(key), store.at, store.seq, shared.now);
        self.marking.questions += 1;
        let number = self.marking.questions;
        out.extend(whom.iter().map(|peer| (*peer, Message::Ask { key, kind, number, changed })));
        let exchange =
            Exchange { number, changed, copy, at, seq, asks_all, waiting: whom, answers: BTreeMap::new(), since };
        self.marking.exchanges.insert((key, kind), exchange);
    }

    pub fn asked(&self, shared: &Shared, from: NodeId, (key, kind): (Key, Kind), number: u64, changed: u64) -> Outbox {
        let (view, class) = (self.view(shared), shared.keys[key]);
        if view.changed(class) != changed || !view.is_primary(self.id, class) {
            return Outbox::new();
        }
        let about = Box::new(self.about(shared, key, from));
        vec![(from, Message::Said { key, kind, number, about })]
    }

    pub fn said(
        &mut self,
        shared: &Shared,
        from: NodeId,
        (key, kind): (Key, Kind),
        number: u64,
        about: About,
    ) -> Outbox {
        let mut out = Outbox::new();
        let changed = self.view(shared).changed(shared.keys[key]);
        let Some(exchange) = self.marking.exchanges.get_mut(&(key, kind)).filter(|it| it.number == number) else {
            return out;
        };
        exchange.waiting.remove(&from);
        exchange.answers.insert(from, about);
        if !exchange.waiting.is_empty() {
            return out;
        }
        let Some(exchange) = self.marking.exchanges.remove(&(key, kind)) else { return out };
        if exchange.changed != changed {
            return out;
        }
        match kind {
            Kind::With(peer) if !exchange.asks_all => self.compare(shared, key, peer, exchange, &mut out),
            Kind::With(peer) => self.decide(shared, key, peer, &exchange, &mut out),
            Kind::Proof | Kind::HandBack => self.judge(shared, key, kind, &exchange),
        }
        out
    }

    fn compare(&mut self, shared: &Shared, key: Key, peer: NodeId, exchange: Exchange, out: &mut Outbox) {
        let class = shared.keys[key];
        let Some(theirs) = exchange.answers.get(&peer) else { return };
        if covers(theirs.copy, exchange.copy) {
            if theirs.is_full && !theirs.is_doubtful && theirs.copy != 0 {
                self.marking.stores[key].doubt = 0;
            }
            let mark = self.note_mark(key, peer, exchange.seq, theirs);
            return out.push((peer, Message::Marked { key, changed: exchange.changed, mark }));
        }
        let store = &self.marking.stores[key];
        if !self.is_full(class.home, class.n) || (self.copy(key), store.at) != (exchange.copy, exchange.at) {
            return;
        }
        let others = self.others(shared, key);
        let is_above = others.iter().all(|other| !store.is_covered_for(*other)) || shared.is_broken(Broken::NoMarks);
        if is_above && !self.is_doubtful(shared, key) {
            return self.push(shared, key, peer, out);
        }
        self.ask_anew(shared, key, Kind::With(peer), (others, true), out);
    }

    fn others(&self, shared: &Shared, key: Key) -> BTreeSet<NodeId> {
        let primaries = self.view(shared).primaries(shared.keys[key]);
        primaries.into_iter().filter(|other| *other != self.id).collect()
    }

    pub fn note_mark(&mut self, key: Key, peer: NodeId, a: u64, theirs: &About) -> Mark {
        let store = &mut self.marking.stores[key];
        let mark = Mark { own_id: store.id, a, id: theirs.store.id, token: theirs.store.token, b: theirs.store.seq };
        store.marks.insert(peer, mark);
        store.keep_told(peer, (mark.id, mark.b));
        mark
    }

    /// Keeps the mark of another member.
    pub fn marked(&mut self, shared: &Shared, from: NodeId, key: Key, changed: u64, mark: Mark) {
        let (view, class) = (self.view(shared), shared.keys[key]);
        if view.changed(class) == changed && view.is_primary(self.id, class) {
            let store = &mut self.marking.stores[key];
            store.of_others.insert(from, mark);
            store.keep_told(from, (mark.own_id, mark.a));
        }
    }

    fn push(&self, shared: &Shared, key: Key, peer: NodeId, out: &mut Outbox) {
        let (stamp, read_at) = (self.view(shared).number(), shared.now);
        out.push((peer, Message::Push { key, copy: self.copy(key), stamp, purpose: Purpose::Exchange, read_at }));
    }

    /// Rules 3 to 8 of §5.
    fn decide(&mut self, shared: &Shared, key: Key, peer: NodeId, exchange: &Exchange, out: &mut Outbox) {
        if (self.copy(key), self.marking.stores[key].at) != (exchange.copy, exchange.at) || exchange.copy == 0 {
            return;
        }
        let Some(theirs) = exchange.answers.get(&peer) else { return };
        let copy = exchange.copy;
        if !lacks(theirs.copy, copy) {
            if !covers(theirs.copy, copy) {
                self.push(shared, key, peer, out);
            }
            return;
        }
        let (lacking, holders): (Vec<_>, Vec<_>) =
            exchange.answers.iter().partition(|(_, about)| lacks(about.copy, copy));
        if holders.iter().any(|(_, about)| about.is_full && !about.is_doubtful) && !shared.is_broken(Broken::OneLacksIt)
        {
            self.marking.stores[key].doubt = 0;
            return self.push(shared, key, peer, out);
        }
        let is_doubtful = self.is_doubtful(shared, key);
        let are_full = exchange.answers.values().all(|about| about.is_full);
        let is_withheld = !holders.is_empty() && !is_doubtful && !shared.is_broken(Broken::OneLacksIt);
        if !are_full || is_withheld {
            return;
        }
        let is_covered =
            |(node, about): &(&NodeId, &About)| exchange.at <= holding(&self.marking.stores[key], **node, about);
        let covered = lacking.iter().filter(|it| is_covered(it)).count();
        let is_dead = covered == lacking.len() || covered > 0 && shared.is_broken(Broken::OneMarkDrops);
        if is_dead || is_doubtful && holders.is_empty() {
            self.drop_copy(shared, key);
            let held = exchange.answers.values().fold(0, |all, about| all | about.copy);
            self.merge(shared, key, held);
        } else {
            self.push(shared, key, peer, out);
        }
    }

    pub fn drop_copy(&mut self, shared: &Shared, key: Key) {
        let copy = self.copy(key);
        self.marking.fences[key] = shared.now;
        self.marking.dropped.push((key, copy));
        self.set_copy(key, 0);
    }

    /// Whether the copy is dead: no primary has it, and each of them had it once. A copy in doubt
    /// is dead when no primary has it.
    fn judge(&mut self, shared: &Shared, key: Key, kind: Kind, exchange: &Exchange) {
        let answers = &exchange.answers;
        if !answers.values().all(|about| about.is_full) {
            return;
        }
        let is_doubtful = self.is_doubtful(shared, key);
        let store = &self.marking.stores[key];
        let all_lack = answers.values().all(|about| lacks(about.copy, exchange.copy));
        let unmarked = answers.iter().filter(|(node, about)| exchange.at > holding(store, **node, about)).count();
        // Who has ceased to be a primary had it, and proved to its successor what it held.
        let former = store.marks.keys().filter(|node| !answers.contains_key(node) && store.is_covered_for(**node));
        let counts = kind == Kind::HandBack && !shared.is_broken(Broken::FormerMarksAreVoid);
        let all_had = unmarked <= if counts { former.count() } else { 0 };
        let is_dead = all_lack && (is_doubtful || all_had) && !answers.is_empty();
        self.marking.verdicts.insert((key, kind), Verdict { at: exchange.at, changed: exchange.changed, is_dead });
    }

    /// The verdict about the copy as it is now. Without one the question is asked.
    fn verdict(
        &mut self,
        shared: &Shared,
        key: Key,
        kind: Kind,
        whom: BTreeSet<NodeId>,
        out: &mut Outbox,
    ) -> Option<bool> {
        let changed = self.view(shared).changed(shared.keys[key]);
        let at = self.marking.stores[key].at;
        let known = self.marking.verdicts.get(&(key, kind)).copied();
        let known = known.filter(|it| (it.at, it.changed) == (at, changed));
        if known.is_none() {
            self.ask(shared, key, kind, whom, out);
        }
        known.map(|it| it.is_dead)
    }

    /// Whether the proof of a home leaves the copy out; nothing as long as that is not known.
    pub fn is_left_out_of_proof(&mut self, shared: &Shared, key: Key, out: &mut Outbox) -> Option<bool> {
        if self.is_doubtful(shared, key) {
            return Some(!shared.is_broken(Broken::ProofsSendTheDoubtful));
        }
        if !self.is_flagged(shared, key) || shared.is_broken(Broken::ProofsSendTheCovered) {
            return Some(false);
        }
        let view = self.view(shared);
        let class = shared.keys[key];
        let others: BTreeSet<NodeId> =
            view.home(class).replica_set(class.n).into_iter().filter(|node| *node != self.id).collect();
        let can_answer = |node: &NodeId| view.status(*node).is_some_and(|status| status != MemberStatus::Down);
        if others.is_empty() || !others.iter().all(can_answer) {
            return Some(false);
        }
        self.verdict(shared, key, Kind::Proof, others, out)
    }

    /// Whether a foreign copy is to be handed back. What is dead is dropped.
    pub fn is_handed_back(&mut self, shared: &Shared, key: Key, out: &mut Outbox) -> bool {
        let store = &self.marking.stores[key];
        if store.at <= store.empty_at && !shared.is_broken(Broken::EmptyIsForgotten) {
            self.drop_copy(shared, key);
            return false;
        }
        if !self.is_flagged(shared, key) {
            return true;
        }
        let primaries = self.view(shared).primaries(shared.keys[key]);
        let verdict = self.verdict(shared, key, Kind::HandBack, primaries, out);
        if verdict == Some(true) {
            self.drop_copy(shared, key);
        }
        verdict == Some(false)
    }

    /// The store learns that it lost something, and not only its unsynced tail.
    /// What it held up to this seq is in doubt.
    pub fn lose_middle(&mut self, shared: &Shared, key: Key, doubt: u64) {
        let token = self.marking.draw(self.id);
        self.marking.losses += 1;
        let store = &mut self.marking.stores[key];
        (store.doubt, store.accounted) = (doubt, doubt);
        store.token = token;
        self.marking.exchanges.retain(|(asked, _), _| *asked != key);
        let class = shared.keys[key];
        if self.view(shared).is_primary(self.id, class) {
            self.lost.insert((class.home, class.n));
        }
    }

    /// The first words of a connection.
    pub fn hear_told(&mut self, shared: &Shared, key: Key, told: Option<(u64, u64)>) -> bool {
        let store = &self.marking.stores[key];
        let Some((id, seq)) = told.filter(|_| !shared.is_broken(Broken::ToldIsForgotten)) else {
            return false;
        };
        // What came after the opening that lost the seq is new.
        let lost_at = store.openings.iter().rev().find(|(end, base)| *end < seq && seq < *base).map(|(_, base)| *base);
        let last = store.openings.last().map(|(_, base)| *base);
        let doubt = if shared.is_broken(Broken::DoubtUpToTheLastOpening) { lost_at.and(last) } else { lost_at };
        if let Some(doubt) = doubt.filter(|doubt| id == store.id && store.accounted < *doubt) {
            self.lose_middle(shared, key, doubt);
            return true;
        }
        false
    }
}
