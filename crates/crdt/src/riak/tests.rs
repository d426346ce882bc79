//! Bytes that a Riak KV 3.2.3 node stored, and what is made of them.

use super::*;
use crate::testing::{actor, bytes, hex};
use crate::{Clock, Field, FieldType, FieldValue, MAP_DEPTH_MAX};
use ombak_types::etf::{self, Term};

/// A counter of Riak 1.4 that counted 15 up and 2 down, as read through the URL of objects
/// (recorded exchange http/445_counter_as_object).
const LEGACY_COUNTER: &str = "450147010000001e4601836c0000000168026d0000000c7e12738fae592e3900000003610f6a\
    0000001e4601836c0000000168026d0000000c7e12738fae592e390000000361026a";

/// A set that had two additions and is empty again, compressed, with dictionaries (recorded
/// exchange pb/200_dt_set_via_kv).
const SET: &str = "45020000000e7269616b5f64745f6f7273776f744b028350000000937801cb60ce61606060cc60ca05523c\
    7542c5fd06bc3bbe83841299b232385318585232934b121912058090233120d12043200b0d64306211235f2b00f6e32e10";

/// The context of that set after another addition (recorded exchange pb/188_dt_set_rem_ctx).
const CONTEXT: &str = "836c0000000168026d0000000c7e12738f300db8f70000000161026a";

fn read(digits: &str) -> RiakValue {
    RiakValue::from_bytes(&hex(digits)).unwrap()
}

#[test]
fn a_legacy_counter_is_read_and_written_as_riak_does() {
    let value = read(LEGACY_COUNTER);
    let RiakValue::Counter(counter, RiakCounter::Legacy) = &value else { panic!("{value:?}") };
    assert_eq!(counter.value(), 13);
    assert_eq!(value.to_bytes(), hex(LEGACY_COUNTER));
}

#[test]
fn a_stored_set_is_read() {
    let value = read(SET);
    let RiakValue::Set(set) = &value else { panic!("{value:?}") };
    assert!(set.is_empty());
    assert_eq!(set.context().to_context(), hex(CONTEXT));
    assert_eq!(RiakValue::from_bytes(&value.to_bytes()).as_ref(), Ok(&value));
}

#[test]
fn a_context_is_read_and_written_as_riak_does() {
    let clock = Clock::from_context(&hex(CONTEXT)).unwrap();
    assert_eq!(clock.iter().map(|dot| dot.count).collect::<Vec<_>>(), [2]);
    assert_eq!(clock.to_context(), hex(CONTEXT));
    assert_eq!(Clock::new().to_context(), hex("836a"));
    assert!(Clock::from_context(b"zork").is_err());
    assert!(Clock::from_context(&etf::encode(&Term::atom("zork"))).is_err());
}

fn dot(replica: usize, count: i64) -> Term {
    Term::pair(Term::binary(actor(replica).as_bytes()), Term::Int(count))
}

fn list(items: &[Term]) -> Term {
    Term::List(items.to_vec())
}

/// `{Clock, [{Member, [Dot]}], []}`.
fn set_term(clock: &[Term], members: &[(&str, Term)]) -> Term {
    let member =
        |(name, dot): &(&str, Term)| Term::pair(Term::binary(name.as_bytes()), list(std::slice::from_ref(dot)));
    Term::Tuple(vec![list(clock), Term::List(members.iter().map(member).collect()), Term::nil()])
}

/// A map of version 1 with one field, a set: its contents by their dots, and its tombstone.
fn map_with_set(clock: &[Term], contents: &[(Term, Term)], tombstone: Term) -> Map {
    let contents = contents.iter().map(|(dot, content)| Term::pair(dot.clone(), content.clone())).collect();
    let name = Term::pair(Term::binary(b"s"), Term::atom("riak_dt_orswot"));
    let field = Term::pair(name, Term::pair(Term::List(contents), tombstone));
    let term = Term::Tuple(vec![list(clock), list(&[field]), Term::nil()]);
    let stored = [&b"E\x02\0\0\0\x0briak_dt_map"[..], &[77, 1], &etf::encode(&term)].concat();
    match RiakValue::from_bytes(&stored) {
        Ok(RiakValue::Map(map)) => map,
        other => panic!("{other:?}"),
    }
}

