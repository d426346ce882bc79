//! A member: what it stores, what it adopts, and what it answers to other members.

use super::broken::Broken;
use super::marks::{Marking, Store};
use super::model::{Answer, Class, Copied, Effect, Key, Message, Purpose, State, bits};
use super::request::Request;
use super::work::{Fill, HandBack, Proof};
use ombak_ring::placement::{LackingHome, Phase, ProvedHome, Report};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// What all members share: the metadata and the keys. A member reads the entries up to the one that
/// it knows.
pub struct Shared {
    pub log: Vec<State>,
    pub keys: Vec<Class>,
    pub ns: BTreeSet<u32>,
    pub broken: Option<Broken>,
    /// Whether members exchange, and clients delete.
    pub has_marks: bool,
    pub events: Vec<Vec<Effect>>,
    pub now: u64,
}

impl Shared {
    pub fn is_broken(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    pub fn now(&self) -> &State {
        &self.log[self.log.len() - 1]
    }

    /// What the writes of a copy have replaced.
    pub fn replaced(&self, key: Key, copy: Copied) -> Copied {
        bits(copy).fold(0, |all, bit| all | self.events[key][bit].seen)
    }

    /// The values that a reader of the copy gets.
    pub fn values(&self, key: Key, copy: Copied) -> Copied {
        let shown = copy & !self.replaced(key, copy);
        bits(shown).filter(|bit| !self.events[key][*bit].is_delete).fold(0, |all, bit| all | 1 << bit)
    }

    pub fn is_tombstone(&self, key: Key, copy: Copied) -> bool {
        copy != 0 && self.values(key, copy) == 0
    }

    pub fn keys_of(&self, home: u32, n: u32) -> impl Iterator<Item = Key> {
        (0..self.keys.len()).filter(move |key| (self.keys[*key].home, self.keys[*key].n) == (home, n))
    }
}

/// Messages that a member sends.
pub type Outbox = Vec<(NodeId, Message)>;

pub struct Member {
    pub id: NodeId,
    /// What survives a kill: the last entry that was adopted, the copies, the reasons for which
    /// classes are filling, and who is owed what.
    pub known: usize,
    pub store: BTreeMap<Key, Copied>,
    pub joining: BTreeSet<(u32, u32)>,
    pub lost: BTreeSet<(u32, u32)>,
    pub owed: BTreeSet<(Key, NodeId)>,
    /// What does not survive it.
    pub requests: BTreeMap<u64, Request>,
    pub proofs: BTreeMap<u32, Proof>,
    pub ever_proved: BTreeSet<u32>,
    pub hand_backs: BTreeMap<Key, HandBack>,
    pub fills: BTreeMap<(u32, u32), Fill>,
    /// Keys whose copies were dropped since somebody looked.
    pub dropped: Vec<Key>,
    pub is_running: bool,
    /// Until then it hears nothing of the metadata but from members that it asks.
    pub deaf_until: u64,
    pub paused_until: u64,
    pub marking: Marking,
    pub started_at: u64,
}

impl Member {
    pub fn new(id: NodeId, known: usize, keys: usize) -> Self {
        Self {
            id,
            known,
            store: BTreeMap::new(),
            joining: BTreeSet::new(),
            lost: BTreeSet::new(),
            owed: BTreeSet::new(),
            requests: BTreeMap::new(),
            proofs: BTreeMap::new(),
            ever_proved: BTreeSet::new(),
            hand_backs: BTreeMap::new(),
            fills: BTreeMap::new(),
            dropped: Vec::new(),
            is_running: true,
            deaf_until: 0,
            paused_until: 0,
            marking: Marking::new(id, keys),
            started_at: 0,
        }
    }

