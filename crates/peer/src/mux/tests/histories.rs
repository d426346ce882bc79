//! Random histories of two sides and a pipe between them that cuts and delays, and may end
//! anywhere. A model knows what each request may end with.

use super::*;
use crate::error::{PeerError, RefusalCode};
use crate::frame::AnswerStatus;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// What a service does with a request. It is the second byte of the body's token.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    Answer,
    Refuse,
    Lose,
    Stream,
}

#[derive(Clone, Debug)]
enum Op {
    Call { left: bool, priority: usize, behaviour: Behaviour, bytes: usize, deadline_us: i64 },
    Serve { left: bool, which: usize },
    Cancel { which: usize },
    Consume { left: bool },
    Fill { left: bool, target: usize },
    Move { left: bool, bytes: usize },
    Wait { us: i64 },
}

fn op() -> impl Strategy<Value = Op> {
    let behaviour = prop_oneof![
        4 => Just(Behaviour::Answer),
        1 => Just(Behaviour::Refuse),
        1 => Just(Behaviour::Lose),
        3 => Just(Behaviour::Stream),
    ];
    let bytes = prop_oneof![4 => 0usize..200, 1 => 0usize..150_000];
    let deadline_us = prop_oneof![4 => Just(1_000_000i64), 1 => 0i64..2000];
    prop_oneof![
        4 => (any::<bool>(), 0usize..3, behaviour, bytes, deadline_us).prop_map(
            |(left, priority, behaviour, bytes, deadline_us)| Op::Call { left, priority, behaviour, bytes, deadline_us }
        ),
        4 => (any::<bool>(), any::<usize>()).prop_map(|(left, which)| Op::Serve { left, which }),
        1 => any::<usize>().prop_map(|which| Op::Cancel { which }),
        2 => any::<bool>().prop_map(|left| Op::Consume { left }),
        4 => (any::<bool>(), 1usize..200_000).prop_map(|(left, target)| Op::Fill { left, target }),
        6 => (any::<bool>(), prop_oneof![0usize..100, 0usize..200_000]).prop_map(|(left, bytes)| Op::Move { left, bytes }),
        1 => (0i64..3000).prop_map(|us| Op::Wait { us }),
    ]
}

fn config() -> MuxConfig {
    MuxConfig {
        calls_max: [3, 6, 3],
        queued_bytes_max: [20_000, 250_000, 250_000],
        served_max: [2, 5, 3],
        served_bytes_max: [20_000, 200_000, 200_000],
        answers_bytes_max: 250_000,
        arriving_bytes_max: 250_000,
        body_bytes_max: 160_000,
        lifetime_us: 500_000,
        ..MuxConfig::default()
    }
}

const ITEMS: usize = 20;
const WINDOW_BYTES: usize = 8192;

/// What the model knows of a request.
#[derive(Debug)]
struct Known {
    left: bool,
    stream: StreamId,
    behaviour: Behaviour,
    is_cancelled: bool,
    executed: bool,
    response: Option<Response>,
    items: usize,
}

/// A request that a service works on.
#[derive(Debug)]
struct Work {
    stream: StreamId,
    token: u64,
    sent_items: usize,
}

struct Model {
    ends: [End; 2],
    /// What is on its way from each end.
    wires: [VecDeque<u8>; 2],
    work: [Vec<Work>; 2],
    unconsumed: [VecDeque<(StreamId, usize)>; 2],
    known: BTreeMap<u64, Known>,
    now_us: i64,
}

fn body(token: u64, bytes: usize) -> Bytes {
    let mut body = token.to_le_bytes().to_vec();
    body.resize(8 + bytes, token as u8);
    body.into()
}

/// The answer and the items of a service are functions of the token.
fn answer_body(token: u64) -> Bytes {
    body(token, (token as usize * 7919) % 100_000)
}

fn item_body(token: u64, number: usize) -> Bytes {
    body(token, (number * 613) % (WINDOW_BYTES / 2 - ITEM_COST_BYTES - 8))
}

