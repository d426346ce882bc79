//! A summary allows what the whole state allows, and tells the same.

use super::*;
use crate::testing::{actor, requests};
use proptest::prelude::*;

proptest! {
    /// Deltas that were made of the summary alone equal those that were made of the state, and a
    /// copy that merges all deltas later has the same state.
    #[test]
    fn a_summary_gives_the_deltas_of_its_state(
        (kind, requests) in prop::sample::select(DataType::ALL.to_vec())
            .prop_flat_map(|kind| (Just(kind), prop::collection::vec((0..3usize, requests(kind)), 1..20))),
    ) {
        let precision = Precision::new(6).unwrap();
        let base = State::new(kind, precision);
        let (mut state, mut summary, mut deltas) = (base.clone(), Summary::of(&base, 10), Vec::new());
        for (at, request) in requests {
            let quick = summary.delta(&request, precision, &actor(at), None);
            let Ok(delta) = state.delta(&request, &actor(at), None) else {
                prop_assert_eq!(quick, None, "what the state refuses needs the state");
                continue;
            };
            state.merge_delta(quick.as_ref().unwrap_or(&delta)).unwrap();
            if let Some(quick) = &quick {
                let mut other = state.clone();
                other.merge_delta(&delta).unwrap();
                prop_assert_eq!(&other, &state, "{:?} and {:?}", quick, delta);
            }
            let delta = quick.unwrap_or(delta);
            prop_assert!(summary.add(&Delta::from_bytes(&delta.to_bytes()).unwrap(), 5));
            prop_assert_eq!(Summary::from_bytes(&summary.to_bytes()), Ok(summary.clone()));
            deltas.push(delta);
        }
        let mut later = base;
        deltas.iter().for_each(|delta| later.merge_delta(delta).unwrap());
        prop_assert_eq!(&later, &state);
        let whole = Summary { base_bytes: summary.base_bytes, added_bytes: summary.added_bytes, ..Summary::of(&state, 0) };
        prop_assert_eq!(whole, summary);
    }
}

#[test]
fn a_delta_that_builds_on_more_is_refused() {
    let mut state = State::new(DataType::Set, Precision::DEFAULT);
    let mut summary = Summary::of(&state, 0);
    let add = |name| Request::Set(vec![crate::SetOp::Add(crate::testing::bytes(name))]);
    let first = state.delta(&add("x"), &actor(0), None).unwrap();
    state.merge_delta(&first).unwrap();
    let second = state.delta(&add("y"), &actor(0), None).unwrap();
    assert!(!summary.add(&second, 1));
    assert!(!summary.add(&Delta::Counter(crate::Counter::new().delta(1, &actor(0))), 1), "of another type");
    assert_eq!(summary, Summary::of(&State::new(DataType::Set, Precision::DEFAULT), 0), "nothing was noted");
    assert!(summary.add(&first, 1) && summary.add(&second, 1));
}

#[test]
fn deltas_are_folded_when_they_are_many_beside_the_base() {
    let mut state = State::new(DataType::Set, Precision::DEFAULT);
    let delta = state.delta(&Request::Set(Vec::new()), &actor(0), None).unwrap();
    state.merge_delta(&delta).unwrap();
    for (base_bytes, bytes_max) in [(10, ADDED_BYTES_MIN), (1 << 20, 1 << 17)] {
        let mut summary = Summary::of(&state, base_bytes);
        assert!(summary.add(&delta, bytes_max));
        assert!(!summary.must_fold());
        assert!(summary.add(&delta, 1));
        assert!(summary.must_fold());
    }
}