    pub fn view<'a>(&self, shared: &'a Shared) -> &'a State {
        &shared.log[self.known]
    }

    pub fn kill(&mut self) {
        self.is_running = false;
        self.requests.clear();
        self.proofs.clear();
        self.ever_proved.clear();
        self.hand_backs.clear();
        self.fills.clear();
        self.marking.end_all();
    }

    /// Starts again. After an unclean stop every other primary is owed everything.
    pub fn start(&mut self, shared: &Shared) {
        self.is_running = true;
        self.started_at = shared.now;
        self.marking.stores.iter_mut().for_each(Store::open);
        self.marking.fences.fill(shared.now);
        let held: Vec<Key> = self.store.keys().copied().collect();
        held.into_iter().for_each(|key| self.owe_all(shared, key));
    }

    pub fn lose_store(&mut self, shared: &Shared) {
        self.store.clear();
        self.owed.clear();
        let drawn = self.marking.drawn;
        self.marking = Marking { drawn, ..Marking::new(self.id, shared.keys.len()) };
        let view = self.view(shared);
        for home in view.placement.homes() {
            let classes = shared.ns.iter().filter(|n| home.is_primary(self.id, **n)).map(|n| (home.home(), *n));
            self.lost.extend(classes);
        }
    }

    pub fn draw_tokens(&mut self, shared: &Shared, (home, n): (u32, u32)) {
        for key in shared.keys_of(home, n) {
            self.marking.stores[key].token = self.marking.draw(self.id);
        }
    }

    fn owe_all(&mut self, shared: &Shared, key: Key) {
        let primaries = self.view(shared).primaries(shared.keys[key]);
        if primaries.contains(&self.id) {
            self.owed.extend(primaries.into_iter().filter(|peer| *peer != self.id).map(|peer| (key, peer)));
        }
    }

    pub fn is_full(&self, home: u32, n: u32) -> bool {
        !self.joining.contains(&(home, n)) && !self.lost.contains(&(home, n))
    }

    /// A copy in doubt is not merged with one that neither covers it nor is covered by it.
    pub fn merge(&mut self, shared: &Shared, key: Key, copy: Copied) -> Copied {
        let held = self.copy(key);
        if copy | held == held {
            return held;
        }
        let is_doubtful = self.is_doubtful(shared, key);
        let merged = if is_doubtful && held & !copy != 0 { copy } else { held | copy };
        let is_returned = |returned: &(Key, Copied)| returned.0 == key && held & returned.1 == returned.1;
        if !is_doubtful && self.marking.returned.iter().any(is_returned) {
            self.marking.written_over.insert(key);
        }
        self.set_copy(key, merged);
        merged
    }

    pub fn set_copy(&mut self, key: Key, copy: Copied) {
        let store = &mut self.marking.stores[key];
        store.seq += 1;
        store.at = store.seq;
        self.marking.journals[key].push((store.seq, copy));
        if copy == 0 {
            self.store.remove(&key);
        } else {
            self.store.insert(key, copy);
        }
    }

    /// Stores copies that another member read at this time. A fence refuses them if they are older.
    pub fn take(&mut self, shared: &Shared, read_at: u64, copies: &[(Key, Copied)]) -> bool {
        let taken =
            copies.iter().filter(|(key, _)| !self.is_fenced(shared, *key, read_at)).copied().collect::<Vec<_>>();
        for (key, copy) in &taken {
            self.merge(shared, *key, *copy);
        }
        taken.len() == copies.len()
    }

    pub fn is_fenced(&self, shared: &Shared, key: Key, read_at: u64) -> bool {
        shared.has_marks && read_at <= self.marking.fences[key]
    }

    pub fn copy(&self, key: Key) -> Copied {
        self.store.get(&key).copied().unwrap_or(0)
    }

    /// Adopts the entries up to this one, without looking at those in between.
    pub fn adopt(&mut self, shared: &Shared, last: usize) {
        if last <= self.known {
            return;
        }
        let (old, new) = (&shared.log[self.known], &shared.log[last]);
        self.known = last;
        for home in 0..new.placement.size().get() {
            if old.placement.home(home).version() != new.placement.home(home).version() {
                shared.ns.iter().for_each(|n| self.adopt_class(shared, old, new, Class { home, n: *n }));
                self.proofs.remove(&home);
            }
        }
    }

    fn adopt_class(&mut self, shared: &Shared, old: &State, new: &State, class: Class) {
        let key_of_class = (class.home, class.n);
        let home = new.home(class);
        let is_in_force = home.replica_set(class.n).contains(&self.id);
        let was_primary = old.is_primary(self.id, class);
        self.fills.remove(&key_of_class);
        if shared.is_broken(Broken::RolesClearMarks) {
            self.owed.retain(|(key, _)| (shared.keys[*key].home, shared.keys[*key].n) != key_of_class);
        }
        if !home.is_primary(self.id, class.n) {
            if shared.is_broken(Broken::AbortDrops) && self.joining.contains(&key_of_class) {
                self.store.retain(|key, _| (shared.keys[*key].home, shared.keys[*key].n) != key_of_class);
            }
            self.joining.remove(&key_of_class);
            self.lost.remove(&key_of_class);
            if shared.is_broken(Broken::RolesClearOwnMarks) {
                shared.keys_of(class.home, class.n).for_each(|key| self.marking.stores[key].marks.clear());
            }
            return;
        }
        if is_in_force {
            let was_joining = self.joining.remove(&key_of_class);
            if !was_primary && !was_joining {
                self.lost.insert(key_of_class);
            }
        } else if home.phase() == Phase::Pending {
            let is_new = self.joining.insert(key_of_class);
            if is_new && !shared.is_broken(Broken::RolesKeepTokens) {
                self.draw_tokens(shared, key_of_class);
            }
        }
        let set = |state: &State| state.home(class).replica_set(class.n).into_iter().collect::<BTreeSet<_>>();
        let has_flipped = set(old) != set(new);
        let has_proved = self.proofs.get(&class.home).is_some_and(|proof| proof.waiting.is_empty());
        let is_unproved = was_primary && has_flipped && !has_proved && !shared.is_broken(Broken::ReturnsWithoutProof);
        if is_unproved || !was_primary && !shared.is_broken(Broken::RolesClearMarks) {
            // What it held for others it has to hand to them as before. And the new primaries got
            // nothing from a member that was away when the home flipped.
            let held: Vec<Key> = shared.keys_of(class.home, class.n).filter(|key| self.copy(*key) != 0).collect();
            held.into_iter().for_each(|key| self.owe_all(shared, key));
        }
    }

    /// The last entry below which no request is under way.
    pub fn confirmed_entry(&self, shared: &Shared) -> usize {
        if shared.is_broken(Broken::ConfirmsTooEarly) {
            return self.known;
        }
        let rounds = self.marking.rounds.values().filter(|round| shared.now < round.until).map(|round| round.entry);
        let requests = self.requests.values().map(|request| request.entry);
        requests.chain(rounds).min().unwrap_or(self.known).min(self.known)
    }

    pub fn report(&self, shared: &Shared) -> Report {
        let view = self.view(shared);
        let proved = self.proofs.iter().filter(|(_, proof)| proof.waiting.is_empty());
        let mut proved: Vec<ProvedHome> = proved
            .map(|(home, proof)| ProvedHome { home: *home, begun: proof.begun, full: proof.full.clone() })
            .collect();
        if shared.is_broken(Broken::OldProofs) {
            let old = self.ever_proved.iter().map(|home| (*home, view.placement.home(*home).version().number));
            proved.extend(old.map(|(home, begun)| ProvedHome { home, begun, full: shared.ns.clone() }));
        }
        let lacking = view.placement.homes().filter(|home| home.is_changing()).map(|home| {
            let is_new = |n: u32| match home.phase() {
                Phase::Pending => home.other_set(n).contains(&self.id),
                _ => home.replica_set(n).contains(&self.id),
            };
            let ns = shared.ns.iter().copied().filter(|n| is_new(*n) && self.lost.contains(&(home.home(), *n)));
            LackingHome { home: home.home(), ns: ns.collect() }
        });
        let lacking = lacking.filter(|lacking| !lacking.ns.is_empty()).collect();
        Report {
            confirmed: shared.log[self.confirmed_entry(shared)].placement.version(),
            proved,
            lacking,
            takes_no_copies: false,
        }
    }

    /// What another member is answered.
    pub fn receive(&mut self, shared: &Shared, from: NodeId, message: Message, out: &mut Outbox) {
        match message {
            Message::Write { request, attempt, key, copy, stamp, read_at } => {
                if !self.take(shared, read_at, &[(key, copy)]) {
                    return;
                }
                let is_fenced = stamp < self.view(shared).changed(shared.keys[key]);
                let newer = (is_fenced && !shared.is_broken(Broken::NoFenceForWrites)).then_some(self.known);
                out.push((from, Message::Written { request, attempt, newer }));
            }
            Message::Read { request, attempt, key, stamp } => {
                let (view, class) = (self.view(shared), shared.keys[key]);
                let is_fenced = stamp < view.changed(class);
                let newer = (is_fenced && !shared.is_broken(Broken::NoFenceForReads)).then_some(self.known);
                let copy = self.copy(key);
                let is_behind = view.number() < stamp;
                let counts = copy != 0 || (!is_behind && self.is_full(class.home, class.n));
                out.push((from, Message::Found { request, attempt, copy, counts, newer }));
            }
            Message::Push { key, copy, stamp, purpose, read_at } => {
                if !self.take(shared, read_at, &[(key, copy)]) {
                    return;
                }
                let copy_now = self.copy(key);
                let (view, class) = (self.view(shared), shared.keys[key]);
                let newer = (stamp < view.changed(class)).then_some(self.known);
                let holds = newer.is_none() && view.number() >= stamp && view.is_primary(self.id, class);
                out.push((from, Message::Pushed { key, copy: copy_now, stamp, holds, newer, purpose }));
            }
            Message::Prove { home, begun, copies, seqs, read_at } => {
                let are_taken = self.take(shared, read_at, &copies);
                if are_taken && self.view(shared).placement.home(home).version().number == begun {
                    let seqs = seqs.into_iter().map(|(key, seq)| (key, seq, self.about(shared, key, from))).collect();
                    out.push((from, Message::Proved { home, begun, seqs }));
                }
            }
            Message::Fill { class: (home, n), changed } => {
                let held = shared.keys_of(home, n);
                let copies = held.map(|key| (key, self.about(shared, key, from))).collect();
                out.push((from, Message::Filled { class: (home, n), changed, copies, read_at: shared.now }));
            }
            Message::Question { term, question, orders } => {
                self.obey(shared, &orders);
                let report = self.report(shared);
                let confirmed_entry = self.confirmed_entry(shared);
                let is_empty = self.store.is_empty() && self.owed.is_empty() && self.requests.is_empty();
                let answer = Box::new(Answer { report, confirmed_entry, is_empty, question });
                out.push((from, Message::Answer { term, answer }));
            }
            Message::Metadata { last } => self.adopt(shared, last),
            Message::Pushed { key, copy, stamp, holds, newer, purpose } => {
                if let Some(newer) = newer {
                    self.adopt(shared, newer);
                }
                match purpose {
                    Purpose::Owed if copy & self.copy(key) == self.copy(key) => drop(self.owed.remove(&(key, from))),
                    Purpose::HandBack if holds => self.note_hand_back(shared, from, key, copy, stamp),
                    _ => {}
                }
            }
            Message::Proved { home, begun, seqs } => {
                self.note_proved(shared, from, (home, begun), seqs);
                if let Some(proof) = self.proofs.get_mut(&home).filter(|proof| proof.begun == begun) {
                    proof.waiting.remove(&from);
                    if proof.waiting.is_empty() {
                        self.ever_proved.insert(home);
                    }
                }
            }
            Message::Filled { class, changed, copies, read_at } => {
                self.note_filled(shared, from, (class, changed), copies, read_at);
            }
            other => self.receive_of_marks(shared, from, other, out),
        }
    }

    fn receive_of_marks(&mut self, shared: &Shared, from: NodeId, message: Message, out: &mut Outbox) {
        match message {
            Message::Ask { key, kind, number, changed } => {
                out.extend(self.asked(shared, from, (key, kind), number, changed));
            }
            Message::Said { key, kind, number, about } => {
                self.hear_told(shared, key, about.told_you);
                out.extend(self.said(shared, from, (key, kind), number, *about));
            }
            Message::Marked { key, changed, mark } => self.marked(shared, from, key, changed, mark),
            Message::Vote { key, number, stamp, copy } => {
                out.extend(self.vote(shared, from, key, (number, stamp), copy));
            }
            Message::LookForOthers { key, number, stamp } => {
                out.extend(self.look_for_others(shared, from, key, (number, stamp)));
            }
            Message::Agreed { key, number, told } => out.extend(self.agreed(shared, from, key, number, told)),
            Message::Remove { key, stamp, copy, told } => self.remove(shared, key, stamp, copy, told),
            _ => {}
        }
    }
}
