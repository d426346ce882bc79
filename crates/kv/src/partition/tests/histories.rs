//! Tests the rules of actors and epochs with random histories of one key on three nodes
//! (docs/design/replication.md §7). A step that destroys nothing must not lose a value that no
//! write had seen. Without any one of the first three rules, some history loses such a value.

use crate::partition::event_ids::{ActorSource, Ticket};
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Object, Sibling, VectorClock};
use std::collections::{BTreeMap, BTreeSet};

/// The rule that a history is run without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The node continues with the same actor after a start with a store that was set back.
    FreshActor,
    /// The first event on a key takes no new epoch.
    FreshEpoch,
    Floor,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// One node loses the key.
    Forget,
    /// A node starts with an earlier state of its store.
    SetBack,
}

struct Node {
    number: u64,
    without: Without,
    starts: u64,
    actors: ActorSource,
    floor: Ticket,
    object: Option<Object>,
    earlier: Vec<Option<Object>>,
}

impl Node {
    fn new(number: u64, without: Without) -> Self {
        let actors = ActorSource::new(number << 32);
        Self { number, without, starts: 0, actors, floor: 0, object: None, earlier: Vec::new() }
    }

    fn actor(&self, seen: &VectorClock) -> Actor {
        let local = self.object.as_ref().map(|o| &o.clock);
        let floor = if self.without == Without::Floor { 0 } else { self.floor };
        match (self.without, local) {
            // An actor with a fixed epoch for existing keys, as if that epoch had always been in
            // use.
            (Without::FreshEpoch, Some(local)) if local.entries().iter().all(|e| !self.is_own(&e.actor)) => {
                ActorSource::starting_at(self.actors.id(), 0).new_epoch()
            }
            _ => self.actors.actor_for_event(local, seen, floor),
        }
    }

    fn is_own(&self, actor: &Actor) -> bool {
        actor.as_bytes().starts_with(&self.actors.id().to_be_bytes())
    }

    fn coordinate(&mut self, seen: VectorClock, value: u32) -> Object {
        let actor = self.actor(&seen);
        let incoming = Object { clock: seen, siblings: vec![Sibling::new(value.to_be_bytes().to_vec())] };
        let object = Object::coordinate(self.object.take(), incoming, &actor, UnixMicros(0), true);
        self.object = Some(object.clone());
        object
    }

    fn receive(&mut self, copy: &Object) {
        if self.actors.has_forgotten_event(self.object.as_ref().map(|o| &o.clock), &copy.clock) {
            self.floor = self.floor.max(self.actors.next_ticket());
        }
        match &mut self.object {
            None => self.object = Some(copy.clone()),
            Some(local) => {
                local.merge(copy.clone());
            }
        }
    }

    fn set_back(&mut self, to: Option<Object>) {
        self.object = to;
        self.starts += 1;
        // The process memory is lost in both cases; rule 1 is about the actor.
        let id = if self.without == Without::FreshActor { 0 } else { self.starts };
        self.actors = ActorSource::new((self.number << 32) + id);
        self.floor = 0;
    }
}

/// xorshift64*. The seed determines the history.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

fn values(object: Option<&Object>) -> BTreeSet<u32> {
    let of = |s: &Sibling| u32::from_be_bytes(s.value[..].try_into().unwrap());
    object.map(|o| o.siblings.iter().map(of).collect()).unwrap_or_default()
}

fn held(nodes: &[Node]) -> BTreeSet<u32> {
    nodes.iter().flat_map(|n| values(n.object.as_ref())).collect()
}

/// Runs one history. Returns true when it lost a value that no write had seen.
fn loses(seed: u64, without: Without, faults: &[Fault], steps: usize) -> bool {
    let mut random = Random::new(seed);
    let mut nodes: Vec<Node> = (1..=3).map(|i| Node::new(i, without)).collect();
    let mut superseded: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let mut messages: Vec<Object> = Vec::new();
    for _ in 0..steps {
        let mut before = held(&nodes);
        let at = random.below(3);
        let mut destroys = false;
        match random.below(6 + faults.len()) {
            0..=2 => {
                let value = superseded.len() as u32 + 1;
                let source = random.below(5);
                let seen = nodes.get(source).and_then(|n| n.object.clone());
                superseded.insert(value, values(seen.as_ref()));
                let object = nodes[at].coordinate(seen.map(|o| o.clock).unwrap_or_default(), value);
                before.insert(value);
                for other in (0..3).filter(|other| *other != at) {
                    if random.below(10) < 4 {
                        nodes[other].receive(&object);
                    }
                }
                messages.push(object);
            }
            3 | 4 => {
                let to = random.below(3);
                if let Some(object) = nodes[at].object.clone().filter(|_| to != at) {
                    nodes[to].receive(&object);
                }
            }
            5 if !messages.is_empty() => {
                let late = messages[random.below(messages.len())].clone();
                nodes[at].receive(&late);
            }
            5 => {}
            fault => {
                destroys = true;
                match faults[fault - 6] {
                    Fault::Forget => nodes[at].object = None,
                    Fault::SetBack if !nodes[at].earlier.is_empty() => {
                        let to = random.below(nodes[at].earlier.len());
                        let to = nodes[at].earlier[to].clone();
                        nodes[at].set_back(to);
                    }
                    Fault::SetBack => {}
                }
            }
        }
        let now = nodes[at].object.clone();
        nodes[at].earlier.push(now);
        if !destroys {
            let seen: BTreeSet<u32> = superseded.values().flatten().copied().collect();
            let kept = held(&nodes);
            if before.iter().any(|v| !kept.contains(v) && !seen.contains(v)) {
                return true;
            }
        }
    }
    false
}

fn any_loses(histories: u64, without: Without, faults: &[Fault], steps: usize) -> bool {
    (0..histories).any(|seed| loses(seed, without, faults, steps))
}

#[test]
fn no_history_loses_a_value() {
    for faults in [&[Fault::Forget][..], &[Fault::SetBack], &[Fault::Forget, Fault::SetBack]] {
        assert!(!any_loses(10_000, Without::Nothing, faults, 14));
        assert!(!any_loses(1_000, Without::Nothing, faults, 40));
    }
}

#[test]
fn every_rule_is_needed() {
    let both = [Fault::Forget, Fault::SetBack];
    for without in [Without::FreshActor, Without::FreshEpoch, Without::Floor] {
        let lost = any_loses(30_000, without, &both, 14) || any_loses(8_000, without, &both, 40);
        assert!(lost, "{without:?} is not needed, or the histories are too tame");
    }
}
