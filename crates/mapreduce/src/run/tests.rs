//! Tests of the course of a job. A world carries out its orders in any order, loses answers, gives
//! them twice, and gives results in pieces; the results are those of the plain calculation.

mod world;

use super::*;
use crate::{MapFunction, Mapper, ReduceFunction, Reducer, ScriptSource};
use ombak_types::Bucket;
use proptest::prelude::*;
use std::time::Duration;
use world::World;

fn map(keep: bool) -> Phase {
    Phase::Map { function: Mapper::Native(MapFunction::ObjectValue), arg: Term::atom("none").into(), keep }
}

fn reduce(function: ReduceFunction, keep: bool) -> Phase {
    Phase::Reduce { function: Reducer::Native(function), arg: Term::atom("none").into(), keep }
}

fn script(arg: Term) -> Phase {
    let function = Reducer::Script(ScriptSource::Source("function(v) { return v; }".to_owned()));
    Phase::Reduce { function, arg: arg.into(), keep: true }
}

fn job(phases: Vec<Phase>) -> Job {
    Job { inputs: crate::Inputs::Keys(crate::InputList::default()), phases, timeout: Duration::from_secs(60) }
}

fn key(n: u32) -> Input {
    Input::new(Bucket::untyped("b"), Bytes::from(format!("{n:04}")))
}

fn keys(count: u32) -> Vec<Input> {
    (0..count).map(key).collect()
}

fn orders(run: &mut JobRun) -> Vec<Order> {
    std::iter::from_fn(|| run.next_order()).collect()
}

fn attempt_of(order: &Order) -> Attempt {
    match order {
        Order::Run { attempt, .. } => *attempt,
        other => panic!("{other:?}"),
    }
}

fn jobs() -> impl Strategy<Value = Vec<Phase>> {
    use ReduceFunction::{CountInputs, Identity, SetUnion, Sort};
    let keep = any::<bool>();
    prop_oneof![
        Just(Vec::new()),
        keep.prop_map(|keep| vec![map(keep)]),
        keep.prop_map(|keep| vec![reduce(CountInputs, keep)]),
        (keep, keep).prop_map(|(a, b)| vec![map(a), reduce(CountInputs, b)]),
        (keep, keep).prop_map(|(a, b)| vec![reduce(SetUnion, a), map(b)]),
        (keep, keep).prop_map(|(a, b)| vec![map(a), reduce(Identity, b), reduce(CountInputs, true)]),
        keep.prop_map(|keep| vec![reduce(Identity, keep), map(true)]),
        (keep, keep, keep).prop_map(|(a, b, c)| vec![map(a), map(b), reduce(Sort, c)]),
        (keep, keep, keep).prop_map(|(a, b, c)| vec![map(a), reduce(Sort, b), map(c), reduce(CountInputs, true)]),
        keep.prop_map(|keep| vec![
            map(keep),
            script(crate::from_json(&serde_json::json!({"reduce_phase_only_1": true}).into()))
        ]),
    ]
}

proptest! {
    #[test]
    fn results_are_those_of_the_plain_calculation(
        phases in jobs(),
        count in 0_u32..60,
        by_shares in any::<bool>(),
        choices in prop::collection::vec(any::<u8>(), 1..400),
        keys_per_part_max in 1_usize..8,
        reduce_values_min in 1_usize..8,
        parts_at_once_max in 1_usize..5,
        waiting_bytes_max in prop_oneof![Just(1_usize), Just(2000), Just(1 << 20)],
    ) {
        let limits = RunLimits {
            keys_per_part_max, reduce_values_min, parts_at_once_max, waiting_bytes_max, attempts_max: world::LOSSES_MAX + 1,
            ..RunLimits::default()
        };
        let job = job(phases);
        let mut world = World::new(&job, keys(count), &choices, limits);
        let found = world.run(by_shares);
        prop_assert_eq!(found, world.expected());
        prop_assert!(world.parts_at_once <= parts_at_once_max);
    }
}

#[test]
fn a_reduce_phase_without_inputs_is_called_once() {
    let job = job(vec![map(false), reduce(ReduceFunction::CountInputs, true)]);
    for source in [Source::Keys, Source::Shares(0)] {
        let mut run = JobRun::new(&job, source, RunLimits::default());
        run.end_keys();
        assert_eq!(orders(&mut run), [Order::Reduce { phase: 1, values: vec![] }]);
        run.reduced(1, Ok(vec![Term::Int(0)].into()));
        let given = Order::Give { phase: 1, values: vec![Term::Int(0)] };
        assert_eq!(orders(&mut run), [given, Order::End(Ok(()))]);
    }
}

