//! Values of kinds in merges: copies change by operations, and nothing of a value is lost.
//!
//! A value here is the sorted list of the events that its copy has seen, one byte each, so that two
//! values merge into the union. That is what data types promise about their states.

use super::super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const KIND: u16 = 7;
const REPLICAS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    /// A replica applies an operation. Its copies of the value become one.
    Operate { replica: usize },
    /// A replica takes the one new event of another replica's copy, if it has all before it.
    Add { from: usize, to: usize },
    /// A replica merges another replica's whole copy.
    Send { from: usize, to: usize },
    /// A client that has read one replica puts a plain value or a tombstone through another.
    Put { read: usize, replica: usize, is_delete: bool },
}

fn any_step() -> impl Strategy<Value = Step> {
    let replica = || 0..REPLICAS;
    prop_oneof![
        4 => replica().prop_map(|replica| Step::Operate { replica }),
        3 => (replica(), replica()).prop_map(|(from, to)| Step::Send { from, to }),
        3 => (replica(), replica()).prop_map(|(from, to)| Step::Add { from, to }),
        1 => (replica(), replica(), any::<bool>())
            .prop_map(|(read, replica, is_delete)| Step::Put { read, replica, is_delete }),
    ]
}

fn value_of(object: &Object) -> BTreeSet<u8> {
    object.siblings.iter().filter(|s| s.is_of_a_kind()).flat_map(|s| s.value.iter().copied()).collect()
}

/// Makes one value of all that an object has.
fn join(object: &mut Object) {
    let members = value_of(object);
    let newest = object.siblings.iter().filter(|s| s.is_of_a_kind()).max_by_key(|s| s.meta.last_modified);
    let Some(mut meta) = newest.map(|s| s.meta.clone()) else { return };
    let mut events = VectorClock::new();
    object.siblings.iter().filter(|s| s.is_of_a_kind()).for_each(|s| events.merge(&s.events()));
    meta.of_kind = Some(Box::new(KindState { events, summary: Bytes::new() }));
    object.siblings.retain(|s| !s.is_of_a_kind());
    object.siblings.push(Sibling { value: members.into_iter().collect::<Vec<_>>().into(), meta });
    object.order_siblings();
}

#[derive(Default)]
struct World {
    copies: [Object; REPLICAS],
    events: u8,
    /// How often each replica has begun to use another actor.
    epochs: [u8; REPLICAS],
}

impl World {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Operate { replica } => self.operate(replica),
            Step::Send { from, to } => {
                let sent = self.copies[from].clone();
                self.copies[to].merge(sent);
                join(&mut self.copies[to]);
            }
            Step::Add { from, to } => self.add(from, to),
            Step::Put { read, replica, is_delete } => {
                self.events += 1;
                let mut value = if is_delete { Sibling::tombstone() } else { Sibling::new(vec![0, self.events]) };
                value.meta.last_modified = Some(UnixMicros(self.events.into()));
                let sent = Object { clock: self.copies[read].clock.clone(), siblings: vec![value] };
                let actor = Actor::new(&[replica as u8 + 1, self.epochs[replica]]);
                let local = std::mem::take(&mut self.copies[replica]);
                let local = (!local.clock.is_empty()).then_some(local);
                self.copies[replica] = Object::coordinate(local, sent, &actor, UnixMicros(1), true);
            }
        }
    }

    fn operate(&mut self, replica: usize) {
        self.events += 1;
        let (event, copy) = (self.events, &mut self.copies[replica]);
        join(copy);
        let value = copy.siblings.iter().find(|s| s.is_of_a_kind()).map(|s| s.events().into_owned());
        let actor = |epoch: u8| Actor::new(&[replica as u8 + 1, epoch]);
        let is_all_there = |actor: &Actor| value.unwrap_or_default().counter(actor) == copy.clock.counter(actor);
        // An actor whose other events were deleted is not used for the value.
        if !is_all_there(&actor(self.epochs[replica])) {
            self.epochs[replica] += 1;
        }
        let dot = copy.clock.increment(&actor(self.epochs[replica]), UnixMicros(1));
        copy.siblings.retain(|s| !s.meta.deleted);
        if !copy.siblings.iter().any(Sibling::is_of_a_kind) {
            copy.siblings
                .push(Sibling { meta: SiblingMeta { kind: KIND, ..SiblingMeta::default() }, ..Sibling::default() });
        }
        for value in copy.siblings.iter_mut().filter(|s| s.is_of_a_kind()) {
            value.value = [&value.value[..], &[event]].concat().into();
            value.meta.last_modified = Some(UnixMicros(event.into()));
            value.meta.dot = Some(dot.clone());
            let state = value.meta.of_kind.get_or_insert_default();
            state.events.merge(&VectorClock::from_entries([dot.clone()]));
        }
    }

    fn add(&mut self, from: usize, to: usize) {
        let sent = self.copies[from].clone();
        let ([value], [_]) = (&sent.siblings[..], &self.copies[to].siblings[..]) else { return };
        let Some(dot) = value.meta.dot.clone().filter(|_| value.is_of_a_kind()) else { return };
        let before = sent.clock.before(&dot);
        let copy = &mut self.copies[to];
        let has_all = copy.siblings[0].events().descends(&value.events().before(&dot));
        if !copy.siblings[0].is_of_a_kind() || copy.clock.contains(&dot) || !copy.clock.descends(&before) || !has_all {
            return;
        }
        let event = value.meta.last_modified.unwrap().0 as u8;
        let added = VectorClock::from_entries([dot]);
        copy.clock.merge(&added);
        let mine = &mut copy.siblings[0];
        mine.value = [&mine.value[..], &[event]].concat().into();
        let mut state = mine.meta.of_kind.take().unwrap();
        state.events.merge(&added);
        if mine.meta.last_modified < value.meta.last_modified {
            mine.meta = value.meta.clone();
        }
        mine.meta.of_kind = Some(state);
    }
}

