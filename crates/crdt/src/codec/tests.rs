//! What is written is read again, and nothing else makes the reader fail.

use super::*;
use crate::testing::{actor, requests};
use crate::{Delta, Precision, State, Summary};
use ombak_types::props::DataType;
use proptest::prelude::*;

/// A state of any type, and the delta of another request.
fn values() -> impl Strategy<Value = (State, Delta)> {
    prop::sample::select(DataType::ALL.to_vec())
        .prop_flat_map(|kind| (Just(kind), prop::collection::vec((0..3usize, requests(kind)), 1..12)))
        .prop_map(|(kind, requests)| {
            let mut state = State::new(kind, Precision::new(6).unwrap());
            let mut last = None;
            for (at, request) in requests {
                if let Ok(delta) = state.delta(&request, &actor(at), None) {
                    state.merge_delta(&delta).unwrap();
                    last = Some(delta);
                }
            }
            let empty = State::new(kind, Precision::new(6).unwrap());
            (state, last.unwrap_or_else(|| empty.delta(&no_request(kind), &actor(0), None).unwrap()))
        })
}

fn no_request(kind: DataType) -> crate::Request {
    match kind {
        DataType::Counter => crate::Request::Counter(1),
        DataType::Set => crate::Request::Set(Vec::new()),
        DataType::Map => crate::Request::Map(Vec::new()),
        DataType::Hll => crate::Request::Hll(Vec::new()),
        DataType::Gset => crate::Request::GSet(Vec::new()),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read((state, delta) in values()) {
        prop_assert_eq!(State::from_bytes(&state.to_bytes()), Ok(state.clone()));
        prop_assert_eq!(Delta::from_bytes(&delta.to_bytes()), Ok(delta));
        let summary = Summary::of(&state, 300);
        prop_assert_eq!(Summary::from_bytes(&summary.to_bytes()), Ok(summary));
    }

    #[test]
    fn damaged_bytes_are_an_error_or_a_sound_value(
        (state, delta) in values(), flips in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4), cut in any::<prop::sample::Index>(),
    ) {
        for bytes in [state.to_bytes(), delta.to_bytes(), Summary::of(&state, 300).to_bytes()] {
            let mut bytes = bytes.to_vec();
            for (at, value) in &flips {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            let damaged = Bytes::from(bytes);
            if let Ok(state) = State::from_bytes(&damaged) {
                prop_assert_eq!(State::from_bytes(&state.to_bytes()), Ok(state.clone()));
                let mut merged = state.clone();
                merged.merge(&state).unwrap();
                prop_assert_eq!(merged, state);
            }
            let _ = (Delta::from_bytes(&damaged), Summary::from_bytes(&damaged));
            let cut = damaged.slice(..cut.index(damaged.len()));
            let _ = (State::from_bytes(&cut), Delta::from_bytes(&cut), Summary::from_bytes(&cut));
        }
    }

    #[test]
    fn riaks_bytes_hold_the_same_value((state, _) in values()) {
        let riak = crate::RiakValue::of(state.clone(), crate::RiakCounter::Typed).to_bytes();
        prop_assert_eq!(State::from(crate::RiakValue::from_bytes(&riak).unwrap()), state);
    }

    #[test]
    fn no_bytes_make_riaks_reader_panic(
        (state, _) in values(), flips in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4),
    ) {
        let riak = crate::RiakValue::of(state, crate::RiakCounter::Legacy).to_bytes();
        let mut bytes = riak.to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(value) = crate::RiakValue::from_bytes(&bytes) {
            let state = State::from(value);
            let mut merged = state.clone();
            merged.merge(&state).unwrap();
            prop_assert_eq!(merged, state);
        }
    }
}

#[test]
fn another_version_is_refused() {
    let state = State::new(DataType::Set, Precision::DEFAULT);
    let mut bytes = state.to_bytes().to_vec();
    bytes[0] = 2;
    assert_eq!(State::from_bytes(&bytes.into()), Err(BadBytes::UnknownVersion(2)));
    let longer = [&state.to_bytes()[..], &[0]].concat();
    assert_eq!(State::from_bytes(&longer.into()), Err(BadBytes::TrailingBytes));
}

#[test]
fn nesting_and_lengths_are_bounded() {
    // A map with one field, whose content is a map, and so on. The first dot brings its actor.
    let (first, next) = ([1, 3, 1, b'm', 1, 0, 1, b'a', 1], [1, 3, 1, b'm', 1, 0, 1]);
    let nested = |depth: usize| {
        let bytes = [&[VERSION, 3, 0][..], &first, &next.repeat(depth - 1), &[0, 0]].concat();
        State::from_bytes(&bytes.into())
    };
    assert!(nested(crate::MAP_DEPTH_MAX - 1).is_ok());
    assert_eq!(nested(crate::MAP_DEPTH_MAX), Err(BadBytes::TooDeep));
    assert_eq!(nested(100_000), Err(BadBytes::TooDeep));
    assert_eq!(State::from_bytes(&vec![VERSION, 2, 0, 0xff, 0xff, 0xff, 0x7f].into()), Err(BadBytes::CutShort));
    let mut writer = Writer::default();
    writer.number(u128::MAX);
    assert_eq!(Reader::new(writer.finish()).number(), Ok(u128::MAX));
    assert_eq!(Reader::new(Bytes::from_static(&[0xff; 19])).number(), Err(BadBytes::TooLarge));
    let beyond = [&[0xff; 18][..], &[0x04]].concat();
    assert_eq!(Reader::new(beyond.into()).number(), Err(BadBytes::TooLarge));
}

/// A set or a map with an empty clock, and in it what is given.
fn state_with(kind: u8, content: &[u8]) -> State {
    let bytes = [&[VERSION, kind, 0][..], content, &[0]].concat();
    State::from_bytes(&bytes.into()).unwrap()
}

#[test]
fn a_clock_is_raised_to_the_dots_under_it() {
    // One dot, the fifth of a new actor with one byte.
    let dots = [1, 0, 1, b'a', 5];
    let set = state_with(2, &[&[1, 1, b'x'][..], &dots].concat());
    let map = state_with(3, &[&[1, 4, 1, b'f'][..], &dots, &[0]].concat());
    for state in [set, map] {
        assert_eq!(state.context().unwrap().iter().map(|dot| dot.count).collect::<Vec<_>>(), [5]);
    }
}

#[test]
fn members_without_dots_are_not_in_a_state() {
    let set = state_with(2, &[1, 1, b'x', 0]);
    assert_eq!(set.value(), crate::Value::Set(Vec::new()));
    let map = state_with(3, &[1, 5, 1, b'f', 1, 0, 1, b'a', 5, 1, 1, b'x', 0]);
    let field = crate::Field::new("f", crate::FieldType::Set);
    assert_eq!(map.value(), crate::Value::Map(vec![(field, crate::FieldValue::Set(Vec::new()))]));
}