#[test]
fn an_answer_counts_once_and_only_from_the_newest_attempt() {
    let job = job(vec![map(true)]);
    let mut run = JobRun::new(&job, Source::Shares(1), RunLimits::default());
    let first = attempt_of(&orders(&mut run)[0]);
    run.part_lost(first, "it is down");
    let again = orders(&mut run);
    let second = attempt_of(&again[0]);
    assert_eq!(first.part, second.part);
    // The node that was taken for dead answers after all.
    run.part_done(first, vec![Term::Int(1)].into(), None);
    run.part_lost(first, "it is down");
    run.part_failed(first, Failure::Timeout);
    assert_eq!(orders(&mut run), []);
    run.part_done(second, vec![Term::Int(2)].into(), None);
    let given = Order::Give { phase: 0, values: vec![Term::Int(2)] };
    assert_eq!(orders(&mut run), [given, Order::End(Ok(()))]);
    run.part_done(second, vec![Term::Int(2)].into(), None);
    assert_eq!(orders(&mut run), []);
}

#[test]
fn a_part_goes_on_where_its_last_results_ended() {
    let job = job(vec![map(true)]);
    let mut run = JobRun::new(&job, Source::Shares(1), RunLimits::default());
    let first = attempt_of(&orders(&mut run)[0]);
    run.part_done(first, vec![Term::Int(1)].into(), Some(Bytes::from_static(b"m")));
    let next = orders(&mut run);
    assert_eq!(next[0], Order::Give { phase: 0, values: vec![Term::Int(1)] });
    let Order::Run { attempt, from: Some(from), .. } = &next[1] else { panic!("{next:?}") };
    assert_eq!(from, "m");
    // A piece that is lost begins there again, and the results before it stay.
    run.part_lost(*attempt, "it is down");
    let Order::Run { attempt, from: Some(from), .. } = &orders(&mut run)[0] else { panic!("no attempt") };
    assert_eq!(from, "m");
    run.part_done(*attempt, Values::default(), None);
    assert_eq!(orders(&mut run), [Order::End(Ok(()))]);
}

#[test]
fn a_part_that_is_always_lost_fails_the_job() {
    let job = job(vec![map(true)]);
    let limits = RunLimits { attempts_max: 3, ..RunLimits::default() };
    let mut run = JobRun::new(&job, Source::Shares(2), limits);
    let first = orders(&mut run);
    let (lost, other) = (attempt_of(&first[0]), attempt_of(&first[1]));
    run.part_lost(lost, "it is down");
    for _ in 0..2 {
        let again = attempt_of(&orders(&mut run)[0]);
        run.part_lost(again, "it is down");
    }
    let last = orders(&mut run);
    assert_eq!(last[0], Order::Stop(other), "the other part is stopped");
    let why = "no node could do a part of the job: it is down".to_owned();
    assert_eq!(last[1..], [Order::End(Err(Failure::Other(why)))]);
}

#[test]
fn only_losses_since_the_last_results_count() {
    let limits = RunLimits { attempts_max: 2, ..RunLimits::default() };
    let mut run = JobRun::new(&job(vec![map(true)]), Source::Shares(1), limits);
    let next = |run: &mut JobRun| orders(run).iter().find(|o| matches!(o, Order::Run { .. })).map(attempt_of);
    for piece in 0..5u8 {
        let lost = next(&mut run).unwrap();
        run.part_lost(lost, "it is down");
        let again = next(&mut run).unwrap();
        run.part_done(again, vec![Term::Int(1)].into(), Some(Bytes::copy_from_slice(&[piece])));
    }
    assert!(!run.has_ended());
}

#[test]
fn a_bounded_number_of_parts_runs_at_the_same_time() {
    let limits = RunLimits { parts_at_once_max: 2, ..RunLimits::default() };
    let mut run = JobRun::new(&job(vec![map(true)]), Source::Shares(5), limits);
    let mut running: Vec<Attempt> = orders(&mut run).iter().map(attempt_of).collect();
    for left in (0..5).rev() {
        assert_eq!(running.len(), 2.min(left + 1));
        run.part_done(running.remove(0), Values::default(), None);
        running.extend(orders(&mut run).iter().filter(|o| matches!(o, Order::Run { .. })).map(attempt_of));
    }
    assert!(run.has_ended());
}