impl Model {
    fn new() -> Self {
        let pair = Pair::new(&config());
        Self {
            ends: [pair.left, pair.right],
            wires: Default::default(),
            work: Default::default(),
            unconsumed: Default::default(),
            known: BTreeMap::new(),
            now_us: 0,
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Call { left, priority, behaviour, bytes, deadline_us } => {
                self.call(left, priority, behaviour, bytes, deadline_us);
            }
            Op::Serve { left, which } => {
                let work = &self.work[usize::from(left)];
                if !work.is_empty() {
                    self.serve(usize::from(left), which % work.len());
                }
            }
            Op::Cancel { which } => self.cancel(which),
            Op::Consume { left } => self.consume(usize::from(left)),
            Op::Fill { left, target } => self.fill(usize::from(left), target),
            Op::Move { left, bytes } => self.carry(usize::from(left), bytes),
            Op::Wait { us } => {
                self.now_us += us;
                for end in 0..2 {
                    let (mux, events) = (&mut self.ends[end].mux, &mut self.ends[end].events);
                    mux.on_time(self.now_us, events).unwrap();
                    self.take_events(end);
                }
            }
        }
        self.check_bounds();
    }

    fn call(&mut self, left: bool, priority: usize, behaviour: Behaviour, bytes: usize, deadline_us: i64) {
        let token = self.known.len() as u64;
        let window_bytes = if matches!(behaviour, Behaviour::Stream) { WINDOW_BYTES } else { 0 };
        let request = Request {
            born_us: self.now_us,
            send_by_us: if token.is_multiple_of(4) { self.now_us + deadline_us / 2 } else { i64::MAX },
            deadline_us: self.now_us + deadline_us,
            window_bytes,
            ..request(Priority::ALL[priority], body(token, bytes))
        };
        match self.ends[usize::from(left)].mux.call(request, token) {
            Ok(stream) => {
                let known =
                    Known { left, stream, behaviour, is_cancelled: false, executed: false, response: None, items: 0 };
                self.known.insert(token, known);
            }
            Err(error) => assert_eq!(error, PeerError::Overload),
        }
    }

    fn serve(&mut self, end: usize, which: usize) {
        let Work { stream, token, sent_items } = self.work[end][which];
        let mux = &mut self.ends[end].mux;
        match self.known[&token].behaviour {
            Behaviour::Answer => mux.answer(stream, AnswerStatus::Done, answer_body(token).into()),
            Behaviour::Refuse => mux.answer(stream, AnswerStatus::Refused(RefusalCode(300)), Body::new()),
            Behaviour::Lose => mux.answer(stream, AnswerStatus::Lost, Body::new()),
            Behaviour::Stream if sent_items < ITEMS => {
                match mux.send_item(stream, item_body(token, sent_items).into()) {
                    Ok(()) => self.work[end][which].sent_items += 1,
                    Err(ItemRefused::Full) => {}
                    Err(ItemRefused::NotWanted) => self.work[end][which].sent_items = ITEMS,
                    Err(ItemRefused::TooLarge) => panic!("the item fits half the window"),
                }
                return;
            }
            Behaviour::Stream => mux.answer(stream, AnswerStatus::Done, Body::new()),
        }
        self.work[end].remove(which);
    }

    fn cancel(&mut self, which: usize) {
        let open: Vec<u64> = self.known.iter().filter(|(_, known)| known.response.is_none()).map(|(t, _)| *t).collect();
        let Some(token) = open.get(which % open.len().max(1)) else { return };
        let known = self.known.get_mut(token).unwrap();
        known.is_cancelled = true;
        self.ends[usize::from(known.left)].mux.cancel(known.stream);
    }

    fn consume(&mut self, end: usize) {
        if let Some((stream, bytes)) = self.unconsumed[end].pop_front() {
            self.ends[end].mux.consumed(stream, bytes);
        }
    }

    fn fill(&mut self, end: usize, target: usize) {
        let bytes = self.ends[end].write(self.now_us, target);
        assert!(bytes.len() < target + (64 << 10) + 16 + 4096, "a wake-up wrote {} bytes", bytes.len());
        self.wires[end].extend(bytes);
        self.take_events(end);
    }

    fn carry(&mut self, from: usize, bytes: usize) {
        let bytes = bytes.min(self.wires[from].len());
        let moved: Vec<u8> = self.wires[from].drain(..bytes).collect();
        self.ends[1 - from].read(&moved, self.now_us).unwrap();
        self.take_events(1 - from);
    }

