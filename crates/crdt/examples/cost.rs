//! Measures what one request costs with a log, and what it costs if whole states are stored: the
//! figures of docs/design/datatypes.md. It leaves out the store and the network; it counts the
//! bytes that they would get.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a program that measures")]

use bytes::Bytes;
use ombak_crdt::{Field, FieldOp, FieldType, Log, MapOp, Offered, Precision, Record, Request, SetOp, State};
use ombak_types::clock::Dot;
use ombak_types::props::DataType;
use ombak_types::{Actor, VectorClock};
use std::time::{Duration, Instant};

const REPLICAS: usize = 3;

/// A copy in bytes, as a store has it.
struct Copy {
    base: Bytes,
    log: Bytes,
    segments: Vec<Bytes>,
    written: usize,
}

impl Copy {
    fn new(state: &State, clock: VectorClock) -> Self {
        Self { base: state.to_bytes(), log: Log::new(clock, state).to_bytes(), segments: Vec::new(), written: 0 }
    }

    fn log(&self) -> Log {
        Log::from_bytes(&self.log).unwrap()
    }

    fn state(&self, log: &Log) -> State {
        let mut state = State::from_bytes(&self.base).unwrap();
        log.fold_into(&mut state, &self.segments).unwrap();
        state
    }

    /// Appends a record, and seals and folds as a node does.
    fn append(&mut self, mut log: Log, record: &Record) {
        assert_eq!(log.offer(record), Offered::Taken);
        if log.must_seal() {
            self.segments.push(log.seal());
            self.written += self.segments.last().unwrap().len();
        }
        if log.must_fold(self.base.len()) {
            let state = self.state(&log);
            log = Log::new(log.clock().clone(), &state);
            self.base = state.to_bytes();
            self.segments.clear();
            self.written += self.base.len();
        }
        self.log = log.to_bytes();
        self.written += self.log.len();
    }
}

fn actor(replica: usize) -> Actor {
    Actor::new(&[b'a' + replica as u8; 12])
}

fn name(number: usize) -> Bytes {
    Bytes::from(format!("member-{number:09}"))
}

/// One put over all replicas. Returns the bytes between nodes.
fn put(copies: &mut [Copy], at: usize, request: &Request) -> usize {
    let (log, actor) = (copies[at].log(), actor(at));
    let quick = log.delta(request, Precision::DEFAULT, &actor, None);
    let delta = quick.unwrap_or_else(|| copies[at].state(&log).delta(request, &actor, None).unwrap());
    let dot = Dot { counter: log.clock().counter(&actor) + 1, actor, stamp_secs: 63_900_000_000 };
    let record = Record { before: log.clock().clone(), dot, delta };
    copies[at].append(log, &record);
    let message = record.to_bytes();
    for (_, copy) in copies.iter_mut().enumerate().filter(|(other, _)| *other != at) {
        let log = copy.log();
        copy.append(log, &Record::from_bytes(&message).unwrap());
    }
    message.len() * (copies.len() - 1)
}

/// A state with what many requests made of it, each at another replica.
fn built(kind: DataType, requests: impl Iterator<Item = Request>) -> State {
    let mut state = State::new(kind, Precision::DEFAULT);
    for (number, request) in requests.enumerate() {
        let delta = state.delta(&request, &actor(number % REPLICAS), None).unwrap();
        state.merge_delta(&delta).unwrap();
    }
    state
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

fn measure(title: &str, state: State, puts: usize, request: impl Fn(usize) -> Request) {
    let entry = |at| Dot { actor: actor(at), counter: 1_000_000, stamp_secs: 63_900_000_000 };
    let clock = VectorClock::from_entries((0..REPLICAS).map(entry));
    let bytes = state.to_bytes();
    println!("{title}: a state of {} KB, {} KB in Riak's form", bytes.len() >> 10, riak_len(&state) >> 10);

    let simple = 10;
    let begun = Instant::now();
    let mut whole = bytes.clone();
    for number in 0..simple {
        let mut state = State::from_bytes(&whole).unwrap();
        state.merge_delta(&state.delta(&request(number), &actor(0), None).unwrap()).unwrap();
        whole = state.to_bytes();
        for _ in 1..REPLICAS {
            let mut other = State::from_bytes(&bytes).unwrap();
            other.merge(&State::from_bytes(&whole).unwrap()).unwrap();
            std::hint::black_box(other.to_bytes());
        }
    }
    let (time, sent) = (micros(begun.elapsed(), simple), bytes.len() * (REPLICAS - 1));
    println!("  whole states: {time:8.0} us a put, {sent} B sent, {} B written on a replica", bytes.len());

    let mut copies: Vec<Copy> = (0..REPLICAS).map(|_| Copy::new(&state, clock.clone())).collect();
    let (begun, mut sent, mut longest) = (Instant::now(), 0, 0);
    for number in 0..puts {
        sent += put(&mut copies, number % REPLICAS, &request(number));
        longest = longest.max(copies[0].log().bytes());
    }
    let time = micros(begun.elapsed(), puts);
    let written = copies.iter().map(|copy| copy.written).max().unwrap() / puts;
    println!("  logs:         {time:8.0} us a put, {} B sent, {written} B written on a replica", sent / puts);

    // The longest log that a read meets.
    let mut copy = Copy::new(&state, clock);
    let mut alone = vec![copy];
    let mut number = puts;
    while alone[0].log().bytes() + 1_000 < longest {
        put(&mut alone, 0, &request(number));
        number += 1;
    }
    copy = alone.remove(0);
    let reads = 20;
    let begun = Instant::now();
    for _ in 0..reads {
        std::hint::black_box(State::from_bytes(&copy.base).unwrap().value());
    }
    let simple = micros(begun.elapsed(), reads);
    let begun = Instant::now();
    for _ in 0..reads {
        std::hint::black_box(copy.state(&copy.log()).value());
    }
    let logged = micros(begun.elapsed(), reads);
    println!("  a read: {simple:.0} us of a whole state, {logged:.0} us with a log of {} KB", copy.log().bytes() >> 10);
}

fn riak_len(state: &State) -> usize {
    ombak_crdt::RiakValue::of(state.clone(), ombak_crdt::RiakCounter::Typed).to_bytes().len()
}

fn main() {
    let add = |number: usize| Request::Set(vec![SetOp::Add(name(number))]);
    let set = built(DataType::Set, (0..100_000).map(add));
    measure("a set of 100,000 members", set, 20_000, |number| add(200_000 + number * 7_919 % 1_000_000));

    let field = |number: usize, kind| Field::new(name(number), kind);
    let assign = move |number: usize, time_us| {
        let op = FieldOp::Register { value: name(number), time_us };
        Request::Map(vec![MapOp::Update(field(number, FieldType::Register), op)])
    };
    let map = built(DataType::Map, (0..1_000).map(|number| assign(number, 1)));
    measure("a map of 1,000 registers", map, 5_000, |number| assign(number * 7_919 % 1_000, 2 + number as u64));

    let count = move |number: usize| {
        Request::Map(vec![MapOp::Update(field(number % 1_000, FieldType::Counter), FieldOp::Counter(1))])
    };
    let map = built(DataType::Map, (0..1_000).map(count));
    measure("a map of 1,000 counters", map, 5_000, |number| count(number * 7_919));
}
