//! A set against its specification: a member is there if it was added by a request that no removal
//! of it has observed.

use super::*;
use crate::RiakValue;
use crate::testing::{actor, bytes};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const REPLICAS: usize = 3;

/// What a replica knows, by the specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// Additions by their numbers.
    adds: BTreeMap<usize, Bytes>,
    /// Removals: a member, and the additions that were observed.
    removes: BTreeSet<(Bytes, BTreeSet<usize>)>,
}

impl Known {
    fn merge(&mut self, other: &Self) {
        self.adds.extend(other.adds.clone());
        self.removes.extend(other.removes.clone());
    }

    fn members(&self) -> BTreeSet<Bytes> {
        let removed =
            |id: &usize, member: &Bytes| self.removes.iter().any(|(m, seen)| m == member && seen.contains(id));
        self.adds.iter().filter(|(id, member)| !removed(id, member)).map(|(_, member)| member.clone()).collect()
    }

    fn ids(&self) -> BTreeSet<usize> {
        self.adds.keys().copied().collect()
    }
}

/// The operations of one request: additions and removals of members that are letters.
type Request = Vec<(bool, u8)>;

#[derive(Clone, Debug)]
enum Step {
    /// A request at a replica; with the context of an earlier moment, or without one.
    Update(usize, Request, Option<prop::sample::Index>),
    Merge(usize, usize),
    Deliver(prop::sample::Index, usize),
    /// All that is there is removed.
    Delete(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let request = prop::collection::vec((any::<bool>(), 0..3u8), 1..4);
    let step = prop_oneof![
        3 => (0..REPLICAS, request, prop::option::of(any::<prop::sample::Index>()))
            .prop_map(|(at, request, context)| Step::Update(at, request, context)),
        1 => (0..REPLICAS, 0..REPLICAS).prop_map(|(from, to)| Step::Merge(from, to)),
        3 => (any::<prop::sample::Index>(), 0..REPLICAS).prop_map(|(delta, to)| Step::Deliver(delta, to)),
        1 => (0..REPLICAS).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 0..40)
}

#[derive(Default)]
struct World {
    replicas: Vec<(Set, Known)>,
    /// Contexts that clients hold, with the additions that they cover.
    contexts: Vec<(Clock, BTreeSet<usize>)>,
    /// Deltas with what they tell.
    deltas: Vec<(SetDelta, Known)>,
    adds: usize,
}

impl World {
    fn new() -> Self {
        Self { replicas: vec![Default::default(); REPLICAS], ..Self::default() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Update(at, request, context) => self.update(at, &request, context),
            Step::Merge(from, to) => {
                let (set, known) = self.replicas[from].clone();
                self.replicas[to].0.merge(&set);
                self.replicas[to].1.merge(&known);
            }
            Step::Deliver(delta, to) if !self.deltas.is_empty() => {
                let (delta, told) = delta.get(&self.deltas);
                let (set, known) = &mut self.replicas[to];
                if set.merge_delta(delta).is_ok() {
                    known.merge(told);
                }
            }
            Step::Deliver(..) => {}
            Step::Delete(at) => {
                let (set, known) = &mut self.replicas[at];
                let removes: Vec<_> = set.members().cloned().map(SetOp::Remove).collect();
                let delta = set.delta(&removes, &actor(at), None).unwrap();
                set.merge_delta(&delta).unwrap();
                let removes = known.members().into_iter().map(|member| (member, known.ids())).collect();
                known.merge(&Known { removes, ..Known::default() });
            }
        }
        for (set, known) in &self.replicas {
            assert_eq!(set.members().cloned().collect::<BTreeSet<_>>(), known.members());
            self.contexts.push((set.context().clone(), known.ids()));
        }
    }