#[test]
fn a_failure_ends_the_job_and_nothing_follows() {
    let job = job(vec![map(true), reduce(ReduceFunction::CountInputs, true)]);
    let failure = Failure::Phase(PhaseFailure::of_reduce(0, "x"));
    let mut run = JobRun::new(&job, Source::Shares(2), RunLimits::default());
    let parts = orders(&mut run);
    run.part_failed(attempt_of(&parts[0]), failure.clone());
    assert_eq!(orders(&mut run), [Order::Stop(attempt_of(&parts[1])), Order::End(Err(failure))]);
    run.part_done(attempt_of(&parts[1]), vec![Term::Int(1)].into(), None);
    run.add_keys(keys(3));
    run.end_keys();
    run.reduced(1, Ok(vec![].into()));
    run.stop(Failure::Timeout);
    assert_eq!(orders(&mut run), []);
    assert!(run.has_ended() && !run.wants_keys());
}

#[test]
fn what_is_no_key_fails_a_map_phase() {
    let job = job(vec![map(false), map(true)]);
    let mut run = JobRun::new(&job, Source::Shares(1), RunLimits::default());
    let part = attempt_of(&orders(&mut run)[0]);
    run.part_done(part, vec![Term::Int(1)].into(), None);
    let last = orders(&mut run);
    assert!(matches!(&last[..], [Order::End(Err(Failure::Phase(PhaseFailure { phase: 1, .. })))]), "{last:?}");
}

/// Allows the bucket `b` alone.
struct OnlyB;

impl BucketAccess for OnlyB {
    fn may_read(&self, bucket: &Bucket) -> Result<(), String> {
        if *bucket == Bucket::untyped("b") { Ok(()) } else { Err(format!("no {bucket:?}")) }
    }
}

fn elsewhere() -> Input {
    Input::new(Bucket::untyped("other"), Bytes::from_static(b"k"))
}

#[test]
fn a_key_of_a_bucket_that_is_refused_fails_the_job_wherever_it_comes_from() {
    let refused = Order::End(Err(Failure::Forbidden("no default/other".to_owned())));
    let begin = |phases: Vec<Phase>, source: Source| {
        JobRun::new(&job(phases), source, RunLimits::default()).with_access(Some(Arc::new(OnlyB)))
    };
    let mut given = begin(vec![map(true)], Source::Keys);
    given.add_keys(vec![key(1), elsewhere()]);
    assert_eq!(orders(&mut given), std::slice::from_ref(&refused), "a key of the inputs");

    for phases in [vec![], vec![reduce(ReduceFunction::CountInputs, true)]] {
        let mut unread = begin(phases, Source::Keys);
        unread.add_keys(vec![key(1), elsewhere()]);
        assert_eq!(orders(&mut unread), std::slice::from_ref(&refused), "a key whose object nobody reads");
    }

    let mut made = begin(vec![map(true), map(true)], Source::Shares(1));
    let part = attempt_of(&orders(&mut made)[0]);
    made.part_done(part, vec![key(1).to_term(), elsewhere().to_term()].into(), None);
    assert_eq!(orders(&mut made), std::slice::from_ref(&refused), "a result of a map phase, which nobody gets");

    let mut reduced = begin(vec![reduce(ReduceFunction::Identity, true), map(true)], Source::Keys);
    reduced.end_keys();
    assert!(matches!(&orders(&mut reduced)[..], [Order::Reduce { phase: 0, .. }]));
    reduced.reduced(0, Ok(vec![elsewhere().to_term()].into()));
    assert_eq!(orders(&mut reduced), std::slice::from_ref(&refused), "a result of a reduce phase");

    // The results of two calls are handed over one after the other.
    let limits = RunLimits { reduce_values_min: 1, ..RunLimits::default() };
    let job = job(vec![reduce(ReduceFunction::StringToInteger, true), map(true)]);
    let mut twice = JobRun::new(&job, Source::Keys, limits).with_access(Some(Arc::new(OnlyB)));
    for made in [elsewhere(), key(1)] {
        twice.add_keys(vec![key(2)]);
        assert!(matches!(&orders(&mut twice)[..], [Order::Reduce { phase: 0, .. }]));
        twice.reduced(0, Ok(vec![made.to_term()].into()));
    }
    twice.end_keys();
    assert_eq!(orders(&mut twice), [refused], "nothing follows the end");

    let mut allowed = begin(vec![map(false), map(true)], Source::Shares(1));
    let part = attempt_of(&orders(&mut allowed)[0]);
    allowed.part_done(part, vec![key(1).to_term()].into(), None);
    assert!(matches!(&orders(&mut allowed)[..], [Order::Run { map: Some(1), .. }]));
}