fn members(map: &Map) -> Vec<String> {
    let set = Field::new("s", FieldType::Set);
    match &map.value()[..] {
        [(field, FieldValue::Set(members))] if *field == set => {
            members.iter().map(|member| String::from_utf8(member.to_vec()).unwrap()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_contents_of_a_fields_dots_are_merged() {
    let a = (dot(0, 2), set_term(&[dot(0, 2)], &[("x", dot(0, 1)), ("y", dot(0, 2))]));
    // The second replica has removed x.
    let b = (dot(1, 1), set_term(&[dot(0, 1), dot(1, 1)], &[("z", dot(1, 1))]));
    let none = || set_term(&[], &[]);
    let map = map_with_set(&[dot(0, 2), dot(1, 1)], &[a.clone(), b.clone()], none());
    assert_eq!(members(&map), ["y", "z"]);
    assert_eq!(map.duplication(), 1);
    // What the tombstone has seen was removed.
    let map = map_with_set(&[dot(0, 2), dot(1, 1)], &[a, b], set_term(&[dot(0, 2)], &[]));
    assert_eq!(members(&map), ["z"]);
}

#[test]
fn a_forged_clock_is_raised_to_the_dots() {
    let map = map_with_set(&[], &[(dot(0, 1), set_term(&[], &[("x", dot(1, 7))]))], set_term(&[], &[]));
    assert_eq!(map.context().iter().map(|dot| dot.count).collect::<Vec<_>>(), [1, 7]);
    let mut merged = map.clone();
    merged.merge(&map);
    assert_eq!(merged, map);
}

#[test]
fn unknown_types_and_versions_are_refused() {
    let refused = |bytes: &[u8]| RiakValue::from_bytes(bytes).unwrap_err();
    assert_eq!(refused(b""), BadBytes::NotADataType);
    assert_eq!(refused(b"plain"), BadBytes::NotADataType);
    assert_eq!(refused(&[TAG, 3]), BadBytes::UnknownVersion(3));
    assert_eq!(refused(b"E\x02\0\0\0\x04zork\x4b\x02"), BadBytes::UnknownType);
    assert_eq!(refused(b"E\x02\0\0\0\x0eriak_dt_orswotK\x03"), BadBytes::UnknownVersion(3));
    assert_eq!(refused(b"E\x02\xff\xff\xff\xffriak"), BadBytes::CutShort);
}

#[test]
fn content_types_are_riaks() {
    let set = crate::GSet::from_iter([bytes("a")]);
    assert_eq!(RiakValue::GSet(set).content_type(), "application/riak_gset");
    assert_eq!(read(LEGACY_COUNTER).content_type(), "application/riak_counter");
}

/// A map in a map, and so on.
fn nested(depth: usize) -> Map {
    let field = || Field::new("m", FieldType::Map);
    let op = (1..depth)
        .fold(crate::FieldOp::Map(Vec::new()), |op, _| crate::FieldOp::Map(vec![crate::MapOp::Update(field(), op)]));
    let mut map = Map::new();
    let delta = map.delta(&[crate::MapOp::Update(field(), op)], &actor(0), None).unwrap();
    map.merge_delta(&delta).unwrap();
    map
}

#[test]
fn maps_nest_ten_deep_in_riaks_bytes() {
    let read = |map: &Map| RiakValue::from_bytes(&RiakValue::Map(map.clone()).to_bytes());
    assert_eq!(read(&nested(10)), Ok(RiakValue::Map(nested(10))));
    assert_eq!(read(&nested(11)), Err(BadBytes::BadTerm(etf::EtfError::TooDeep)));
    check_forms(&nested(5));
    let state = crate::State::Map(nested(MAP_DEPTH_MAX - 1));
    assert_eq!(crate::State::from_bytes(&state.to_bytes()), Ok(state));
}

/// What takes time with the square of the bytes does not end here.
#[test]
fn many_actors_and_dots_take_little_time() {
    const ACTORS: i64 = 50_000;
    let dot = |number: i64| Term::pair(Term::binary(&number.to_be_bytes()), Term::Int(1));
    let member = |number: i64| Term::pair(Term::binary(&number.to_be_bytes()), list(&[dot(number)]));
    let all_dots = Term::List((0..ACTORS).rev().map(dot).collect());
    let members = (0..ACTORS).rev().map(member).chain([Term::pair(Term::binary(b"all"), all_dots)]).collect();
    let term = Term::Tuple(vec![Term::nil(), Term::List(members), Term::nil()]);
    let stored = [&b"E\x02\0\0\0\x0eriak_dt_orswotK\x01"[..], &etf::encode(&term)].concat();
    let value = RiakValue::from_bytes(&stored).unwrap();
    let mut state = crate::State::from(value.clone());
    assert_eq!(state.context().map(Clock::len), Some(ACTORS as usize));
    assert_eq!(RiakValue::from_bytes(&value.to_bytes()), Ok(value));
    assert_eq!(crate::State::from_bytes(&state.to_bytes()), Ok(state.clone()));
    let other = state.clone();
    state.merge(&other).unwrap();
    assert_eq!(state, other);
}

#[test]
fn many_waiting_removals_are_written_in_little_time() {
    let context: Clock = [&crate::Dot::new(actor(9), 1)].into_iter().collect();
    let op = |number: usize| crate::MapOp::Remove(Field::new(number.to_string(), FieldType::Set));
    let update = |number: usize| {
        crate::MapOp::Update(Field::new(number.to_string(), FieldType::Set), crate::FieldOp::Set(Vec::new()))
    };
    let ops: Vec<crate::MapOp> = (0..30_000).map(op).chain((0..30_000).map(update)).collect();
    let mut map = Map::new();
    map.merge_delta(&map.delta(&ops, &actor(0), Some(&context)).unwrap()).unwrap();
    assert_eq!(RiakValue::from_bytes(&RiakValue::Map(map.clone()).to_bytes()), Ok(RiakValue::Map(map)));
}
