//! Tests of the whole rule: connections of all kinds use one budget, without threads and clocks.

use super::*;
use proptest::prelude::*;

const BYTES_MAX: u64 = 64_000;
const STALLED_MS: u64 = 100;
const FIRST_BYTES: u64 = 100;
const SMALL_BYTES: u64 = BYTES_MAX / SMALL_SHARE / 2;

/// The behaviour of a peer.
#[derive(Clone, Debug)]
struct Script {
    begins_ms: u64,
    /// The bytes of the whole request.
    bytes: u64,
    /// The bytes that the peer sends. If they are fewer than all, the peer stalls after them.
    sent_bytes: u64,
    bytes_per_ms: u64,
    /// How long the node works on the request after it has arrived.
    work_ms: u64,
}

impl Script {
    fn honest(begins_ms: u64, bytes: u64) -> Self {
        Self { begins_ms, bytes, sent_bytes: bytes, bytes_per_ms: 100, work_ms: 1 }
    }

    fn stalling(begins_ms: u64, bytes: u64, sent_bytes: u64) -> Self {
        Self { sent_bytes, ..Self::honest(begins_ms, bytes) }
    }

    fn is_honest(&self) -> bool {
        self.sent_bytes == self.bytes
    }

    /// The longest time for which such a connection can keep all others waiting.
    fn busy_ms(&self) -> u64 {
        const ASKS_MAX: u64 = 20;
        self.sent_bytes / self.bytes_per_ms + self.work_ms + STALLED_MS + 4 * ASKS_MAX
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    NotYet,
    Receiving { progress_ms: u64 },
    Asking { bytes: u64 },
    Working { until_ms: u64 },
    Done,
    Ended,
}

/// A connection as the interfaces serve it. Its memory doubles while the request arrives.
struct Connection {
    number: u64,
    script: Script,
    peer: Arc<Peer>,
    held: u64,
    received: u64,
    state: State,
    /// The number of connections that began to hold memory or to ask for it before this one.
    began: u64,
}

impl Connection {
    fn new(number: u64, script: Script) -> Self {
        Self { number, script, peer: Arc::default(), held: 0, received: 0, state: State::NotYet, began: 0 }
    }

    fn step(&mut self, holders: &mut Holders, now_ms: u64, begun: &mut u64) {
        if self.peer.is_told_to_end() {
            return self.leave(holders, State::Ended);
        }
        match self.state {
            State::NotYet if now_ms >= self.script.begins_ms => {
                *begun += 1;
                self.began = *begun;
                self.grow(holders, now_ms);
            }
            State::Asking { bytes } if holders.take(self.number, &self.peer, bytes) => {
                holders.ask_no_more(self.number);
                self.has_grown(holders, bytes, now_ms);
            }
            State::Receiving { .. } => self.receive(holders, now_ms),
            State::Working { until_ms } if now_ms >= until_ms => self.leave(holders, State::Done),
            _ => {}
        }
    }

    /// The old memory is held until its bytes have been moved to the new memory.
    fn grow(&mut self, holders: &mut Holders, now_ms: u64) {
        self.peer.is_served();
        let bytes = self.script.bytes.min((2 * self.held).max(FIRST_BYTES));
        if holders.take(self.number, &self.peer, bytes) {
            return self.has_grown(holders, bytes, now_ms);
        }
        assert!(holders.ask(self.number, &self.peer, bytes));
        self.state = State::Asking { bytes };
    }

    fn has_grown(&mut self, holders: &mut Holders, bytes: u64, now_ms: u64) {
        holders.give(self.number, self.held);
        self.held = bytes;
        self.peer.stalls_since(now_ms);
        self.state = State::Receiving { progress_ms: now_ms };
    }

    fn receive(&mut self, holders: &mut Holders, now_ms: u64) {
        let room = self.held.min(self.script.sent_bytes) - self.received;
        if room > 0 {
            self.received += room.min(self.script.bytes_per_ms);
            self.peer.stalls_since(now_ms);
            self.state = State::Receiving { progress_ms: now_ms };
        }
        if self.received == self.script.bytes {
            self.peer.is_served();
            self.state = State::Working { until_ms: now_ms + self.script.work_ms };
        } else if self.received == self.held && self.received < self.script.sent_bytes {
            self.grow(holders, now_ms);
        }
    }

    fn leave(&mut self, holders: &mut Holders, state: State) {
        if let State::Asking { .. } = self.state {
            holders.ask_no_more(self.number);
        }
        holders.give(self.number, self.held);
        (self.held, self.state) = (0, state);
    }

    fn is_stalled(&self, now_ms: u64) -> bool {
        matches!(self.state, State::Receiving { progress_ms } if now_ms - progress_ms >= STALLED_MS)
    }

    fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking { .. })
    }

    /// Whether the connection stays as it is unless others need its memory.
    fn is_settled(&self) -> bool {
        match self.state {
            State::Done | State::Ended => true,
            State::Receiving { .. } => self.received == self.script.sent_bytes,
            _ => false,
        }
    }

    fn place(&self) -> (bool, u64) {
        let asked = if let State::Asking { bytes } = self.state { bytes } else { 0 };
        (self.held + asked > BYTES_MAX / SMALL_SHARE, self.began)
    }
}

struct World {
    holders: Holders,
    connections: Vec<Connection>,
    now_ms: u64,
    begun: u64,
}

impl World {
    fn new(scripts: Vec<Script>) -> Self {
        let mut world = Self { holders: Holders::new(BYTES_MAX), connections: Vec::new(), now_ms: 1_000, begun: 0 };
        scripts.into_iter().for_each(|script| world.add(script));
        world
    }

    fn add(&mut self, mut script: Script) {
        script.begins_ms += self.now_ms;
        self.connections.push(Connection::new(self.connections.len() as u64, script));
    }

    /// Lets time pass until connections wait only for peers that send nothing more.
    fn settle(&mut self) {
        let last_begin_ms = self.connections.iter().map(|c| c.script.begins_ms).max().unwrap_or(0);
        let busy_ms: u64 = self.connections.iter().map(|c| c.script.busy_ms()).sum();
        let end_ms = self.now_ms.max(last_begin_ms) + busy_ms;
        while !self.connections.iter().all(Connection::is_settled) {
            assert!(self.now_ms < end_ms, "they wait for each other");
            self.pass_one_ms();
        }
    }

    fn pass_one_ms(&mut self) {
        self.now_ms += 1;
        for connection in &mut self.connections {
            connection.step(&mut self.holders, self.now_ms, &mut self.begun);
        }
        let held: u64 = self.connections.iter().map(|c| c.held).sum();
        assert_eq!(self.holders.bytes_used(), held);
        assert!(held <= BYTES_MAX);
        let waiting = self.connections.iter().filter(|c| c.is_asking()).count();
        assert_eq!(self.holders.waiting(), waiting);
        self.relieve();
    }

    /// A connection that is ended without a stall must have been among holders that all waited for
    /// each other.
    fn relieve(&mut self) {
        let is_told = |c: &Connection| c.peer.is_told_to_end();
        let told_before: Vec<bool> = self.connections.iter().map(is_told).collect();
        let count = self.holders.relieve(self.now_ms, STALLED_MS);
        let told: Vec<&Connection> = self
            .connections
            .iter()
            .zip(told_before)
            .filter(|(c, before)| !before && is_told(c))
            .map(|(c, _)| c)
            .collect();
        assert_eq!(told.len(), count);
        let now_ms = self.now_ms;
        let Some(smallest) = told.iter().filter(|c| !c.is_stalled(now_ms)).map(|c| c.held).min() else { return };
        let stay = || self.connections.iter().filter(|c| c.held > 0 && !is_told(c));
        for connection in stay().chain(told.iter().copied().filter(|c| !c.is_stalled(now_ms))) {
            assert!(connection.is_asking(), "one was ended although another could go on");
        }
        let in_line = || {
            self.connections
                .iter()
                .filter(|c| c.is_asking() && (!is_told(c) || told.iter().any(|t| t.number == c.number)))
        };
        let first = in_line().min_by_key(|c| c.place()).expect("somebody waits");
        assert!(!is_told(first), "the first in the line was ended");
        let first_large = in_line().filter(|c| c.place().0).min_by_key(|c| c.place());
        for connection in stay().filter(|c| c.number != first.number && Some(c.number) != first_large.map(|l| l.number))
        {
            assert!(connection.held <= smallest, "one was ended that held less than another");
        }
        if let Some(first_large) = first_large.filter(|c| is_told(c)) {
            assert!(
                stay().all(|c| c.number == first.number),
                "{first_large:?} was ended before others",
                first_large = first_large.number
            );
        }
    }

    fn state(&self, number: usize) -> State {
        self.connections[number].state
    }

    fn done(&self) -> usize {
        self.connections.iter().filter(|c| c.state == State::Done).count()
    }
}

fn script() -> impl Strategy<Value = Script> {
    // A request that grows to twice its size fits into the budget together with the memory from
    // which it is copied.
    let bytes = prop_oneof![1..SMALL_BYTES, 1..BYTES_MAX * 3 / 8];
    let sent_percent = prop_oneof![Just(100u64), 0..100u64];
    (0..500u64, bytes, sent_percent, 20..400u64, 0..50u64).prop_map(
        |(begins_ms, bytes, sent_percent, speed, work_ms)| Script {
            begins_ms,
            bytes,
            sent_bytes: bytes * sent_percent / 100,
            bytes_per_ms: speed,
            work_ms,
        },
    )
}

