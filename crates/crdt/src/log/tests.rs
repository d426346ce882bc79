//! Copies with logs against copies that merge whole states: they must be equal to the last dot.

use super::*;
use crate::testing::{actor, requests};
use crate::{Delta, HllDelta, Precision, Request, SetOp};
use ombak_types::clock::Dot;
use ombak_types::props::DataType;
use proptest::prelude::*;
use proptest::sample::Index;

const COPIES: usize = 3;

/// A copy as a store has it: everything in bytes.
#[derive(Clone)]
struct Stored {
    base: Bytes,
    log: Bytes,
    segments: Vec<Bytes>,
}

impl Stored {
    fn new(state: &State, clock: VectorClock) -> Self {
        let base = state.to_bytes();
        Self { log: Log::new(clock, state).to_bytes(), base, segments: Vec::new() }
    }

    fn log(&self) -> Log {
        Log::from_bytes(&self.log).unwrap()
    }

    fn state(&self) -> State {
        let mut state = State::from_bytes(&self.base).unwrap();
        self.log().fold_into(&mut state, &self.segments).unwrap();
        state
    }

    fn offer(&mut self, record: &Record) -> Offered {
        let mut log = self.log();
        let offered = log.offer(&Record::from_bytes(&record.to_bytes()).unwrap());
        self.log = log.to_bytes();
        offered
    }

    fn seal(&mut self) {
        let mut log = self.log();
        assert_eq!(log.segments(), self.segments.len() as u64);
        self.segments.push(log.seal());
        self.log = log.to_bytes();
    }

    fn fold(&mut self) {
        *self = Self::new(&self.state(), self.log().clock().clone());
    }

    fn merge_whole(&mut self, other: &Self) {
        let (mut state, mut clock) = (self.state(), self.log().clock().clone());
        state.merge(&other.state()).unwrap();
        clock.merge(other.log().clock());
        *self = Self::new(&state, clock);
    }
}

/// A copy that merges whole states only.
type Whole = (State, VectorClock);

#[derive(Clone, Debug)]
enum Step {
    Put(usize, Request, Option<Index>),
    /// A record arrives: late, again, or before those that it builds on.
    Arrive(Index, usize),
    /// A copy sends another what it lacks.
    CatchUp(usize, usize),
    Seal(usize),
    Fold(usize),
    /// The value is deleted: a tombstone keeps what is left.
    Delete(usize),
    /// A put that also prunes the object's clock: it sends no record.
    Prune(usize, Request),
}

fn steps(kind: DataType) -> impl Strategy<Value = Vec<Step>> {
    let at = || 0..COPIES;
    let step = prop_oneof![
        6 => (at(), requests(kind), prop::option::of(any::<Index>())).prop_map(|(at, r, c)| Step::Put(at, r, c)),
        6 => (any::<Index>(), at()).prop_map(|(record, to)| Step::Arrive(record, to)),
        1 => (at(), at()).prop_map(|(from, to)| Step::CatchUp(from, to)),
        1 => at().prop_map(Step::Seal),
        1 => at().prop_map(Step::Fold),
        1 => at().prop_map(Step::Delete),
        1 => (at(), requests(kind)).prop_map(|(at, request)| Step::Prune(at, request)),
    ];
    prop::collection::vec(step, 0..40)
}

struct World {
    stored: Vec<Stored>,
    whole: Vec<Whole>,
    /// Records, with the coordinator's whole copy after the put.
    records: Vec<(Record, Whole)>,
    contexts: Vec<Clock>,
    kind: DataType,
    /// Not everything was a record.
    has_gaps: bool,
    /// From then on the stored clocks tell less than the whole copies' clocks.
    is_pruned: bool,
}

