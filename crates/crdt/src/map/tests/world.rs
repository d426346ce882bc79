//! Replicas of a map that get requests, merge states, and get deltas late, doubled or never.

use super::super::*;
use super::model::{Id, Known, Removed, Request, actor_of};
use crate::testing::map_ops;
use proptest::prelude::*;
use std::collections::BTreeSet;

const REPLICAS: usize = 3;

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A request at a replica; with the context of an earlier moment, or without one.
    Update(usize, Vec<MapOp>, Option<prop::sample::Index>),
    Merge(usize, usize),
    Deliver(prop::sample::Index, usize),
    /// All that is there is removed.
    Delete(usize),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..REPLICAS, map_ops(2), prop::option::of(any::<prop::sample::Index>()))
            .prop_map(|(at, ops, context)| Step::Update(at, ops, context)),
        1 => (0..REPLICAS, 0..REPLICAS).prop_map(|(from, to)| Step::Merge(from, to)),
        3 => (any::<prop::sample::Index>(), 0..REPLICAS).prop_map(|(delta, to)| Step::Deliver(delta, to)),
        1 => (0..REPLICAS).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 0..40)
}

#[derive(Default)]
pub(super) struct World {
    replicas: Vec<(Map, Known)>,
    /// Contexts that clients hold, with the writes that they cover.
    contexts: Vec<(Clock, BTreeSet<Id>)>,
    /// Deltas with what their replica knew before, and what they tell.
    deltas: Vec<(MapDelta, Known, Known)>,
    next_id: Id,
}

impl World {
    pub(super) fn new() -> Self {
        Self { replicas: vec![Default::default(); REPLICAS], ..Self::default() }
    }

    pub(super) fn maps(&self) -> impl Iterator<Item = &Map> {
        self.replicas.iter().map(|(map, _)| map)
    }

    pub(super) fn step(&mut self, step: Step) {
        match step {
            Step::Update(at, ops, context) => self.update(at, &ops, context),
            Step::Merge(from, to) => {
                let (map, known) = self.replicas[from].clone();
                self.replicas[to].0.merge(&map);
                self.replicas[to].1.merge(&known);
            }
            Step::Deliver(delta, to) if !self.deltas.is_empty() => {
                let (delta, before, told) = delta.get(&self.deltas);
                let (map, known) = &mut self.replicas[to];
                // The object's clock lets nobody take a delta without a delete before it.
                if known.removes.is_superset(&before.removes) {
                    let has_past = known.ids().is_superset(&before.ids());
                    let taken = map.merge_delta(delta).is_ok();
                    assert!(has_past || !taken);
                    if taken {
                        known.merge(told);
                    }
                }
            }
            Step::Deliver(..) => {}
            Step::Delete(at) => {
                let (map, known) = &mut self.replicas[at];
                let fields = map.value().into_iter().map(|(field, _)| vec![field]);
                let removes = fields.map(|path| (path, Removed::Field, known.ids())).collect();
                let ops: Vec<_> = map.value().into_iter().map(|(field, _)| MapOp::Remove(field)).collect();
                let delta = map.delta(&ops, &crate::testing::actor(at), None).unwrap();
                map.merge_delta(&delta).unwrap();
                known.merge(&Known { removes, ..Known::default() });
            }
        }
        for (map, known) in &self.replicas {
            assert_eq!(map.value(), known.value(&Vec::new()));
            self.contexts.push((map.context().clone(), known.ids()));
        }
    }

    fn update(&mut self, at: usize, ops: &[MapOp], context: Option<prop::sample::Index>) {
        let context = context.filter(|_| !self.contexts.is_empty()).map(|index| index.get(&self.contexts).clone());
        let (map, known) = &mut self.replicas[at];
        let seen = context.as_ref().map(|(_, seen)| seen);
        let mut request =
            Request { replica: at, seen, known: known.clone(), told: Known::default(), next_id: &mut self.next_id };
        let expected = request.map(ops, &Vec::new());
        let delta = map.delta(ops, &actor_of(&request), context.as_ref().map(|(clock, _)| clock));
        let (after, told) = (request.known, request.told);
        if let Err(absent) = expected {
            assert_eq!(delta, Err(Refusal::NotPresent(absent)));
            return;
        }
        let delta = delta.unwrap();
        map.merge_delta(&delta).unwrap();
        let before = std::mem::replace(known, after);
        self.deltas.push((delta, before, told));
    }
}
