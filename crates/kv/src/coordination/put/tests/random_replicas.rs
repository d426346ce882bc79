//! Tests the write coordinator against a simple model, with random replicas and orders of events.

use crate::coordination::put::{Before, PutAction, PutCore, PutEvent, PutPlan};
use crate::coordination::{CountedSets, Replica, Weight};
use crate::requests::PutOptions;
use ombak_types::{BucketProps, Error, NodeId, Quorum, StoreFailure};

use proptest::prelude::*;

/// The tests do not depend on which node a replica is.
const NODE: NodeId = NodeId::new(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Stores,
    Fails,
    Overloaded,
    /// Its store finds that the condition does not hold.
    Conflicts,
    /// It answers that its clock is past the deadline.
    Late,
    Silent,
}

#[derive(Clone, Debug)]
struct Case {
    n: u32,
    nodes: Vec<(Replica, Behaviour)>,
    sets: CountedSets,
    options: PutOptions,
    coordinator: Option<usize>,
    order: Vec<usize>,
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        6 => Just(Behaviour::Stores),
        2 => Just(Behaviour::Fails),
        1 => Just(Behaviour::Overloaded),
        1 => Just(Behaviour::Conflicts),
        1 => Just(Behaviour::Late),
        1 => Just(Behaviour::Silent),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec((behaviour(), any::<bool>()), 1..=5);
    // The other set: how many of its positions each node has, and whether it owns them.
    let others = prop::option::of(prop::collection::vec((0u32..=3, any::<bool>()), 5));
    let quorums = (0u32..=7, 0u32..=7, 0u32..=7, 0u32..=4);
    let coordinator = any::<Option<prop::sample::Index>>();
    (1u32..=7, nodes, others, quorums, coordinator, prop::collection::vec(any::<usize>(), 8)).prop_map(
        |(n, nodes, others, (w, dw, pw, confirms), coordinator, order)| {
            let sets = if others.is_some() { CountedSets::Both } else { CountedSets::One };
            let mut others = others.into_iter().flatten();
            let count = nodes.len() as u32;
            let positions = |i: u32| (0..n).filter(|j| j % count == i).count() as u32;
            let deal = |(i, (behaviour, primary)): (u32, (Behaviour, bool))| {
                let replica =
                    if primary { Replica::primary(NODE, positions(i)) } else { Replica::fallback(NODE, positions(i)) };
                let (positions, owns) = others.next().unwrap_or_default();
                let other = Weight { positions, primaries: if owns { positions } else { 0 } };
                (Replica { other, ..replica }, behaviour)
            };
            let has_position = |r: &Replica| r.positions + r.other.positions > 0;
            let nodes: Vec<_> = (0..count).zip(nodes).map(deal).filter(|(r, _)| has_position(r)).collect();
            let count = |c: u32| Some(Quorum::Count(c % (n + 1)));
            let options = PutOptions {
                w: count(w),
                dw: count(dw),
                pw: count(pw),
                node_confirms: count(confirms),
                ..PutOptions::default()
            };
            let coordinator = coordinator.map(|i| i.index(nodes.len()));
            Case { n, nodes, sets, options, coordinator, order }
        },
    )
}

#[derive(Default)]
struct Counts {
    positions: u32,
    primaries: u32,
    nodes: u32,
}

/// The counts of the set in force, and those of the other set, if it counts.
fn counts<'a>(case: &Case, nodes: impl Iterator<Item = &'a (Replica, Behaviour)>) -> Vec<Counts> {
    let sum = |weights: &[Weight]| {
        weights.iter().filter(|w| w.positions > 0).fold(Counts::default(), |c, w| Counts {
            positions: c.positions + w.positions,
            primaries: c.primaries + w.primaries,
            nodes: c.nodes + 1,
        })
    };
    let in_force = |r: &Replica| Weight { positions: r.positions, primaries: r.primaries };
    let (first, other): (Vec<_>, Vec<_>) = nodes.map(|(r, _)| (in_force(r), r.other)).unzip();
    match case.sets {
        CountedSets::One => vec![sum(&first)],
        CountedSets::Both => vec![sum(&first), sum(&other)],
    }
}