impl World {
    fn new(kind: DataType) -> Self {
        let state = State::new(kind, Precision::DEFAULT);
        let stored = vec![Stored::new(&state, VectorClock::new()); COPIES];
        let whole = vec![(state, VectorClock::new()); COPIES];
        Self { stored, whole, records: Vec::new(), contexts: Vec::new(), kind, has_gaps: false, is_pruned: false }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Put(at, request, context) => self.put(at, &request, context),
            Step::Arrive(record, to) if !self.records.is_empty() => self.arrive(record.index(self.records.len()), to),
            Step::Arrive(..) => {}
            Step::CatchUp(from, to) => self.catch_up(from, to),
            Step::Seal(at) => self.stored[at].seal(),
            Step::Fold(at) => self.stored[at].fold(),
            Step::Delete(at) => self.delete(at),
            Step::Prune(at, request) => self.prune(at, &request),
        }
        self.check();
    }

    fn put(&mut self, at: usize, request: &Request, context: Option<Index>) {
        let context = context.filter(|_| !self.contexts.is_empty()).map(|index| index.get(&self.contexts).clone());
        let (copy, actor) = (&mut self.stored[at], actor(at));
        let log = copy.log();
        let planned = copy.state().delta(request, &actor, context.as_ref());
        let quick = log.delta(request, Precision::DEFAULT, &actor, context.as_ref());
        let Ok(delta) = planned else {
            assert_eq!(quick, None);
            return;
        };
        let before = log.clock().clone();
        let dot = Dot { counter: self.whole[at].1.counter(&actor) + 1, actor, stamp_secs: 0 };
        let record = Record { before, dot, delta: quick.unwrap_or(delta) };
        assert_eq!(copy.offer(&record), Offered::Taken);
        let (state, clock) = &mut self.whole[at];
        state.merge_delta(&record.delta).unwrap();
        clock.merge(&VectorClock::from_entries([record.dot.clone()]));
        self.contexts.extend(state.context().cloned());
        self.records.push((record, self.whole[at].clone()));
    }

    /// Types that do not know what was deleted are replaced by the object's clock, and not merged.
    fn delete(&mut self, at: usize) {
        let (state, clock) = &mut self.whole[at];
        if state.context().is_some() {
            self.has_gaps = true;
            *state = state.emptied();
            let mut stored = self.stored[at].log().clock().clone();
            let dot = Dot { counter: clock.counter(&actor(at)) + 1, actor: actor(at), stamp_secs: 0 };
            clock.merge(&VectorClock::from_entries([dot.clone()]));
            stored.merge(&VectorClock::from_entries([dot]));
            self.stored[at] = Stored::new(state, stored);
        }
    }

    fn prune(&mut self, at: usize, request: &Request) {
        let Ok(delta) = self.stored[at].state().delta(request, &actor(at), None) else { return };
        let (state, clock) = &mut self.whole[at];
        state.merge_delta(&delta).unwrap();
        let dot = Dot { counter: clock.counter(&actor(at)) + 1, actor: actor(at), stamp_secs: 0 };
        clock.merge(&VectorClock::from_entries([dot.clone()]));
        let kept = self.stored[at].log().clock().entries().iter().skip(1).cloned().collect::<Vec<_>>();
        self.stored[at] = Stored::new(state, VectorClock::from_entries(kept.into_iter().chain([dot])));
        (self.has_gaps, self.is_pruned) = (true, true);
    }

    /// A record that is taken does what merging the coordinator's whole copy does.
    fn arrive(&mut self, record: usize, to: usize) {
        let (record, (state, clock)) = &self.records[record];
        // A copy whose clock was pruned takes a record again, which changes nothing.
        let known = self.whole[to].1.contains(&record.dot);
        match self.stored[to].offer(record) {
            Offered::MissingPast => assert!(!known || self.is_pruned),
            Offered::Known => assert!(known),
            Offered::WrongType => panic!("all are of one type"),
            Offered::Taken => {
                assert!(!known || self.is_pruned);
                self.whole[to].0.merge(state).unwrap();
                self.whole[to].1.merge(clock);
            }
        }
    }

    fn catch_up(&mut self, from: usize, to: usize) {
        let giver = self.stored[from].clone();
        let clock = self.stored[to].log().clock().clone();
        let records = match giver.log().lacks(&clock).unwrap() {
            Lacks::Records(records) => records,
            Lacks::Segments => giver.log().lacks_of(&clock, &giver.segments).unwrap(),
            Lacks::State => {
                self.stored[to].merge_whole(&giver);
                Vec::new()
            }
        };
        for record in records {
            assert_ne!(self.stored[to].offer(&record), Offered::MissingPast);
        }
        let (state, clock) = self.whole[from].clone();
        self.whole[to].0.merge(&state).unwrap();
        self.whole[to].1.merge(&clock);
    }

    fn check(&self) {
        for (stored, (state, clock)) in self.stored.iter().zip(&self.whole) {
            assert_eq!(&stored.state(), state);
            assert!(self.is_pruned || stored.log().clock() == clock);
            assert!(clock.descends(stored.log().clock()));
            assert_eq!(stored.log().seen(), &state.context().cloned().unwrap_or_default());
        }
    }

    /// Copies that have seen the same are the same.
    fn check_equal_clocks(&self) {
        for (i, (state, clock)) in self.whole.iter().enumerate() {
            for (other, other_clock) in &self.whole[..i] {
                assert!(clock != other_clock || state == other);
            }
        }
    }

    /// All records in any order, and again, make the merge of all copies.
    fn check_any_order(&self, order: &[Index]) {
        if self.has_gaps {
            return;
        }
        let mut late: Vec<&Record> = self.records.iter().map(|(record, _)| record).collect();
        let mut copy = Stored::new(&State::new(self.kind, Precision::DEFAULT), VectorClock::new());
        let mut order = order.iter().cycle();
        for _ in 0..self.records.len() * self.records.len() {
            let Some(index) = order.next() else { break };
            let at = index.index(late.len());
            copy.offer(late[at]);
            late.rotate_left(at);
        }
        // What is still missing comes in rounds.
        for _ in 0..late.len() {
            late.iter().for_each(|record| _ = copy.offer(record));
        }
        let mut all = State::new(self.kind, Precision::DEFAULT);
        self.whole.iter().for_each(|(state, _)| all.merge(state).unwrap());
        assert_eq!(copy.state(), all);
    }
}