fn merged(a: &Object, b: &Object) -> Object {
    let mut out = a.clone();
    out.merge(b.clone());
    join(&mut out);
    out
}

/// Equal up to what a clock does not determine: the order of values in bytes.
fn same(a: &Object, b: &Object) -> bool {
    let plain = |o: &Object| o.siblings.iter().filter(|s| !s.is_of_a_kind()).cloned().collect::<Vec<_>>();
    a.clock == b.clock && value_of(a) == value_of(b) && plain(a) == plain(b) && a.digest() == b.digest()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Two orders of merges can differ in what was deleted beside a further operation. The copies
    /// then tell that they differ, and become the same.
    #[test]
    fn copies_with_values_of_kinds_become_the_same(steps in prop::collection::vec(any_step(), 1..40)) {
        let mut world = World::default();
        steps.iter().for_each(|step| world.step(step));
        let [a, b, c] = &world.copies;
        prop_assert!(same(&merged(a, b), &merged(b, a)));
        prop_assert!(same(&merged(&merged(a, b), b), &merged(a, b)));
        let (left, right) = (merged(&merged(a, b), c), merged(a, &merged(b, c)));
        prop_assert!(left.digest() != right.digest() || same(&left, &right));
        prop_assert!(same(&merged(&left, &right), &merged(&right, &left)));
        let both = merged(&left, &right);
        prop_assert!(same(&merged(&both, &left), &both) && same(&merged(&right, &both), &both));
    }

    #[test]
    fn without_other_puts_every_order_of_merges_is_the_same(steps in prop::collection::vec(any_step(), 1..40)) {
        let mut world = World::default();
        steps.iter().filter(|step| !matches!(step, Step::Put { .. })).for_each(|step| world.step(step));
        let [a, b, c] = &world.copies;
        prop_assert!(same(&merged(&merged(a, b), c), &merged(a, &merged(b, c))));
    }

    #[test]
    fn a_value_has_each_event_that_its_clock_has_seen(steps in prop::collection::vec(any_step(), 1..40)) {
        let mut world = World::default();
        let operations = steps.iter().filter(|step| !matches!(step, Step::Put { .. }));
        operations.clone().for_each(|step| world.step(step));
        for copy in &world.copies {
            let seen: u64 = copy.clock.entries().iter().map(|entry| entry.counter).sum();
            prop_assert_eq!(value_of(copy).len() as u64, seen);
        }
        let [a, b, c] = &world.copies;
        prop_assert_eq!(value_of(&merged(&merged(a, b), c)), (1..=world.events).collect());
    }

    #[test]
    fn equal_digests_mean_equal_values(steps in prop::collection::vec(any_step(), 1..60)) {
        let mut world = World::default();
        steps.iter().for_each(|step| world.step(step));
        for a in &world.copies {
            for b in world.copies.iter().filter(|b| b.digest() == a.digest()) {
                prop_assert!(same(a, b), "{a:?} {b:?}");
            }
        }
    }
}

#[test]
fn a_delete_that_has_not_seen_all_leaves_the_value() {
    let mut world = World::default();
    for step in [Step::Operate { replica: 0 }, Step::Send { from: 0, to: 1 }, Step::Operate { replica: 0 }] {
        world.step(&step);
    }
    // The client has seen the first event alone, through replica 1.
    world.step(&Step::Put { read: 1, replica: 0, is_delete: true });
    assert_eq!(value_of(&world.copies[0]), BTreeSet::from([1, 2]));
    // Another client has seen both.
    world.step(&Step::Put { read: 0, replica: 0, is_delete: true });
    assert!(world.copies[0].is_deleted());
}