/// The reply that the answers so far require, computed in the simplest way.
fn expected(plan: &PutPlan, case: &Case, answered: &[usize]) -> Option<Result<(), Error>> {
    let stored = counts(case, answered.iter().map(|&i| &case.nodes[i]).filter(|n| n.1 == Behaviour::Stores));
    let of_worse = |sets: &[Counts], kind: fn(&Counts) -> u32| sets.iter().map(kind).min().unwrap();
    let refuses = |i: &&usize| !matches!(case.nodes[**i].1, Behaviour::Stores | Behaviour::Late);
    let failed: Vec<_> = answered.iter().filter(refuses).collect();
    let rows = [
        ("w", plan.w, of_worse(&stored, |c| c.positions)),
        ("dw", plan.dw, of_worse(&stored, |c| c.positions)),
        ("pw", plan.pw, of_worse(&stored, |c| c.primaries)),
        ("node_confirms", plan.node_confirms, of_worse(&stored, |c| c.nodes)),
    ];
    if rows.iter().all(|(_, need, got)| got >= need) {
        return Some(Ok(()));
    }
    let left = counts(case, (0..case.nodes.len()).filter(|i| !failed.contains(&i)).map(|i| &case.nodes[i]));
    let possible = |option: &str| match option {
        "w" | "dw" => of_worse(&left, |c| c.positions),
        "pw" => of_worse(&left, |c| c.primaries),
        _ => of_worse(&left, |c| c.nodes),
    };
    let Some((option, need, got)) = rows.iter().find(|(option, need, _)| possible(option) < *need) else {
        return (answered.len() == case.nodes.len()).then_some(Err(Error::Timeout));
    };
    let (need, got) = (*need, *got);
    if let ([(_, only)], 1) = (&case.nodes[..], failed.len()) {
        return Some(Err(error_of(*only)));
    }
    let is = |behaviour| failed.iter().any(|&&i| case.nodes[i].1 == behaviour);
    Some(Err(match *option {
        _ if is(Behaviour::Conflicts) && possible("pw") < plan.pw => Error::Modified,
        _ if !is(Behaviour::Conflicts) && !is(Behaviour::Fails) => Error::Overload,
        "node_confirms" => Error::NodeConfirmsUnsatisfied { need, got },
        option => Error::QuorumUnsatisfied { option, need, got },
    }))
}

fn error_of(behaviour: Behaviour) -> Error {
    match behaviour {
        Behaviour::Overloaded => Error::Overload,
        Behaviour::Late => Error::Timeout,
        Behaviour::Conflicts => Error::Modified,
        _ => Error::Storage(StoreFailure::internal("broken")),
    }
}