fn kinds_with_steps() -> impl Strategy<Value = (DataType, Vec<Step>)> {
    prop::sample::select(DataType::ALL.to_vec()).prop_flat_map(|kind| (Just(kind), steps(kind)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_log_does_what_whole_states_do((kind, steps) in kinds_with_steps(), order in prop::collection::vec(any::<Index>(), 1..20)) {
        let mut world = World::new(kind);
        steps.into_iter().for_each(|step| world.step(step));
        world.check_equal_clocks();
        world.check_any_order(&order);
    }
}

fn add_of(log: &Log, member: &'static [u8], replica: usize) -> Record {
    let request = Request::Set(vec![SetOp::Add(Bytes::from_static(member))]);
    let delta = log.delta(&request, Precision::DEFAULT, &actor(replica), None).unwrap();
    let dot = Dot { counter: log.clock().counter(&actor(replica)) + 1, actor: actor(replica), stamp_secs: 0 };
    Record { before: log.clock().clone(), dot, delta }
}

#[test]
fn a_log_is_folded_in_time_and_a_tail_sealed() {
    let base = State::new(DataType::Set, Precision::DEFAULT);
    let mut log = Log::new(VectorClock::new(), &base);
    assert!(!log.must_fold(0) && !log.must_seal());
    assert_eq!(log.offer(&add_of(&log, b"a", 0)), Offered::Taken);
    assert!(log.must_fold(INLINE_BYTES_MAX) && !log.must_fold(INLINE_BYTES_MAX + 1));
    let (base_bytes, mut sealed) = (1 << 20, 0);
    while !log.must_fold(base_bytes) {
        assert_eq!(log.offer(&add_of(&log, b"another", 0)), Offered::Taken);
        if log.must_seal() {
            assert!(log.to_bytes().len() < 2 * TAIL_BYTES_MAX);
            sealed += log.seal().len();
        }
    }
    assert!(log.bytes() > base_bytes / LOG_PART && sealed + TAIL_BYTES_MAX > base_bytes / LOG_PART);
    assert!(log.must_fold(LOG_PART * LOG_BYTES_MIN) && !log.must_fold(2 * base_bytes));
}

#[test]
fn a_log_without_its_segments_is_not_folded() {
    let mut base = State::new(DataType::Set, Precision::DEFAULT);
    let mut log = Log::new(VectorClock::new(), &base);
    log.offer(&add_of(&log, b"a", 0));
    let segment = log.seal();
    log.offer(&add_of(&log, b"b", 0));
    assert_eq!(log.fold_into(&mut base.clone(), &[]), Err(BadLog::Gap));
    log.fold_into(&mut base, &[segment]).unwrap();
    assert_eq!(base.value(), crate::Value::Set(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]));
}

#[test]
fn a_hyperloglog_takes_the_lower_precision_of_its_bucket() {
    let precision = |bits| Precision::new(bits).unwrap();
    let mut state = State::new(DataType::Hll, precision(12));
    let mut log = Log::new(VectorClock::new(), &state);
    let request = Request::Hll(vec![Bytes::from_static(b"a")]);
    for (number, (bucket, expected)) in (1..).zip([(14, 12), (10, 10), (12, 10)]) {
        let delta = log.delta(&request, precision(bucket), &actor(0), None).unwrap();
        // A delta of a higher precision would be folded, and go to another register.
        assert_eq!(delta, Delta::Hll(HllDelta::of_members(precision(expected), [b"a"])));
        let dot = Dot { counter: number, actor: actor(0), stamp_secs: 0 };
        log.offer(&Record { before: log.clock().clone(), dot, delta: delta.clone() });
        state.merge_delta(&delta).unwrap();
        let State::Hll(hll) = &state else { unreachable!() };
        assert_eq!(hll.precision(), precision(expected));
        assert_eq!(Log::from_bytes(&log.to_bytes()), Ok(log.clone()));
    }
}
