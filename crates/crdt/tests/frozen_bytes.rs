//! The bytes of states, deltas and summaries stay readable: they are compared with those that the
//! version of their first release writes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use ombak_crdt::{Clock, Delta, Field, FieldOp, FieldType, MapOp, Precision, Request, SetOp, State, Summary};
use ombak_fixtures::FrozenMessages;
use ombak_types::Actor;
use ombak_types::props::DataType;

fn actor(name: &str) -> Actor {
    Actor::new(name.as_bytes())
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn add(member: &'static str) -> SetOp {
    SetOp::Add(bytes(member))
}

fn update(name: &'static str, kind: FieldType, op: FieldOp) -> MapOp {
    MapOp::Update(Field::new(name, kind), op)
}

/// Requests of a type, each with its actor and perhaps a context.
fn requests(kind: DataType) -> Vec<(&'static str, Request, Option<Clock>)> {
    let unseen: Clock = [ombak_crdt::Dot::new(actor("elsewhere"), 3)].iter().collect();
    let register = |value, time_us| FieldOp::Register { value: bytes(value), time_us };
    match kind {
        DataType::Counter => {
            vec![("one", Request::Counter(i64::MAX), None), ("two", Request::Counter(-300), None)]
        }
        DataType::Set => vec![
            ("one", Request::Set(vec![add("b"), add("a")]), None),
            ("two", Request::Set(vec![add("c"), SetOp::Remove(bytes("b"))]), None),
            ("two", Request::Set(vec![SetOp::Remove(bytes("z"))]), Some(unseen)),
        ],
        DataType::Gset => vec![("one", Request::GSet(vec![bytes("b"), bytes("a")]), None)],
        DataType::Hll => vec![("one", Request::Hll(vec![bytes("b"), bytes("a"), bytes("c")]), None)],
        DataType::Map => {
            let inner = vec![update("r", FieldType::Register, register("inner", 7))];
            let all = vec![
                update("c", FieldType::Counter, FieldOp::Counter(-5)),
                update("f", FieldType::Flag, FieldOp::Flag(true)),
                update("m", FieldType::Map, FieldOp::Map(inner)),
                update("r", FieldType::Register, register("value", 1_700_000_000_000_000)),
                update("s", FieldType::Set, FieldOp::Set(vec![add("x"), add("y")])),
            ];
            let removals = vec![
                MapOp::Remove(Field::new("gone", FieldType::Set)),
                update("f", FieldType::Flag, FieldOp::Flag(false)),
                update("s", FieldType::Set, FieldOp::Set(vec![SetOp::Remove(bytes("x"))])),
            ];
            let removed = vec![MapOp::Remove(Field::new("r", FieldType::Register))];
            vec![
                ("one", Request::Map(all), None),
                ("two", Request::Map(removals), Some(unseen)),
                ("two", Request::Map(removed), None),
            ]
        }
    }
}

#[test]
fn the_bytes_of_version_1_stay() {
    let mut frozen = FrozenMessages::open(env!("CARGO_MANIFEST_DIR"), 2, "datatypes");
    for kind in DataType::ALL {
        let mut state = State::new(kind, Precision::new(4).unwrap());
        let mut summary = Summary::of(&state, 300);
        for (number, (name, request, context)) in (1..).zip(requests(kind)) {
            let delta: Delta = state.delta(&request, &actor(name), context.as_ref()).unwrap();
            state.merge_delta(&delta).unwrap();
            assert!(summary.add(&delta, 40));
            let name = format!("delta {number} of a {}", kind.name());
            frozen.check(
                &name,
                &delta,
                |delta| delta.to_bytes().into(),
                |bytes| Delta::from_bytes(&bytes.to_vec().into()),
            );
        }
        let name = format!("state of a {}", kind.name());
        frozen.check(&name, &state, |state| state.to_bytes().into(), |bytes| State::from_bytes(&bytes.to_vec().into()));
        let name = format!("summary of a {}", kind.name());
        frozen.check(
            &name,
            &summary,
            |summary| summary.to_bytes().into(),
            |bytes| Summary::from_bytes(&bytes.to_vec().into()),
        );
    }
    frozen.end();
}