    fn take_events(&mut self, end: usize) {
        for event in self.ends[end].events() {
            match event {
                Event::Request(arrived) => {
                    let token = u64::from_le_bytes(*arrived.body.first_chunk().unwrap());
                    assert_eq!(arrived.body, body(token, arrived.body.len() - 8));
                    let known = self.known.get_mut(&token).unwrap();
                    assert!(!known.executed, "a request was executed twice");
                    assert!(self.now_us < arrived.deadline_us && arrived.born_us <= self.now_us);
                    known.executed = true;
                    self.work[end].push(Work { stream: arrived.stream, token, sent_items: 0 });
                }
                Event::Item { token, item } => {
                    let known = self.known.get_mut(&token).unwrap();
                    assert!(!known.is_cancelled && known.response.is_none());
                    assert_eq!(item, item_body(token, known.items));
                    known.items += 1;
                    self.unconsumed[end].push_back((known.stream, item.len()));
                }
                Event::Answered { token, response } => {
                    let known = self.known.get_mut(&token).unwrap();
                    assert!(!known.is_cancelled, "a cancelled request was answered");
                    assert_eq!(known.response.replace(response), None, "a request ended twice");
                }
                Event::Room { .. } => {}
                Event::Goodbye { .. } => panic!("nobody said goodbye"),
            }
        }
    }

    fn check_bounds(&self) {
        let (config, mut held) = (config(), [self.ends[0].mux.held(), self.ends[1].mux.held()]);
        for held in &mut held {
            for line in 0..3 {
                assert!(held.calls[line] <= config.calls_max[line]);
                assert!(held.queued_bytes[line] <= config.queued_bytes_max[line]);
                assert!(held.served[line] <= config.served_max[line]);
                assert!(held.served_bytes[line] <= config.served_bytes_max[line]);
            }
            assert!(held.answers_bytes <= config.answers_bytes_max);
            assert!(held.arriving_bytes <= config.arriving_bytes_max);
            let counted = held.queued_bytes.iter().sum::<usize>() + held.answers_bytes;
            assert!(held.scheduled_bytes <= counted, "{held:?}");
            let (entries, in_line) = held.scheduled_entries;
            let calls_and_answers = held.calls.iter().sum::<usize>() + held.served_entries;
            // A request or an answer has one message or one flow, and at most one place in a line.
            assert!(in_line <= entries && entries <= calls_and_answers, "{held:?}");
        }
    }

    /// Lets everything come to its end.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            for end in 0..2 {
                while !self.unconsumed[end].is_empty() {
                    self.consume(end);
                }
                for which in (0..self.work[end].len()).rev() {
                    self.serve(end, which);
                }
                self.fill(end, 1 << 20);
                self.carry(end, usize::MAX);
            }
            self.check_bounds();
            let is_quiet = |end: usize| self.wires[end].is_empty() && self.work[end].is_empty();
            if is_quiet(0) && is_quiet(1) && !self.ends.iter().any(|end| end.mux.has_output(self.now_us)) {
                return;
            }
        }
        panic!("something never ends");
    }

    /// The connection ends. What was on its way is lost.
    fn end(&mut self) {
        for end in 0..2 {
            let (mux, events) = (&mut self.ends[end].mux, &mut self.ends[end].events);
            mux.close(events);
            self.take_events(end);
        }
    }

    /// Checks that each request ended as it may.
    fn check_ends(&self, was_cut: bool) {
        for (token, known) in &self.known {
            let Some(response) = &known.response else {
                assert!(known.is_cancelled, "a request never ended: {known:?}");
                continue;
            };
            match (response, known.behaviour) {
                (Ok(body), Behaviour::Answer) => assert_eq!(*body, answer_body(*token)),
                (Ok(body), Behaviour::Stream) => {
                    assert!(body.is_empty());
                    assert_eq!(known.items, ITEMS, "a stream ended early");
                }
                (Err(PeerError::Refused { code, .. }), Behaviour::Refuse) if code.0 == 300 => {}
                (Err(PeerError::Closed), _) => assert!(was_cut),
                (Err(PeerError::AnswerLost), Behaviour::Lose | Behaviour::Answer) => assert!(known.executed),
                (Err(PeerError::Timeout), _) => {}
                (Err(error), _) => {
                    assert!(error.was_not_executed() && !known.executed, "{known:?}");
                }
                other => panic!("{other:?}: {known:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_request_ends_as_it_may(ops in prop::collection::vec(op(), 0..120), cut: bool) {
        let mut model = Model::new();
        for op in ops {
            model.step(op);
        }
        if cut {
            model.end();
        } else {
            model.settle();
            prop_assert_eq!([model.ends[0].mux.held(), model.ends[1].mux.held()], [Default::default(); 2]);
        }
        model.check_ends(cut);
    }

    #[test]
    fn any_frames_of_a_peer_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        crate::fuzzing::connection(&bytes);
    }
}