#[test]
fn a_reduce_phase_that_holds_too_much_fails_the_job() {
    let limits = RunLimits { reduce_bytes_max: 10_000, ..RunLimits::default() };
    let only_once = crate::from_json(&serde_json::json!({"reduce_phase_only_1": true}).into());
    for phases in [vec![reduce(ReduceFunction::SetUnion, true)], vec![script(only_once)]] {
        let mut run = JobRun::new(&job(phases), Source::Keys, limits);
        for n in 0..1000 {
            run.add_keys(vec![key(n)]);
            for order in orders(&mut run) {
                match order {
                    Order::Reduce { phase, values } => run.reduced(phase, Ok(Values::concat(values).into())),
                    Order::End(result) => {
                        assert!(matches!(result, Err(Failure::Phase(PhaseFailure { phase: 0, .. }))), "{result:?}");
                        assert!(n < 200);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(run.has_ended());
    }
}

/// A few keys that are not enough for a part must not hold up the stage in front of them for ever.
#[test]
fn keys_that_fill_all_room_are_a_part() {
    let limits = RunLimits { waiting_bytes_max: 1, ..RunLimits::default() };
    let mut run = JobRun::new(&job(vec![map(false), map(true)]), Source::Shares(2), limits);
    let parts = orders(&mut run);
    run.part_done(attempt_of(&parts[0]), vec![key(1).to_term()].into(), Some(Bytes::from_static(b"m")));
    let next = orders(&mut run);
    assert!(matches!(&next[0], Order::Run { map: Some(1), .. }), "{next:?}");
}

#[test]
fn keys_wait_until_there_is_room() {
    let limits =
        RunLimits { parts_at_once_max: 1, keys_per_part_max: 2, waiting_bytes_max: 1000, ..RunLimits::default() };
    let mut run = JobRun::new(&job(vec![map(true)]), Source::Keys, limits);
    let mut taken = 0;
    while run.wants_keys() {
        run.add_keys(vec![key(taken)]);
        taken += 1;
    }
    assert!(taken < 30, "{taken}");
    let part = attempt_of(&orders(&mut run)[0]);
    run.part_done(part, vec![].into(), None);
    let part = attempt_of(&orders(&mut run)[0]);
    run.part_done(part, vec![].into(), None);
    assert!(run.wants_keys());
}

#[test]
fn results_are_reduced_before_they_travel_only_where_that_changes_nothing() {
    let asked = |wanted: bool| {
        let arg = crate::from_json(&serde_json::json!({"prereduce": wanted}).into());
        Phase::Map { function: Mapper::Native(MapFunction::ObjectValue), arg: arg.into(), keep: false }
    };
    let count = || reduce(ReduceFunction::CountInputs, true);
    let user = || script(Term::atom("none"));
    let only_once = || script(crate::from_json(&serde_json::json!({"reduce_phase_only_1": true}).into()));
    for (phases, expected) in [
        (vec![map(false), count()], Some(1)),
        (vec![map(true), count()], None),
        (vec![count()], Some(0)),
        (vec![map(false), user()], None),
        (vec![asked(true), user()], Some(1)),
        (vec![asked(false), count()], None),
        (vec![asked(true), only_once()], None),
        (vec![map(false), map(true)], None),
    ] {
        let mut run = JobRun::new(&job(phases.clone()), Source::Shares(1), RunLimits::default());
        let Order::Run { prereduce, .. } = &orders(&mut run)[0] else { panic!("no part") };
        assert_eq!(*prereduce, expected, "{phases:?}");
    }
}

/// A list of results that grew with each call and was copied for it would cost the square of its
/// length.
#[test]
fn a_function_that_takes_each_value_alone_gets_it_once() {
    let strings = reduce(ReduceFunction::StringToInteger, true);
    let limits = RunLimits { reduce_values_min: 1, ..RunLimits::default() };
    let mut run = JobRun::new(&job(vec![map(false), strings]), Source::Shares(2), limits);
    let mut given = Vec::new();
    let mut pending = orders(&mut run);
    let mut number = 0;
    while let Some(order) = pending.pop() {
        match order {
            Order::Run { attempt, .. } => {
                number += 1;
                run.part_done(attempt, vec![Term::Int(number)].into(), None);
            }
            Order::Reduce { phase, values } => {
                let values = Values::concat(values);
                assert_eq!(values.len(), 1);
                run.reduced(phase, Ok(values.into()));
            }
            Order::Give { values, .. } => given.extend(values),
            other => assert_eq!(other, Order::End(Ok(()))),
        }
        pending.extend(orders(&mut run));
    }
    given.sort_by(crate::term::order);
    assert_eq!(given, [Term::Int(1), Term::Int(2)]);
}
