//! Random histories of conditional puts of one key (docs/design/replication.md §17).
//!
//! Several coordinators write over the primaries of the key. Messages are lost, doubled, late and
//! out of order. Processes are killed, also between two steps of a put. A machine loses its
//! unsynced tail, after which its primary does not count until it was compared with all others.
//! Clocks are apart and jump. Copies pass between primaries at any time, as read repair and
//! transfers pass them.
//!
//! After each step: of two acknowledged puts one has seen the other; and if all copies are merged
//! and reduced to one sibling, no acknowledged value is hidden by a put that has not seen it. The
//! second holds only where every put is conditional.

use crate::conditional::{Admission, Answered, Ballot, Ballots, MajorityRead, Outcome, is_expected, majority};
use crate::coordination::{CountedSets, Replica};
use crate::deliberate_faults::{BrokenRule, break_rule, is_broken};
use crate::requests::PutCondition;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Dot, NodeId, Object, Sibling, VectorClock};
use std::path::Path;
use std::sync::Arc;

/// The positions of each node.
const CLUSTERS: [&[u32]; 6] = [&[1], &[1, 1], &[1, 1, 1], &[2, 1], &[1, 1, 1, 1, 1], &[2, 2, 1]];
const STEPS: u64 = 160;
const PUTS_MAX: usize = 10;
const BALLOTS_MAX: u32 = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    fn at(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }
}

struct Node {
    owner: Replica,
    fs: Arc<FaultyFs>,
    ballots: Ballots,
    /// How far its clock is ahead, in microseconds.
    ahead_us: u64,
    copy: Option<Object>,
    synced: Option<Object>,
    is_full: bool,
}

impl Node {
    fn admits(&self, ballot: Ballot) -> Result<(), UnixMicros> {
        loop {
            match self.ballots.admit(0, b"k", ballot) {
                Admission::Admitted => return Ok(()),
                Admission::Outbid(by) => return Err(by),
                Admission::NeedsDisk => self.ballots.make_room(ballot).unwrap(),
            }
        }
    }

