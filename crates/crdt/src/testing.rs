//! Shared by the tests.

use crate::{Field, FieldOp, FieldType, MapOp, Request, SetOp};
use bytes::Bytes;
use ombak_types::Actor;
use ombak_types::props::DataType;
use proptest::prelude::*;

/// The actor of a replica. Replicas have numbers.
pub(crate) fn actor(replica: usize) -> Actor {
    Actor::new(&[b'a' + replica as u8; 8])
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Bytes from hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Requests for a map, with few names, so that they meet.
pub(crate) fn map_ops(depth: u32) -> BoxedStrategy<Vec<MapOp>> {
    let member = prop_oneof![Just(bytes("x")), Just(bytes("y"))];
    let set_op = (any::<bool>(), member.clone())
        .prop_map(|(is_add, member)| if is_add { SetOp::Add(member) } else { SetOp::Remove(member) });
    let leaf = prop_oneof![
        (-3..4i64).prop_map(FieldOp::Counter),
        (1..5u64, member).prop_map(|(time_us, value)| FieldOp::Register { value, time_us }),
        any::<bool>().prop_map(FieldOp::Flag),
        prop::collection::vec(set_op, 0..3).prop_map(FieldOp::Set),
    ];
    let op = if depth == 0 {
        leaf.boxed()
    } else {
        prop_oneof![2 => leaf, 1 => map_ops(depth - 1).prop_map(FieldOp::Map)].boxed()
    };
    let kind_of = |op: &FieldOp| match op {
        FieldOp::Counter(_) => FieldType::Counter,
        FieldOp::Register { .. } => FieldType::Register,
        FieldOp::Map(_) => FieldType::Map,
        FieldOp::Flag(_) => FieldType::Flag,
        FieldOp::Set(_) => FieldType::Set,
    };
    let update = op.prop_map(move |op| MapOp::Update(Field::new("f", kind_of(&op)), op));
    let remove = prop::sample::select(FieldType::ALL.to_vec()).prop_map(|kind| MapOp::Remove(Field::new("f", kind)));
    prop::collection::vec(prop_oneof![3 => update, 1 => remove], 0..4).boxed()
}

/// Requests for a value of a type.
pub(crate) fn requests(kind: DataType) -> BoxedStrategy<Request> {
    let names = || prop::collection::vec("[a-c]".prop_map(|name| bytes(&name)), 0..3);
    let set_op = (any::<bool>(), "[a-c]")
        .prop_map(|(is_add, name)| if is_add { SetOp::Add(bytes(&name)) } else { SetOp::Remove(bytes(&name)) });
    match kind {
        DataType::Counter => (-5..6i64).prop_map(Request::Counter).boxed(),
        DataType::Set => prop::collection::vec(set_op, 0..3).prop_map(Request::Set).boxed(),
        DataType::Map => map_ops(2).prop_map(Request::Map).boxed(),
        DataType::Hll => names().prop_map(Request::Hll).boxed(),
        DataType::Gset => names().prop_map(Request::GSet).boxed(),
    }
}
