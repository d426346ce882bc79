//! Clients, and the members that coordinate their requests.

use super::broken::Broken;
use super::model::{Class, Effect, Key, Message};
use super::request::{Quorum, Request};
use super::world::{Event, SECOND, World};
use ombak_ring::staging::MemberStatus;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// A copy has a bit for each write.
const WRITES_MAX: usize = 60;

impl World {
    /// A client puts or gets at some member.
    pub fn client(&mut self) {
        let alive: Vec<NodeId> = self.members.keys().copied().filter(|node| self.is_alive(*node)).collect();
        let deaf: Vec<NodeId> = alive.iter().copied().filter(|node| self.members[node].deaf_until > self.now).collect();
        let from_deaf = if self.rng.percent(40) { self.rng.pick(&deaf) } else { None };
        let Some(mut node) = from_deaf.or_else(|| self.rng.pick(&alive)) else { return };
        let key = self.rng.within(0, self.shared.keys.len() as u64 - 1) as Key;
        let class = self.shared.keys[key];
        let is_put = self.rng.percent(60) && self.oracle.writes(key) < WRITES_MAX;
        if is_put {
            // The put is forwarded to a member that serves a position.
            let rows: Vec<_> = self.positions(node, class).into_iter().flatten().map(|(serving, _)| serving).collect();
            let chosen = if rows.contains(&node) { Some(node) } else { self.rng.pick(&rows) };
            let Some(chosen) = chosen.filter(|chosen| self.is_alive(*chosen)) else { return };
            node = chosen;
        }
        let sets = self.positions(node, class);
        if is_put && !sets.iter().flatten().any(|(serving, _)| *serving == node) {
            return;
        }
        let majority = class.n / 2 + 1;
        let quorums = if is_put {
            [(majority, majority), (1, 0), (class.n, class.n), (majority, 1)]
        } else {
            [(majority, majority), (1, 1), (class.n, class.n), (majority, majority)]
        };
        let (any, primary) = self.rng.pick(&quorums).unwrap_or((1, 1));
        let quorum = Quorum { any, primary };
        let write = is_put.then(|| self.begin_write(node, key, primary));
        let expected = self.oracle.expected(key, class.n, primary);
        self.requests += 1;
        let request = self.requests;
        let time = self.rng.within(500, 8 * SECOND);
        let asked = Request {
            key,
            class,
            write,
            quorum,
            attempt: 0,
            entry: 0,
            sets: Vec::new(),
            counted: BTreeMap::new(),
            stored: BTreeSet::new(),
            expected,
            until: self.now + time,
        };
        if let Some(member) = self.members.get_mut(&node) {
            member.requests.insert(request, asked);
        }
        self.at(time, Event::Expire { node, request });
        self.attempt_in(node, request, sets);
    }

    /// A write replaces what its coordinator has, or is a sibling of it. A deletion needs a value.
    fn begin_write(&mut self, node: NodeId, key: Key, primary: u32) -> u32 {
        let bit = self.oracle.begin_write(key, primary);
        let held = self.members.get(&node).map_or(0, |member| member.kept_copy(&self.shared, key));
        let can_delete = self.shared.has_marks && self.shared.values(key, held) != 0;
        let is_delete = can_delete && self.rng.percent(60);
        let seen = if is_delete || self.shared.has_marks && self.rng.percent(50) { held } else { 0 };
        self.shared.events[key].push(Effect { seen, is_delete });
        bit
    }

    /// Who serves the positions, as a member believes.
    fn positions(&mut self, node: NodeId, class: Class) -> Vec<Vec<(NodeId, NodeId)>> {
        let wrong: BTreeSet<NodeId> = self.members.keys().copied().collect();
        let is_deaf = self.members.get(&node).is_some_and(|member| member.deaf_until > self.now);
        let errors = if is_deaf { 20 } else { 8 };
        let wrong: BTreeSet<NodeId> = wrong.into_iter().filter(|_| self.rng.percent(errors)).collect();
        let Some(member) = self.members.get(&node) else { return Vec::new() };
        let view = member.view(&self.shared);
        let serves = |peer: NodeId, is_owner: bool| {
            let may_stand_in = match view.status(peer) {
                None => return false,
                Some(MemberStatus::Leaving | MemberStatus::Exiting) => false,
                Some(_) => !self.shared.has_marks || view.home(class).is_known_to_all(peer),
            };
            let is_up = self.is_alive(peer) && !self.is_cut(node, peer);
            peer == node && is_owner || (is_owner || may_stand_in) && is_up != (wrong.contains(&peer) && peer != node)
        };
        view.positions(class, &serves)
    }