/// A large request that begins later.
fn enlarged(script: Script, later_ms: u64) -> Script {
    const MORE_BYTES: u64 = BYTES_MAX / 8;
    let sent_bytes = script.sent_bytes + if script.is_honest() { MORE_BYTES } else { 0 };
    Script { begins_ms: script.begins_ms + later_ms, bytes: script.bytes + MORE_BYTES, sent_bytes, ..script }
}

proptest! {
    /// `pass_one_ms` and `settle` check the rule.
    #[test]
    fn everybody_gets_on_or_is_ended_in_bounded_time(scripts in prop::collection::vec(script(), 1..24)) {
        let mut world = World::new(scripts);
        world.settle();
        for connection in &mut world.connections {
            let settled = matches!(connection.state, State::Done | State::Ended);
            prop_assert!(settled || !connection.script.is_honest());
            connection.leave(&mut world.holders, State::Ended);
        }
        prop_assert_eq!((world.holders.bytes_used(), world.holders.members.len()), (0, 0));
        prop_assert!(world.holders.line.is_empty());
    }

    #[test]
    fn a_small_request_succeeds_whatever_large_ones_do(scripts in prop::collection::vec(script(), 1..24), begins_ms in 0..500u64) {
        let large = scripts.into_iter().map(|script| enlarged(script, 0));
        let mut world = World::new(large.collect());
        world.add(Script::honest(begins_ms, SMALL_BYTES));
        world.settle();
        prop_assert_eq!(world.connections.last().map(|c| c.state), Some(State::Done));
    }

    #[test]
    fn the_large_request_that_began_first_succeeds(scripts in prop::collection::vec(script(), 1..24)) {
        let mut world = World::new(vec![Script::honest(0, BYTES_MAX / 2)]);
        let large = |script| enlarged(script, 1);
        scripts.into_iter().map(large).for_each(|script| world.add(script));
        world.settle();
        prop_assert_eq!(world.state(0), State::Done);
    }
}

#[test]
fn a_large_request_waits_until_those_who_stall_count_as_stalled() {
    let mut world = World::new((0..50).map(|_| Script::stalling(0, 60_000, 12_000)).collect());
    world.settle();
    // The peers have sent everything that they will send, some of them just now.
    assert!(world.connections.iter().any(|c| !c.is_stalled(world.now_ms) && c.held > 0));
    world.add(Script::honest(0, 20_000));
    world.settle();
    assert_eq!(world.state(50), State::Done);
}

#[test]
fn large_requests_that_wait_for_each_other_get_done_one_after_the_other() {
    let mut world = World::new((0..20).map(|_| Script::honest(0, 25_000)).collect());
    world.settle();
    assert_eq!(world.state(0), State::Done);
    assert!(world.done() >= 2, "{} of 20 requests got done", world.done());
}

#[test]
fn a_peer_that_pauses_is_not_ended_before_it_counts_as_stalled() {
    let mut holders = Holders::new(BYTES_MAX);
    let (pausing, asking) = (Arc::<Peer>::default(), Arc::<Peer>::default());
    assert!(holders.take(0, &pausing, 40_000) && holders.take(1, &asking, 20_000));
    pausing.stalls_since(7);
    assert!(holders.ask(1, &asking, 10_000));
    assert_eq!(holders.relieve(7 + STALLED_MS - 1, STALLED_MS), 0);
    assert_eq!(holders.relieve(7 + STALLED_MS, STALLED_MS), 1);
    assert!(pausing.is_told_to_end() && !asking.is_told_to_end());
}

#[test]
fn a_connection_that_waits_for_its_peer_does_not_keep_memory_from_those_behind_it() {
    let mut holders = Holders::new(BYTES_MAX);
    let (front, behind) = (Arc::<Peer>::default(), Arc::<Peer>::default());
    assert!(holders.take(0, &front, 50_000));
    assert!(holders.ask(0, &front, 20_000));
    assert!(!holders.take(1, &behind, 10_000));
    front.stalls_since(0);
    assert!(holders.take(1, &behind, 10_000));
    assert_eq!(holders.relieve(STALLED_MS - 1, STALLED_MS), 0);
}

#[test]
fn the_line_is_bounded() {
    let (mut holders, peer) = (Holders::new(BYTES_MAX), Arc::<Peer>::default());
    let accepted = |holders: &mut Holders, from: u64, bytes| {
        (from..from + 5_000).filter(|n| holders.ask(*n, &peer, bytes)).count()
    };
    assert_eq!(accepted(&mut holders, 0, 50_000), 1_000);
    assert_eq!(accepted(&mut holders, 10_000, 10), 1_000, "small ones have a bound of their own");
}
