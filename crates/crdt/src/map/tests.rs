//! A map against its specification, which knows events and what each removal has observed, and no
//! dots.

mod model;
mod world;

use super::*;
use crate::field::FieldType;
use crate::testing::{actor, bytes};
use proptest::prelude::*;
use world::{World, steps};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_map_is_what_its_specification_says(steps in steps()) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        let maps: Vec<&Map> = world.maps().collect();
        let join = |left: &Map, right: &Map| { let mut left = left.clone(); left.merge(right); left };
        let [a, b, c] = maps[..] else { unreachable!() };
        prop_assert_eq!(&join(a, a), a);
        prop_assert_eq!(join(a, b), join(b, a));
        prop_assert_eq!(join(&join(a, b), c), join(a, &join(b, c)));
        prop_assert_eq!(join(&join(a, b), b), join(a, b));
        for map in [&join(a, b), c] {
            crate::riak::check_forms(map);
        }
    }
}

fn field(name: &'static str, kind: FieldType) -> Field {
    Field::new(name, kind)
}

fn updated(map: &Map, replica: usize, ops: &[MapOp], context: Option<&Clock>) -> Map {
    let mut map = map.clone();
    map.merge_delta(&map.delta(ops, &actor(replica), context).unwrap()).unwrap();
    map
}

fn adds(set: &Field, members: &[&str]) -> MapOp {
    MapOp::Update(set.clone(), FieldOp::Set(members.iter().map(|member| SetOp::Add(bytes(member))).collect()))
}

#[test]
fn removing_a_field_leaves_what_was_written_concurrently() {
    let set = field("s", FieldType::Set);
    let a = updated(&Map::new(), 0, &[adds(&set, &["a", "b"])], None);
    let b = updated(&a, 1, &[adds(&set, &["c"])], None);
    let mut a = updated(&a, 0, &[MapOp::Remove(set.clone())], None);
    assert!(a.is_empty());
    a.merge(&b);
    assert_eq!(a.value(), [(set, FieldValue::Set(vec![bytes("c")]))]);
}

#[test]
fn a_counter_that_was_raised_concurrently_stays_whole() {
    let counter = field("c", FieldType::Counter);
    let count = |amount| MapOp::Update(counter.clone(), FieldOp::Counter(amount));
    let a = updated(&Map::new(), 0, &[count(5)], None);
    let mut b = updated(&a, 1, &[MapOp::Remove(counter.clone())], None);
    b.merge(&updated(&a, 0, &[count(2)], None));
    assert_eq!(b.value(), [(counter.clone(), FieldValue::Counter(7))]);
    let again = updated(&updated(&a, 0, &[MapOp::Remove(counter.clone())], None), 0, &[count(1)], None);
    b.merge(&again);
    assert_eq!(b.value(), [(counter, FieldValue::Counter(8 - 7))]);
}

#[test]
fn an_assignment_replaces_what_is_there_also_after_the_clock_went_back() {
    let register = field("r", FieldType::Register);
    let assign = |value: &'static str, time_us| {
        MapOp::Update(register.clone(), FieldOp::Register { value: value.into(), time_us })
    };
    let shown = |map: &Map| match &map.value()[..] {
        [(_, FieldValue::Register(value))] => value.clone(),
        other => panic!("{other:?}"),
    };
    let map = updated(&Map::new(), 0, &[assign("first", 9)], None);
    for (value, time_us) in [("earlier", 8), ("same", 9), ("later", 10), ("much later", u64::MAX)] {
        let one = updated(&map, 0, &[assign(value, time_us)], None);
        assert_eq!(shown(&one), value);
        assert_eq!(shown(&updated(&one, 1, &[assign("second", 1)], None)), "second");
    }
    assert_eq!(shown(&updated(&map, 0, &[assign("one", 1), assign("two", 1)], None)), "two", "in one request");
    // A concurrent assignment whose time lies between hides neither.
    let mut both = updated(&map, 0, &[assign("earlier", 5)], None);
    both.merge(&updated(&Map::new(), 1, &[assign("between", 7)], None));
    assert_eq!(shown(&both), "earlier");
}

#[test]
fn values_come_in_the_order_of_riaks_field_names() {
    let fields = [FieldType::Counter, FieldType::Register, FieldType::Map, FieldType::Flag, FieldType::Set];
    let ops = fields.map(|kind| {
        let op = match kind {
            FieldType::Counter => FieldOp::Counter(1),
            FieldType::Register => FieldOp::Register { value: bytes("v"), time_us: 1 },
            FieldType::Map => FieldOp::Map(Vec::new()),
            FieldType::Flag => FieldOp::Flag(true),
            FieldType::Set => FieldOp::Set(Vec::new()),
        };
        MapOp::Update(field("f", kind), op)
    });
    let mut ops: Vec<MapOp> = ops.into_iter().rev().collect();
    ops.push(MapOp::Update(field("a", FieldType::Set), FieldOp::Set(Vec::new())));
    let map = updated(&Map::new(), 0, &ops, None);
    let shown: Vec<(Bytes, FieldType)> = map.value().into_iter().map(|(f, _)| (f.name, f.kind)).collect();
    let expected = fields.into_iter().map(|kind| (bytes("f"), kind));
    assert_eq!(shown, [(bytes("a"), FieldType::Set)].into_iter().chain(expected).collect::<Vec<_>>());
    let names = FieldType::ALL.map(FieldType::riak_name);
    assert!(names.is_sorted() && FieldType::ALL.is_sorted());
}

#[test]
fn a_refusal_names_what_is_not_present() {
    let refusal = |ops: &[MapOp]| Map::new().delta(ops, &actor(0), None).unwrap_err().to_string();
    let removal = MapOp::Remove(field("s", FieldType::Set));
    assert_eq!(refusal(std::slice::from_ref(&removal)), "{precondition,{not_present,{<<\"s\">>,riak_dt_orswot}}}");
    let inner = MapOp::Update(field("m", FieldType::Map), FieldOp::Map(vec![removal]));
    assert_eq!(refusal(&[inner]), "{precondition,{not_present,{<<\"s\">>,riak_dt_orswot}}}");
    let wrong = MapOp::Update(field("m", FieldType::Map), FieldOp::Flag(true));
    assert_eq!(Map::new().delta(&[wrong], &actor(0), None), Err(Refusal::WrongType));
    let deep = (0..MAP_DEPTH_MAX)
        .fold(FieldOp::Map(Vec::new()), |op, _| FieldOp::Map(vec![MapOp::Update(field("m", FieldType::Map), op)]));
    let deep = MapOp::Update(field("m", FieldType::Map), deep);
    assert_eq!(Map::new().delta(&[deep], &actor(0), None), Err(Refusal::TooDeep));
}

#[test]
fn a_removal_inside_a_field_outlives_the_field() {
    let set = field("s", FieldType::Set);
    let seen = updated(&Map::new(), 0, &[adds(&set, &["a", "b"])], None);
    let removal = MapOp::Update(set.clone(), FieldOp::Set(vec![SetOp::Remove(bytes("a"))]));
    let late = updated(&Map::new(), 1, &[removal], Some(seen.context()));
    assert_eq!(late.deferred_len(), 1);
    let mut late = updated(&late, 1, &[MapOp::Remove(set.clone())], None);
    late.merge(&seen);
    assert_eq!(late.value(), [(set, FieldValue::Set(vec![bytes("b")]))]);
    assert_eq!(late.deferred_len(), 0);
}

#[test]
fn a_request_without_operations_is_an_event() {
    let map = updated(&Map::new(), 0, &[], None);
    assert_eq!((map.len(), map.context().len()), (0, 1));
}