    fn take(&mut self, copy: Object) {
        match &mut self.copy {
            Some(own) => {
                let _merged = own.merge(copy);
            }
            none => *none = Some(copy),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asking,
    Storing,
    Acknowledged,
    Failed,
}

struct Put {
    coordinator: usize,
    condition: PutCondition,
    read: MajorityRead,
    tries: u32,
    state: State,
    /// The version that its coordinator stored, and the event in it.
    version: Option<(Object, Dot)>,
    accepted: Vec<usize>,
}

#[derive(Clone)]
enum Message {
    Ask { to: usize, put: usize, ballot: Ballot },
    Answer { from: usize, put: usize, ballot: Ballot, head: Option<Object>, full: bool, outbid: Option<UnixMicros> },
    Store { to: usize, put: usize, ballot: Ballot },
    Stored { from: usize, put: usize },
}

struct History {
    random: Random,
    now_us: u64,
    nodes: Vec<Node>,
    n: u32,
    puts: Vec<Put>,
    messages: Vec<Message>,
    /// Puts without a condition occur, too.
    is_mixed: bool,
    events: u64,
    /// Acknowledged puts, and those that began.
    acknowledged: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let positions = CLUSTERS[random.at(CLUSTERS.len())];
        let now_us = 1_000_000_000;
        let nodes = (0u64..).zip(positions).map(|(number, &positions)| {
            let (fs, ahead_us) = (FaultyFs::new(number), random.below(2_000_000));
            let ballots = open(&fs, UnixMicros(now_us + ahead_us));
            let owner = Replica::primary(NodeId::new(number + 1), positions);
            Node { owner, fs, ballots, ahead_us, copy: None, synced: None, is_full: true }
        });
        let nodes: Vec<Node> = nodes.collect();
        let (n, is_mixed) = (positions.iter().sum(), random.below(3) == 0);
        Self { random, now_us, nodes, n, puts: vec![], messages: vec![], is_mixed, events: 0, acknowledged: 0 }
    }

    fn clock_of(&self, node: usize) -> UnixMicros {
        UnixMicros(self.now_us + self.nodes[node].ahead_us)
    }

    fn some_node(&mut self) -> usize {
        self.random.at(self.nodes.len())
    }

    fn step(&mut self) -> Result<(), String> {
        self.now_us += self.random.below(100_000);
        match self.random.below(40) {
            0..=4 => self.begin(),
            5 => self.kill(),
            6 => self.lose_power(),
            7 => self.fill(),
            8 => self.push(),
            9 => self.sync(),
            10 => self.jump(),
            11 => self.time_out(),
            12 if self.is_mixed => self.put_without_condition(),
            _ => self.message(),
        }
        self.check()
    }

    fn begin(&mut self) {
        if self.puts.len() == PUTS_MAX {
            return;
        }
        let (reader, coordinator) = (self.some_node(), self.some_node());
        let condition = match &self.nodes[reader].copy {
            Some(copy) if self.random.below(4) > 0 => PutCondition::IfNotModified(copy.clock.clone()),
            _ => PutCondition::IfNoneMatch,
        };
        let read = self.read_of(UnixMicros(0), coordinator);
        let (accepted, state) = (vec![], State::Asking);
        self.puts.push(Put { coordinator, condition, read, tries: 0, state, version: None, accepted });
        self.ask(self.puts.len() - 1);
    }

    fn read_of(&mut self, later_than: UnixMicros, coordinator: usize) -> MajorityRead {
        let stamp = self.clock_of(coordinator).max(UnixMicros(later_than.0 + 1));
        let owners: Vec<Replica> = self.nodes.iter().map(|node| node.owner).collect();
        let ballot = Ballot { stamp, number: self.random.below(u64::MAX) };
        MajorityRead::new(ballot, self.n, &owners, CountedSets::One)
    }

    fn ask(&mut self, put: usize) {
        let ballot = self.puts[put].read.ballot;
        self.messages.extend((0..self.nodes.len()).map(|to| Message::Ask { to, put, ballot }));
    }

    fn message(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        let at = self.random.at(self.messages.len());
        let message = match self.random.below(12) {
            0 => return drop(self.messages.swap_remove(at)),
            1 => self.messages[at].clone(),
            _ => self.messages.swap_remove(at),
        };
        match message {
            Message::Ask { to, put, ballot } => {
                let node = &self.nodes[to];
                let newest = node.copy.as_ref().and_then(Object::last_modified).filter(|at| *at >= ballot.stamp);
                let outbid = newest.or_else(|| node.admits(ballot).err());
                let (head, full) = (node.copy.clone(), node.is_full);
                self.messages.push(Message::Answer { from: to, put, ballot, head, full, outbid });
            }
            Message::Answer { from, put, ballot, head, full, outbid } => {
                let (owner, of) = (self.nodes[from].owner, &mut self.puts[put]);
                if of.state != State::Asking || of.read.ballot != ballot {
                    return;
                }
                let outcome = of.read.on_answer(owner, Some(Answered { head, full, outbid }));
                self.answered(put, outcome);
            }
            Message::Store { to, put, ballot } => self.store(to, put, ballot),
            Message::Stored { from, put } => self.stored(from, put),
        }
    }

    fn answered(&mut self, put: usize, outcome: Outcome) {
        match outcome {
            Outcome::Open => {}
            Outcome::TooFew { .. } => self.puts[put].state = State::Failed,
            Outcome::Outbid(by) => {
                self.puts[put].tries += 1;
                if self.puts[put].tries == BALLOTS_MAX {
                    self.puts[put].state = State::Failed;
                    return;
                }
                self.puts[put].read = self.read_of(by, self.puts[put].coordinator);
                self.ask(put);
            }
            Outcome::Promised => self.coordinate(put),
        }
    }

    /// The promises are there: the coordinator checks the condition and stores first.
    fn coordinate(&mut self, put: usize) {
        let of = &self.puts[put];
        let (ballot, here) = (of.read.ballot, of.coordinator);
        let mut seen = of.read.seen.clone();
        seen.keep_newest();
        let found = Some(&seen).filter(|seen| !seen.siblings.is_empty());
        let node = &self.nodes[here];
        let local = node.copy.as_ref();
        let is_older = local.and_then(Object::last_modified).is_none_or(|newest| newest < ballot.stamp);
        if of.condition.check(found, UnixMicros(0)).is_err()
            || !is_older
            || !is_expected(local, &seen.clock, None, UnixMicros(0))
            || node.admits(ballot).is_err()
        {
            self.puts[put].state = State::Failed;
            return;
        }
        let stamp = if is_broken(BrokenRule::BallotsDateValues) { self.clock_of(here) } else { ballot.stamp };
        let (version, dot) = self.new_version(here, seen.clock, stamp);
        self.nodes[here].copy = Some(version.clone());
        self.puts[put].version = Some((version, dot));
        self.puts[put].state = State::Storing;
        let others = (0..self.nodes.len()).filter(|to| *to != here);
        self.messages.extend(others.map(|to| Message::Store { to, put, ballot }));
        self.stored(here, put);
    }

    /// The version of a write that has seen `seen`, which replaces the copy of a node.
    fn new_version(&mut self, here: usize, seen: VectorClock, stamp: UnixMicros) -> (Object, Dot) {
        self.events += 1;
        let actor = Actor::new(&self.events.to_be_bytes());
        let mut sibling = Sibling::new(self.events.to_be_bytes().to_vec());
        sibling.meta.last_modified = Some(stamp);
        let mut local = self.nodes[here].copy.clone();
        if let Some(local) = &mut local {
            local.siblings.clear();
        }
        let version = Object::coordinate(local, Object { clock: seen, siblings: vec![sibling] }, &actor, stamp, true);
        let dot = version.siblings[0].meta.dot.clone().unwrap();
        (version, dot)
    }

    fn store(&mut self, to: usize, put: usize, ballot: Ballot) {
        let of = &self.puts[put];
        let Some((version, _)) = &of.version else { return };
        let node = &mut self.nodes[to];
        if of.read.excluded.contains(&node.owner.node) {
            // It does not count, and merges like any other copy.
            return node.take(version.clone());
        }
        let is_expected = is_expected(node.copy.as_ref(), &of.read.seen.clock, Some(&version.clock), UnixMicros(0));
        if is_expected && node.is_full && node.admits(ballot).is_ok() {
            node.take(version.clone());
            self.messages.push(Message::Stored { from: to, put });
        }
    }

    fn stored(&mut self, from: usize, put: usize) {
        let of = &mut self.puts[put];
        if of.state != State::Storing || of.accepted.contains(&from) {
            return;
        }
        of.accepted.push(from);
        let counts = |node: &usize| {
            let owner = self.nodes[*node].owner;
            if of.read.excluded.contains(&owner.node) { 0 } else { owner.primaries }
        };
        if of.accepted.iter().map(counts).sum::<u32>() >= majority(self.n) {
            of.state = State::Acknowledged;
            self.acknowledged += 1;
        }
    }

    /// Ends a process. What it coordinated ends with it, and what it sent is on its way.
    fn kill(&mut self) {
        let node = self.some_node();
        self.restart(node, Loss::Nothing);
    }

    fn restart(&mut self, node: usize, loss: Loss) {
        let now = self.clock_of(node);
        let stopped = &mut self.nodes[node];
        stopped.fs = stopped.fs.restart(loss);
        stopped.ballots = open(&stopped.fs, now);
        for put in self.puts.iter_mut().filter(|put| put.coordinator == node && put.state != State::Acknowledged) {
            put.state = State::Failed;
        }
    }

    /// A machine loses what it has not synced. Where that may be the only copy of an acknowledged
    /// value, nothing could keep the promise.
    fn lose_power(&mut self) {
        let node = self.some_node();
        let keeps_majority = self.nodes.len() == self.n as usize && self.n > 1;
        if keeps_majority && self.nodes.iter().all(|node| node.is_full) {
            self.restart(node, Loss::Everything);
            self.nodes[node].copy = self.nodes[node].synced.clone();
            self.nodes[node].is_full = false;
        }
    }

    /// Compares a primary that lacks something with all others.
    fn fill(&mut self) {
        let Some(filling) = self.nodes.iter().position(|node| !node.is_full) else { return };
        let copies: Vec<Object> = self.nodes.iter().filter_map(|node| node.copy.clone()).collect();
        copies.into_iter().for_each(|copy| self.nodes[filling].take(copy));
        self.nodes[filling].is_full = true;
    }

    fn push(&mut self) {
        let (from, to) = (self.some_node(), self.some_node());
        if let Some(copy) = self.nodes[from].copy.clone() {
            self.nodes[to].take(copy);
        }
    }

    fn sync(&mut self) {
        let node = self.some_node();
        self.nodes[node].synced = self.nodes[node].copy.clone();
    }

    fn jump(&mut self) {
        let (node, ahead_us) = (self.some_node(), self.random.below(4_000_000));
        self.nodes[node].ahead_us = ahead_us;
    }

    fn time_out(&mut self) {
        let waits = |put: &&mut Put| matches!(put.state, State::Asking | State::Storing);
        if let Some(put) = self.puts.iter_mut().find(waits) {
            put.state = State::Failed;
        }
    }

    fn put_without_condition(&mut self) {
        let node = self.some_node();
        let seen = if self.random.below(2) == 0 { VectorClock::new() } else { self.clock_at(node) };
        let stamp = self.clock_of(node);
        let (version, _) = self.new_version(node, seen, stamp);
        self.nodes[node].copy = Some(version);
    }

    fn clock_at(&self, node: usize) -> VectorClock {
        self.nodes[node].copy.as_ref().map_or_else(VectorClock::new, |copy| copy.clock.clone())
    }

    fn check(&self) -> Result<(), String> {
        let acknowledged = || self.puts.iter().filter(|put| put.state == State::Acknowledged);
        let has_seen = |a: &Put, b: &Put| match (&a.version, &b.version) {
            (Some((a, _)), Some((_, dot))) => a.clock.contains(dot),
            _ => false,
        };
        for (at, a) in acknowledged().enumerate() {
            if let Some(b) = acknowledged().skip(at + 1).find(|b| !has_seen(a, b) && !has_seen(b, a)) {
                return Err(format!("{:?} and {:?} are acknowledged", a.version, b.version));
            }
        }
        if self.is_mixed {
            return Ok(());
        }
        let mut whole = Object::default();
        self.nodes.iter().filter_map(|node| node.copy.clone()).for_each(|copy| {
            let _merged = whole.merge(copy);
        });
        whole.keep_newest();
        let shown = whole.siblings.first().and_then(|sibling| sibling.meta.dot.as_ref());
        let is_shown = |put: &&Put| {
            put.version
                .as_ref()
                .is_some_and(|(_, dot)| shown.is_some_and(|s| (&s.actor, s.counter) == (&dot.actor, dot.counter)))
        };
        let winner = self.puts.iter().find(is_shown);
        match acknowledged().find(|put| winner.is_none_or(|winner| !has_seen(winner, put))) {
            Some(hidden) => Err(format!("{:?} is hidden by {:?}", hidden.version, winner.map(|put| &put.version))),
            None => Ok(()),
        }
    }
}

fn open(fs: &Arc<FaultyFs>, now: UnixMicros) -> Ballots {
    let fs: Arc<dyn FileSystem> = fs.clone();
    Ballots::open(fs, Path::new("/"), now).unwrap()
}

/// Runs a history. Returns the numbers of acknowledged puts and of puts.
fn run(seed: u64) -> Result<(usize, usize), String> {
    let mut history = History::new(seed);
    for step in 0..STEPS {
        history.step().map_err(|why| format!("history {seed}, step {step}: {why}"))?;
    }
    Ok((history.acknowledged, history.puts.len()))
}

#[test]
fn of_competing_puts_at_most_one_is_acknowledged_and_none_is_hidden() {
    let (mut acknowledged, mut begun) = (0, 0);
    for seed in 1..=10_000 {
        let (of, all) = run(seed).unwrap_or_else(|why| panic!("{why}"));
        (acknowledged, begun) = (acknowledged + of, begun + all);
    }
    assert!(acknowledged > 10_000, "{acknowledged} of {begun} puts were acknowledged");
}

#[test]
fn without_any_of_the_rules_a_history_fails() {
    for rule in [BrokenRule::BallotsAreKept, BrokenRule::BallotsOutliveRestarts, BrokenRule::BallotsDateValues] {
        break_rule(Some(rule));
        let failed = (1..=10_000).map(run).find_map(Result::err);
        break_rule(None);
        assert!(failed.is_some(), "no history shows that {rule:?}");
    }
}
