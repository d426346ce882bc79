//! Reaping: a tombstone that all primaries have is removed, when no other member has anything.
//! Values have no times here, so one round is enough (docs/design/replication.md §6).

use super::broken::Broken;
use super::marks::Told;
use super::member::{Member, Outbox, Shared};
use super::model::{Copied, Key, Message};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

const PATIENCE: u64 = 5000;

/// A round at its driver.
#[derive(Clone, Debug)]
pub struct Round {
    number: u64,
    stamp: u64,
    pub entry: usize,
    copy: Copied,
    has_votes: bool,
    waiting: BTreeSet<NodeId>,
    told: BTreeMap<NodeId, Told>,
    pub until: u64,
}

impl Member {
    /// Whether reaping may touch the class, by what the member knows.
    fn may_reap(&self, shared: &Shared, key: Key, stamp: u64) -> bool {
        let (view, class) = (self.view(shared), shared.keys[key]);
        let is_settled = !view.home(class).is_changing();
        (view.number() == stamp && is_settled || shared.is_broken(Broken::ReapsWhileChanging))
            && view.is_primary(self.id, class)
            && self.is_full(class.home, class.n)
    }

    pub fn begin_round(&mut self, shared: &Shared, key: Key, out: &mut Outbox) {
        let (copy, stamp) = (self.copy(key), self.view(shared).number());
        let is_under_way = self.marking.rounds.get(&key).is_some_and(|round| shared.now < round.until);
        if !shared.is_tombstone(key, copy) || !self.may_reap(shared, key, stamp) || is_under_way {
            return;
        }
        self.marking.questions += 1;
        let number = self.marking.questions;
        let waiting = self.view(shared).primaries(shared.keys[key]);
        out.extend(waiting.iter().map(|peer| (*peer, Message::Vote { key, number, stamp, copy })));
        let (entry, until, told) = (self.known, shared.now + PATIENCE, BTreeMap::new());
        let round = Round { number, stamp, entry, copy, has_votes: false, waiting, told, until };
        self.marking.rounds.insert(key, round);
    }

    fn tell(&self, key: Key) -> Told {
        (self.marking.stores[key].id, self.marking.stores[key].seq)
    }

    pub fn vote(&self, shared: &Shared, from: NodeId, key: Key, (number, stamp): (u64, u64), copy: Copied) -> Outbox {
        if !self.may_reap(shared, key, stamp) || self.copy(key) != copy {
            return Outbox::new();
        }
        vec![(from, Message::Agreed { key, number, told: self.tell(key) })]
    }

    pub fn look_for_others(&mut self, shared: &Shared, from: NodeId, key: Key, (number, stamp): (u64, u64)) -> Outbox {
        let view = self.view(shared);
        if view.number() != stamp && !shared.is_broken(Broken::ReapsWhileChanging) {
            return Outbox::new();
        }
        self.marking.fences[key] = shared.now;
        if self.copy(key) != 0 {
            return Outbox::new();
        }
        let store = &mut self.marking.stores[key];
        store.empty_at = store.seq;
        vec![(from, Message::Agreed { key, number, told: self.tell(key) })]
    }

    pub fn agreed(&mut self, shared: &Shared, from: NodeId, key: Key, number: u64, told: Told) -> Outbox {
        let mut out = Outbox::new();
        let (view, now) = (self.view(shared), shared.now);
        let (number_now, primaries) = (view.number(), view.primaries(shared.keys[key]));
        let members: BTreeSet<NodeId> = view.members.keys().copied().collect();
        let Some(round) = self.marking.rounds.get_mut(&key).filter(|it| it.number == number && now < it.until) else {
            return out;
        };
        round.waiting.remove(&from);
        round.told.insert(from, told);
        if !round.waiting.is_empty() || round.stamp != number_now {
            return out;
        }
        let stamp = round.stamp;
        if !round.has_votes {
            round.has_votes = true;
            round.waiting = members.difference(&primaries).copied().collect();
            out.extend(round.waiting.iter().map(|peer| (*peer, Message::LookForOthers { key, number, stamp })));
        }
        if round.waiting.is_empty() {
            let (copy, told) = (round.copy, round.told.clone());
            let order = Message::Remove { key, stamp, copy, told };
            out.extend(primaries.iter().map(|peer| (*peer, order.clone())));
            self.marking.rounds.remove(&key);
        }
        out
    }

    pub fn remove(&mut self, shared: &Shared, key: Key, stamp: u64, copy: Copied, told: BTreeMap<NodeId, Told>) {
        if self.copy(key) != copy || !self.may_reap(shared, key, stamp) {
            return;
        }
        for (node, told) in told.into_iter().filter(|(node, _)| *node != self.id) {
            self.marking.stores[key].keep_told(node, told);
        }
        self.marking.fences[key] = shared.now;
        self.marking.removed.push((key, copy));
        self.set_copy(key, 0);
    }
}