    /// Chooses the replicas by what the coordinator knows now, and asks all of them.
    pub fn attempt(&mut self, node: NodeId, request: u64) {
        let Some(class) = self.request(node, request).map(|asked| asked.class) else { return };
        let sets = self.positions(node, class);
        self.attempt_in(node, request, sets);
    }

    fn attempt_in(&mut self, node: NodeId, request: u64, sets: Vec<Vec<(NodeId, NodeId)>>) {
        let Some(class) = self.request(node, request).map(|asked| asked.class) else { return };
        let Some(member) = self.members.get_mut(&node) else { return };
        let known = member.known;
        let asked_key = class_key(&member.requests, request);
        let held = member.kept_copy(&self.shared, asked_key);
        let is_full = member.is_full(class.home, class.n);
        let Some(asked) = member.requests.get_mut(&request) else { return };
        let is_late = self.now >= asked.until && !self.shared.is_broken(Broken::TriesAfterItsTime);
        if asked.attempt == 6 || is_late {
            return;
        }
        (asked.attempt, asked.entry, asked.sets) = (asked.attempt + 1, known, sets);
        asked.counted.clear();
        let peers = asked.asked();
        let (attempt, key, write) = (asked.attempt, asked.key, asked.write);
        let copy = held | write.map_or(0, |bit| 1 << bit);
        let serves_itself = peers.contains(&node);
        if serves_itself && (write.is_some() || copy != 0 || is_full) {
            asked.counted.insert(node, copy);
        }
        if write.is_some() {
            // A coordinator that serves no position any more keeps a foreign copy.
            asked.stored.insert(node);
            member.merge(&self.shared, key, copy);
        }
        let (stamp, read_at) = (self.shared.log[known].number(), self.now);
        let losses = self.known_losses(node);
        for peer in peers.into_iter().filter(|peer| *peer != node) {
            if self.is_outdated(node, losses) {
                break;
            }
            let message = match write {
                Some(_) => Message::Write { request, attempt, key, copy, stamp, read_at },
                None => Message::Read { request, attempt, key, stamp },
            };
            self.send(node, peer, message);
        }
        self.end_if_met(node, request);
    }

    pub fn written(&mut self, node: NodeId, from: NodeId, request: u64, attempt: u32, newer: Option<usize>) {
        self.learn(node, newer);
        let Some(asked) = self.request(node, request) else { return };
        asked.stored.insert(from);
        if asked.attempt != attempt {
            return;
        }
        if newer.is_some() {
            return self.attempt(node, request);
        }
        asked.counted.insert(from, 0);
        self.end_if_met(node, request);
    }

    pub fn end_if_met(&mut self, node: NodeId, request: u64) {
        let broken = self.shared.broken;
        let Some(asked) = self.members.get(&node).and_then(|member| member.requests.get(&request)) else { return };
        if asked.is_met(&self.shared.log[asked.entry], broken) {
            self.end_put_or_get(node, request, true);
        }
    }

    pub fn end_put_or_get(&mut self, node: NodeId, request: u64, is_met: bool) {
        let Some(member) = self.members.get_mut(&node) else { return };
        let Some(asked) = member.requests.remove(&request) else { return };
        let Some(bit) = asked.write else {
            if is_met {
                self.oracle.check_get(&asked, node);
            }
            return;
        };
        let primaries = member.view(&self.shared).primaries(asked.class);
        if primaries.contains(&node) && member.copy(asked.key) != 0 {
            member.owed.extend(primaries.difference(&asked.stored).map(|peer| (asked.key, *peer)));
        }
        if is_met {
            let is_by_all = asked
                .sets
                .iter()
                .flatten()
                .all(|(serving, owner)| serving == owner && asked.counted.contains_key(serving));
            self.oracle.acknowledge(asked.key, bit, is_by_all);
            self.oracle.check_key(&self.shared, &self.members, asked.key, "a put was acknowledged");
        }
    }
}

fn class_key(requests: &BTreeMap<u64, Request>, request: u64) -> Key {
    requests.get(&request).map_or(0, |asked| asked.key)
}