fn run(case: &Case, plan: PutPlan) -> Result<(), TestCaseError> {
    let replicas: Vec<Replica> = case.nodes.iter().map(|n| n.0).collect();
    let (mut core, mut actions) = PutCore::start(plan, &replicas);
    let (mut pending, mut asked, mut answered) = (Vec::new(), Vec::new(), Vec::new());
    let (mut reply, mut done) = (None, false);
    let mut model = None;
    let mut order = case.order.iter().cycle();
    loop {
        for action in actions {
            prop_assert!(!done, "something follows Done");
            match action {
                PutAction::Coordinate { replica } => {
                    prop_assert_eq!(plan.coordinator, Some(replica));
                    prop_assert!(asked.is_empty());
                    pending.push(replica);
                    asked.push(replica);
                }
                PutAction::Store { replica } => {
                    prop_assert!(plan.coordinator.is_none_or(|c| answered.contains(&c) && c != replica));
                    prop_assert!(!asked.contains(&replica), "asked twice");
                    pending.push(replica);
                    asked.push(replica);
                }
                PutAction::Reply(said) => {
                    prop_assert!(reply.is_none(), "two replies");
                    reply = Some(said);
                }
                PutAction::Done => done = true,
            }
        }
        if model.is_some() || done {
            prop_assert_eq!(&reply, &model);
        } else {
            prop_assert_eq!(&reply, &None, "a reply that the answers do not ask for");
        }
        if done {
            break;
        }
        let awake: Vec<usize> = pending.iter().copied().filter(|&i| case.nodes[i].1 != Behaviour::Silent).collect();
        let event = if awake.is_empty() {
            model = model.or(Some(Err(Error::Timeout)));
            PutEvent::Timeout
        } else {
            let replica = awake[order.next().unwrap() % awake.len()];
            pending.retain(|&i| i != replica);
            answered.push(replica);
            model = model.or_else(|| expected(&plan, case, &answered));
            match case.nodes[replica].1 {
                Behaviour::Stores => PutEvent::Stored { replica },
                Behaviour::Conflicts => PutEvent::Conflict { replica },
                other => PutEvent::Failed { replica, error: error_of(other) },
            }
        };
        actions = core.on(event);
    }
    prop_assert!(core.on(PutEvent::Timeout).is_empty(), "nothing after Done");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_write_follows_the_model(case in case()) {
        let replicas: Vec<Replica> = case.nodes.iter().map(|n| n.0).collect();
        let props = BucketProps { n_val: case.n, ..BucketProps::default() };
        let Ok(plan) = PutPlan::new(&case.options, &props, case.n, &replicas, case.sets) else { return Ok(()) };
        run(&case, PutPlan { coordinator: case.coordinator, ..plan })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// A write that is counted anew ends like one that began with the other replicas, of which some
    /// had answered at once.
    #[test]
    fn a_write_that_is_counted_anew_follows_the_model(
        case in case(),
        first in case(),
        before in prop::collection::vec(0u8..3, 5),
    ) {
        let replicas: Vec<Replica> = case.nodes.iter().map(|n| n.0).collect();
        let props = BucketProps { n_val: case.n, ..BucketProps::default() };
        let Ok(plan) = PutPlan::new(&case.options, &props, case.n, &replicas, case.sets) else { return Ok(()) };
        let old: Vec<Replica> = first.nodes.iter().map(|n| n.0).collect();
        let (mut core, _) = PutCore::start(PutPlan { sets: first.sets, coordinator: Some(0), ..plan }, &old);
        let unknown = PutEvent::Failed { replica: 9, error: Error::Overload };
        prop_assert!(core.on(unknown).is_empty());
        // Replicas of the new list that have stored it, or have failed with a broken store.
        let has = |i: usize| [Before::Nothing, Before::Stored, Before::Failed][usize::from(before[i])];
        let mut known = case.clone();
        let mut answered = Vec::new();
        for (i, node) in known.nodes.iter_mut().enumerate() {
            match has(i) {
                Before::Nothing => continue,
                Before::Stored => node.1 = Behaviour::Stores,
                Before::Failed => node.1 = Behaviour::Fails,
            }
            answered.push(i);
        }
        let list: Vec<_> = replicas.iter().enumerate().map(|(i, r)| (*r, has(i))).collect();
        let mut actions = core.recount(case.sets, &list);
        let mut reply = None;
        let mut rest: Vec<usize> = (0..list.len()).filter(|i| has(*i) == Before::Nothing).collect();
        let sent = |actions: &[PutAction]| {
            actions.iter().filter_map(|a| if let PutAction::Store { replica } = a { Some(*replica) } else { None }).collect::<Vec<_>>()
        };
        prop_assert_eq!(sent(&actions), rest.clone(), "each replica that has nothing is sent the version, and no other");
        let mut model = None;
        loop {
            reply = reply.or(actions.iter().find_map(|a| if let PutAction::Reply(said) = a { Some(said.clone()) } else { None }));
            // The error of an only replica that failed before was told before.
            let is_only_failed = list.len() == 1 && has(0) == Before::Failed;
            model = model.or_else(|| expected(&plan, &known, &answered));
            if !is_only_failed {
                prop_assert_eq!(&reply, &model);
            }
            if actions.contains(&PutAction::Done) || rest.is_empty() {
                break;
            }
            let replica = rest.remove(case.order[rest.len() % 8] % rest.len());
            answered.push(replica);
            actions = core.on(match known.nodes[replica].1 {
                Behaviour::Stores => PutEvent::Stored { replica },
                Behaviour::Conflicts => PutEvent::Conflict { replica },
                Behaviour::Silent => { known.nodes[replica].1 = Behaviour::Late; PutEvent::Failed { replica, error: Error::Timeout } }
                other => PutEvent::Failed { replica, error: error_of(other) },
            });
        }
    }
}

/// Whoever first tells that the time is over: a late replica, or the timer of the coordinator.
#[test]
fn a_late_answer_and_the_timer_end_a_write_alike() {
    let replicas = [Replica::primary(NODE, 1), Replica::primary(NODE, 1)];
    let options = PutOptions { w: Some(Quorum::All), ..PutOptions::default() };
    let plan =
        PutPlan::new(&options, &BucketProps { n_val: 2, ..BucketProps::default() }, 2, &replicas, CountedSets::One)
            .unwrap();
    let timeout = PutAction::Reply(Err(Error::Timeout));
    for late in [PutEvent::Failed { replica: 1, error: Error::Timeout }, PutEvent::Timeout] {
        let (mut core, _) = PutCore::start(plan, &replicas);
        assert_eq!(core.on(PutEvent::Stored { replica: 0 }).to_vec(), []);
        assert_eq!(core.on(late).to_vec(), [timeout.clone(), PutAction::Done]);
    }
}

/// The event exists, so the others must get it.
#[test]
fn the_others_get_a_version_that_its_coordinator_could_not_sync() {
    let replicas = [Replica::primary(NODE, 1), Replica::primary(NODE, 1), Replica::primary(NODE, 1)];
    let plan = PutPlan::new(&PutOptions::default(), &BucketProps::default(), 3, &replicas, CountedSets::One).unwrap();
    let (mut core, _) = PutCore::start(PutPlan { coordinator: Some(0), ..plan }, &replicas);
    let error = StoreFailure::internal("the sync failed").into();
    let stores = [PutAction::Store { replica: 1 }, PutAction::Store { replica: 2 }];
    assert_eq!(core.on(PutEvent::Failed { replica: 0, error }).to_vec(), stores);
    assert_eq!(core.on(PutEvent::Stored { replica: 1 }).to_vec(), []);
    assert_eq!(core.on(PutEvent::Stored { replica: 2 }).to_vec(), [PutAction::Reply(Ok(())), PutAction::Done]);
}
