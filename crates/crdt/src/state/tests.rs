use super::*;
use crate::testing::{actor, bytes};
use crate::{Absent, MissingPast, SetOp};

fn updated(state: &State, replica: usize, request: Request) -> State {
    let mut state = state.clone();
    state.merge_delta(&state.delta(&request, &actor(replica), None).unwrap()).unwrap();
    state
}

fn add(name: &str) -> Request {
    Request::Set(vec![SetOp::Add(bytes(name))])
}

#[test]
fn what_was_removed_stays_removed() {
    let deleted = updated(&State::new(DataType::Set, Precision::DEFAULT), 0, add("old"));
    let concurrent = updated(&deleted, 1, add("concurrent"));
    let begun = updated(&deleted, 0, Request::Set(vec![SetOp::Remove(bytes("old"))]));
    assert_eq!(begun.value(), Value::Set(Vec::new()));
    let mut begun = updated(&begun, 0, add("new"));
    begun.merge(&deleted).unwrap();
    assert_eq!(begun.value(), Value::Set(vec![bytes("new")]));
    begun.merge(&concurrent).unwrap();
    assert_eq!(begun.value(), Value::Set(vec![bytes("concurrent"), bytes("new")]));
}

#[test]
fn types_do_not_mix() {
    let mut set = State::new(DataType::Set, Precision::DEFAULT);
    for kind in DataType::ALL {
        let other = State::new(kind, Precision::DEFAULT);
        assert_eq!(
            (other.kind(), other.actor_count().is_some()),
            (kind, !matches!(kind, DataType::Gset | DataType::Hll))
        );
        assert_eq!(set.merge(&other).is_ok(), kind == DataType::Set);
        assert_eq!(other.delta(&add("x"), &actor(0), None).is_ok(), kind == DataType::Set);
    }
    let counted = State::new(DataType::Counter, Precision::DEFAULT).delta(&Request::Counter(1), &actor(0), None);
    assert_eq!(set.merge_delta(&counted.unwrap()), Err(CannotMerge::WrongType));
}

#[test]
fn refusals_and_missing_deltas_are_told_apart() {
    let set = State::new(DataType::Set, Precision::DEFAULT);
    let removal = Request::Set(vec![SetOp::Remove(bytes("x"))]);
    assert_eq!(set.delta(&removal, &actor(0), None), Err(Refusal::NotPresent(Absent::Member(bytes("x")))));
    let next = updated(&set, 0, add("x")).delta(&add("y"), &actor(0), None).unwrap();
    assert_eq!(set.clone().merge_delta(&next), Err(CannotMerge::MissingPast(MissingPast)));
}