    fn update(&mut self, at: usize, request: &Request, context: Option<prop::sample::Index>) {
        let context = context.filter(|_| !self.contexts.is_empty()).map(|index| index.get(&self.contexts).clone());
        let name = |letter: u8| Bytes::copy_from_slice(&[b'a' + letter]);
        let op = |(is_add, letter): &(bool, u8)| {
            if *is_add { SetOp::Add(name(*letter)) } else { SetOp::Remove(name(*letter)) }
        };
        let ops: Vec<SetOp> = request.iter().map(op).collect();
        let (set, known) = &mut self.replicas[at];
        let delta = set.delta(&ops, &actor(at), context.as_ref().map(|(clock, _)| clock));
        let (mut after, mut told) = (known.clone(), Known::default());
        let mut refused = None;
        for (is_add, letter) in request {
            let member = name(*letter);
            let event = if *is_add {
                self.adds += 1;
                Known { adds: [(self.adds, member)].into(), ..Known::default() }
            } else {
                if context.is_none() && !after.members().contains(&member) {
                    refused = Some(Refusal::NotPresent(Absent::Member(member)));
                    break;
                }
                let seen = context.as_ref().map_or_else(|| after.ids(), |(_, seen)| seen.clone());
                Known { removes: [(member, seen)].into(), ..Known::default() }
            };
            after.merge(&event);
            told.merge(&event);
        }
        if let Some(refusal) = refused {
            assert_eq!(delta, Err(refusal));
            return;
        }
        let delta = delta.unwrap();
        if let Some(same) = Set::delta_of_clock(&set.clock, &ops, &actor(at), context.as_ref().map(|(clock, _)| clock))
        {
            assert_eq!(same, delta);
        }
        set.merge_delta(&delta).unwrap();
        *known = after;
        self.deltas.push((delta, told));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_set_is_what_its_specification_says(steps in steps()) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        let sets: Vec<&Set> = world.replicas.iter().map(|(set, _)| set).collect();
        check_laws(&sets);
    }
}

/// Merging is associative, commutative and idempotent, to the last dot.
fn check_laws(sets: &[&Set]) {
    let join = |left: &Set, right: &Set| {
        let mut left = left.clone();
        left.merge(right);
        left
    };
    let [a, b, c] = sets else { unreachable!() };
    assert_eq!(join(a, a), **a);
    assert_eq!(join(a, b), join(b, a));
    assert_eq!(join(&join(a, b), c), join(a, &join(b, c)));
    assert_eq!(join(&join(a, b), b), join(a, b));
    let value = RiakValue::Set(join(a, b));
    assert_eq!(RiakValue::from_bytes(&value.to_bytes()), Ok(value));
}

fn set_with(members: &[&str]) -> Set {
    let ops: Vec<SetOp> = members.iter().map(|member| SetOp::Add(bytes(member))).collect();
    let mut set = Set::new();
    set.merge_delta(&set.delta(&ops, &actor(0), None).unwrap()).unwrap();
    set
}

#[test]
fn a_refused_request_changes_nothing() {
    let set = set_with(&["a"]);
    let ops = [SetOp::Add(bytes("b")), SetOp::Remove(bytes("zork"))];
    let refusal = set.delta(&ops, &actor(0), None).unwrap_err();
    assert_eq!(refusal.to_string(), "{precondition,{not_present,<<\"zork\">>}}");
    assert_eq!(Set::delta_of_clock(&set.clock, &ops, &actor(0), None), None);
}

#[test]
fn a_removal_waits_for_what_its_client_has_seen() {
    let seen = set_with(&["a", "b"]);
    let mut late = Set::new();
    let delta = late.delta(&[SetOp::Remove(bytes("a"))], &actor(1), Some(seen.context())).unwrap();
    late.merge_delta(&delta).unwrap();
    assert_eq!(late.deferred_len(), 1);
    late.merge(&seen);
    assert_eq!(late.members().collect::<Vec<_>>(), [&bytes("b")]);
    assert_eq!(late.deferred_len(), 0);
}

#[test]
fn a_delta_that_builds_on_a_lost_one_is_refused() {
    let mut set = set_with(&["a"]);
    let lost = set.delta(&[SetOp::Add(bytes("b"))], &actor(0), None).unwrap();
    let mut behind = set.clone();
    set.merge_delta(&lost).unwrap();
    let next = set.delta(&[SetOp::Add(bytes("c"))], &actor(0), None).unwrap();
    assert_eq!(behind.clone().merge_delta(&next), Err(MissingPast));
    behind.merge_delta(&lost).unwrap();
    behind.merge_delta(&next).unwrap();
    assert_eq!(behind.members().count(), 3);
}
