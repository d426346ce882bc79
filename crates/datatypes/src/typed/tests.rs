use super::*;
use ombak_crdt::{Request, SetOp, Value};
use ombak_runtime::TokioRuntime;
use ombak_types::Actor;
use ombak_types::time::UnixMicros;
use proptest::prelude::*;

fn typed() -> TypedValues {
    TypedValues::new(Arc::new(Counts::new(Arc::new(TokioRuntime))), crate::WHOLE_BYTES_MAX)
}

fn props() -> BucketProps {
    BucketProps { datatype: Some(DataType::Set), allow_mult: true, ..BucketProps::default() }
}

fn add(member: &str) -> Sibling {
    let request = Request::Set(vec![SetOp::Add(Bytes::copy_from_slice(member.as_bytes()))]);
    Sibling::new(Change::Request { request, context: None }.to_bytes())
}

fn event(actor: u8, counter: u64) -> Dot {
    Dot { actor: Actor::new(&[actor; 8]), counter, stamp_secs: 0 }
}

/// Applies an operation to values, as the engine does.
fn after(values: &[Sibling], operation: &Sibling, event: Dot) -> Sibling {
    let mut values = values.to_vec();
    let mut value = typed().apply(&props(), &mut values, operation, &event).unwrap();
    assert_eq!(values, [], "all values of the type are changed");
    value.meta.vtag = Some(Bytes::from(vec![b'a' + event.counter as u8]));
    value.meta.last_modified = Some(UnixMicros(event.counter));
    value.meta.dot = Some(event);
    value
}

fn members(values: &[Sibling]) -> Vec<Bytes> {
    let object = Object { clock: VectorClock::new(), siblings: values.to_vec() };
    match state_of(&props(), &object).unwrap().value() {
        Value::Set(members) => members,
        other => panic!("{other:?}"),
    }
}

#[test]
fn concurrent_values_merge_for_readers_and_for_the_next_operation() {
    let base = after(&[], &add("x"), event(1, 1));
    let (one, other) =
        (after(std::slice::from_ref(&base), &add("y"), event(1, 2)), after(&[base], &add("z"), event(2, 1)));
    let [read] = &typed().merge(vec![one.clone(), other.clone()])[..] else { panic!("one value") };
    assert_eq!(members(std::slice::from_ref(read)), ["x", "y", "z"]);
    assert_eq!(read.meta.vtag.as_deref(), Some(&b"b-c"[..]), "the tag names both");
    assert_eq!(members(&[after(&[one, other], &add("w"), event(1, 3))]), ["w", "x", "y", "z"]);
}

#[test]
fn heads_without_values_become_one_head() {
    let head = |counter| Sibling { value: Bytes::new(), ..after(&[], &add("x"), event(1, counter)) };
    let [merged] = &typed().merge(vec![head(1), head(2)])[..] else { panic!("one head") };
    assert_eq!((merged.meta.vtag.as_deref(), merged.value.len()), (Some(&b"b-c"[..]), 0));
}

#[test]
fn riaks_bytes_are_an_operation_and_other_values_stay_beside() {
    let value = after(&[], &add("x"), event(1, 1));
    let shown = typed().show(value.clone()).unwrap();
    let plain = Sibling::new(shown.value.clone());
    let operation = typed().operation_of(&props(), &plain).expect("Riak's bytes are merged");
    let merged = after(&[], &Sibling::new(operation), event(2, 1));
    assert_eq!(members(&[merged]), ["x"]);
    // What was imported lies there as Riak's bytes.
    assert!(!typed().begins(&props(), std::slice::from_ref(&plain)));
    assert_eq!(members(&[after(&[plain], &add("y"), event(2, 1))]), ["x", "y"]);

    let other = Sibling::new("zork");
    assert_eq!(typed().operation_of(&props(), &other), None);
    assert!(typed().begins(&props(), std::slice::from_ref(&other)));
    let mut values = vec![other.clone(), value];
    typed().apply(&props(), &mut values, &add("y"), &event(1, 2)).unwrap();
    assert_eq!(values, [other]);
}

#[test]
fn a_value_that_cannot_be_read_is_an_error() {
    let value = after(&[], &add("x"), event(1, 1));
    for bytes in [&b"\x01"[..], b"\x02", b"\x01\x09\x09", b""] {
        let damaged = Sibling { value: Bytes::copy_from_slice(bytes), ..value.clone() };
        let is_unreadable = |error: Error| matches!(error, Error::Storage(failure) if failure.kind == ombak_types::StoreFailureKind::Unreadable);
        assert!(typed().show(damaged.clone()).is_err_and(is_unreadable), "{bytes:?}");
        assert!(!typed().begins(&props(), std::slice::from_ref(&damaged)));
        let applied = typed().apply(&props(), &mut vec![damaged], &add("y"), &event(1, 2));
        assert!(applied.is_err_and(is_unreadable), "{bytes:?}");
    }
}

#[test]
fn a_bucket_with_a_lower_precision_lowers_what_it_has() {
    let props = |bits| BucketProps { datatype: Some(DataType::Hll), hll_precision: Some(bits), ..props() };
    let count = |member: &'static str| {
        let request = Request::Hll(vec![Bytes::from(member)]);
        Sibling::new(Change::Request { request, context: None }.to_bytes())
    };
    let fine = typed().apply(&props(14), &mut Vec::new(), &count("x"), &event(1, 1)).unwrap();
    let coarse = typed().apply(&props(5), &mut vec![fine], &count("y"), &event(1, 2)).unwrap();
    match read(&coarse).unwrap() {
        Some(State::Hll(hll)) => assert_eq!((hll.precision().bits(), hll.value()), (5, 2)),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn every_order_of_merges_gives_the_same_value(adds in prop::collection::vec("[a-d]", 1..6)) {
        let mut values = Vec::new();
        for (counter, member) in (1..).zip(&adds) {
            values.push(after(&[], &add(member), event(counter as u8, counter)));
        }
        let forth = typed().merge(values.clone());
        values.reverse();
        let back = typed().merge(values.clone());
        prop_assert_eq!(&forth, &back);
        let pairs = values.split_first().map(|(first, rest)| {
            let mut all = typed().merge(rest.to_vec());
            all.push(first.clone());
            typed().merge(all)
        });
        prop_assert_eq!(pairs.map(|p| members(&p)), Some(members(&forth)));
    }
}
