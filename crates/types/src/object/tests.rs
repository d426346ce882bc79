use super::*;
use crate::testing::any_object;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn actor(n: usize) -> Actor {
    Actor::new(&[n as u8; 12])
}

fn at(secs: u64) -> UnixMicros {
    UnixMicros::from_secs(secs)
}

fn value(n: u32) -> Sibling {
    Sibling::new(n.to_be_bytes().to_vec())
}

/// The object that a client sends: a value, and the clock that it had read.
fn sent(n: u32, seen: &VectorClock) -> Object {
    Object { clock: seen.clone(), siblings: vec![value(n)] }
}

fn values(object: &Object) -> BTreeSet<Bytes> {
    object.siblings.iter().map(|s| s.value.clone()).collect()
}

/// The dots and values of a copy, without the order of its siblings.
fn content(object: &Object) -> BTreeSet<(String, Bytes)> {
    let dot = |s: &Sibling| s.meta.dot.as_ref().map_or_else(String::new, |d| format!("{:?} {}", d.actor, d.counter));
    object.siblings.iter().map(|s| (dot(s), s.value.clone())).collect()
}

fn merged(a: &Object, b: &Object, dvv: bool) -> Object {
    let mut out = a.clone();
    out.merge(b.clone(), dvv);
    out
}

/// An event in the life of one key on a few replicas. Each replica coordinates under an actor of
/// its own.
#[derive(Clone, Debug)]
enum Event {
    /// A client reads one replica.
    Read { client: usize, replica: usize },
    /// A client writes through a replica, with the clock of its last read or without a clock.
    Write { client: usize, replica: usize, blind: bool },
    /// One replica's copy reaches another.
    Send { from: usize, to: usize },
}

const REPLICAS: usize = 3;
const CLIENTS: usize = 2;

fn any_event() -> impl Strategy<Value = Event> {
    let (client, replica) = (0..CLIENTS, 0..REPLICAS);
    prop_oneof![
        (client.clone(), replica.clone()).prop_map(|(client, replica)| Event::Read { client, replica }),
        (client, replica.clone(), prop::bool::weighted(0.2)).prop_map(|(client, replica, blind)| Event::Write {
            client,
            replica,
            blind
        }),
        (replica.clone(), replica).prop_map(|(from, to)| Event::Send { from, to }),
    ]
}

/// The model: the set of writes that were seen, and the set of writes that no later write has
/// replaced.
#[derive(Clone, Default)]
struct Model {
    seen: BTreeSet<u32>,
    current: BTreeSet<u32>,
}

impl Model {
    fn write(&mut self, n: u32, context: &BTreeSet<u32>, dvv: bool) {
        let all_seen = self.seen.is_subset(context);
        self.current.retain(|w| if dvv { !context.contains(w) } else { !all_seen });
        self.current.insert(n);
        self.seen.extend(context.iter().chain([&n]));
    }

    fn merge(&mut self, other: &Self, dvv: bool) {
        if other.seen.is_subset(&self.seen) {
            return;
        }
        if self.seen.is_subset(&other.seen) {
            *self = other.clone();
            return;
        }
        let mine = self.current.clone();
        self.current = mine.union(&other.current).copied().collect();
        if dvv {
            let replaced = |w: &u32| {
                (self.seen.contains(w) && !mine.contains(w)) || (other.seen.contains(w) && !other.current.contains(w))
            };
            self.current.retain(|w| !replaced(w));
        }
        self.seen.extend(&other.seen);
    }

    fn values(&self) -> BTreeSet<Bytes> {
        self.current.iter().map(|n| Bytes::from(n.to_be_bytes().to_vec())).collect()
    }
}

#[derive(Default)]
struct World {
    copies: [Option<Object>; REPLICAS],
    models: [Model; REPLICAS],
    contexts: [(VectorClock, BTreeSet<u32>); CLIENTS],
    writes: u32,
}

impl World {
    fn step(&mut self, event: &Event, dvv: bool) {
        match *event {
            Event::Read { client, replica } => {
                let clock = self.copies[replica].as_ref().map(|c| c.clock.clone()).unwrap_or_default();
                self.contexts[client] = (clock, self.models[replica].seen.clone());
            }
            Event::Write { client, replica, blind } => {
                self.writes += 1;
                let (clock, seen) = if blind { Default::default() } else { self.contexts[client].clone() };
                let incoming = sent(self.writes, &clock);
                let now = at(u64::from(self.writes));
                let local = self.copies[replica].take();
                self.copies[replica] = Some(Object::coordinate(local, incoming, &actor(replica), now, dvv));
                self.models[replica].write(self.writes, &seen, dvv);
            }
            Event::Send { from, to } => {
                let Some(copy) = self.copies[from].clone() else { return };
                match &mut self.copies[to] {
                    Some(local) => drop(local.merge(copy, dvv)),
                    none => *none = Some(copy),
                }
                let model = self.models[from].clone();
                self.models[to].merge(&model, dvv);
            }
        }
    }

    fn after(events: &[Event], dvv: bool) -> Self {
        let mut world = Self::default();
        events.iter().for_each(|event| world.step(event, dvv));
        world
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn copies_hold_exactly_what_nothing_has_replaced(events in prop::collection::vec(any_event(), 1..40), dvv in any::<bool>()) {
        let mut world = World::default();
        for event in &events {
            world.step(event, dvv);
            for (copy, model) in world.copies.iter().zip(&world.models) {
                let found = copy.as_ref().map(values).unwrap_or_default();
                prop_assert_eq!(found, model.values(), "after {:?}", event);
            }
        }
    }

    #[test]
    fn merging_is_commutative_associative_and_idempotent(events in prop::collection::vec(any_event(), 1..40)) {
        let world = World::after(&events, true);
        let [a, b, c] = world.copies.map(Option::unwrap_or_default);
        prop_assert_eq!(content(&merged(&a, &b, true)), content(&merged(&b, &a, true)));
        let (left, right) = (merged(&merged(&a, &b, true), &c, true), merged(&a, &merged(&b, &c, true), true));
        prop_assert_eq!(content(&left), content(&right));
        prop_assert_eq!(&left.clock, &right.clock);
        prop_assert_eq!(left.digest(), right.digest());
        prop_assert_eq!(merged(&left, &left, true), left.clone());
        prop_assert_eq!(merged(&left, &a, true), left);
    }

    #[test]
    fn a_clock_covers_the_dots_beside_it(events in prop::collection::vec(any_event(), 1..40), dvv in any::<bool>()) {
        for copy in World::after(&events, dvv).copies.iter().flatten() {
            let mut dots: Vec<&Dot> = copy.siblings.iter().filter_map(|s| s.meta.dot.as_ref()).collect();
            prop_assert_eq!(dots.len(), copy.siblings.len());
            prop_assert!(dots.iter().all(|dot| copy.clock.contains(dot)));
            dots.sort_by_key(|dot| (dot.counter, dot.actor.as_bytes()));
            prop_assert!(dots.windows(2).all(|two| !two[0].same_event(two[1])));
        }
    }

    #[test]
    fn digests_do_not_depend_on_the_order_of_siblings(object in any_object()) {
        let mut turned = object.clone();
        turned.siblings.reverse();
        prop_assert_eq!(turned.digest(), object.digest());
    }

    #[test]
    fn the_newest_is_the_same_in_every_order(object in any_object(), others in any_object(), turn in 0..6usize) {
        let mut all = object;
        all.siblings.extend(others.siblings.iter().cloned());
        // These copies differ in fields that neither a clock nor a date can order.
        all.siblings.extend(others.siblings.into_iter().map(|mut s| {
            s.meta.charset = Some(Bytes::from_static(b"other"));
            s
        }));
        let mut turned = all.clone();
        let len = turned.siblings.len().max(1);
        turned.siblings.rotate_left(turn % len);
        all.keep_newest();
        turned.keep_newest();
        prop_assert_eq!(all, turned);
    }
}

/// Two clients read, resolve and write in turns, each with a clock that is one write old.
#[test]
fn interleaved_writers_make_two_siblings_at_most() {
    let mut copy: Option<Object> = None;
    let mut seen = [VectorClock::new(), VectorClock::new()];
    for n in 0..200 {
        let clock = &mut seen[n as usize % 2];
        let object = Object::coordinate(copy.take(), sent(n, clock), &actor(0), at(1), true);
        *clock = object.clock.clone();
        let found = values(&object);
        assert!(found.len() <= 2, "{} siblings after write {n}", found.len());
        assert!(found.contains(&value(n).value));
        if let Some(before) = n.checked_sub(1) {
            assert!(found.contains(&value(before).value), "write {before} was lost to one that had not seen it");
        }
        copy = Some(object);
    }
}

#[test]
fn without_dots_siblings_grow_until_somebody_has_seen_them_all() {
    let mut copy = None;
    for n in 0..5 {
        copy = Some(Object::coordinate(copy, sent(n, &VectorClock::new()), &actor(0), at(1), false));
    }
    let object = copy.unwrap();
    assert_eq!(object.siblings.len(), 5);
    let clock = object.clock.clone();
    let resolved = Object::coordinate(Some(object), sent(9, &clock), &actor(0), at(2), false);
    assert_eq!(values(&resolved), [value(9).value].into());
}

#[test]
fn without_dots_equal_contents_are_one() {
    let write = |n| Object::coordinate(None, sent(7, &VectorClock::new()), &actor(n), at(1), false);
    assert_eq!(merged(&write(1), &write(2), false).siblings.len(), 1);
    let write = |n| Object::coordinate(None, sent(7, &VectorClock::new()), &actor(n), at(1), true);
    assert_eq!(merged(&write(1), &write(2), true).siblings.len(), 2, "two events are two values");
}

#[test]
fn values_without_a_dot_are_never_dropped() {
    let imported = |actor_no, n| Object {
        clock: VectorClock::from_entries([Dot { actor: actor(actor_no), counter: 3, stamp_secs: 1 }]),
        siblings: vec![value(n)],
    };
    let both = merged(&imported(1, 10), &imported(2, 20), true);
    assert_eq!(both.siblings.len(), 2);
    assert_eq!(merged(&both, &imported(1, 10), true), both);
}

/// The head and the whole object of one event differ in their values but are one sibling.
#[test]
fn one_event_is_one_sibling() {
    let whole = Object::coordinate(None, sent(1, &VectorClock::new()), &actor(0), at(1), true);
    let mut head = whole.clone();
    head.siblings[0].value = Bytes::new();
    let whole = Object::coordinate(Some(whole), sent(2, &VectorClock::new()), &actor(1), at(2), true);
    let head = Object::coordinate(Some(head), sent(3, &VectorClock::new()), &actor(2), at(3), true);
    assert_eq!(values(&merged(&whole, &head, true)), [1, 2, 3].map(|n| value(n).value).into());
}

#[test]
fn of_equal_dates_a_value_beats_a_tombstone() {
    let mut object =
        Object { siblings: vec![Sibling::tombstone(), value(1), Sibling::tombstone()], ..Object::default() };
    object.keep_newest();
    assert_eq!(object.siblings, [value(1)]);
    object.siblings.push(Sibling::tombstone());
    object.siblings[1].meta.last_modified = Some(at(1));
    object.keep_newest();
    assert_eq!(object.siblings.len(), 1);
    assert!(object.is_deleted(), "a later one wins");
}

#[test]
fn a_copy_that_knows_no_more_changes_nothing() {
    let mut one = Object::coordinate(None, sent(1, &VectorClock::new()), &actor(0), at(1), true);
    let older = one.clone();
    let newer = Object::coordinate(Some(one.clone()), sent(2, &one.clock), &actor(0), at(2), true);
    assert_eq!(one.merge(newer.clone(), true), Merged::TookIncoming);
    assert_eq!(one.merge(older, true), Merged::KeptLocal);
    assert_eq!(one, newer);
}

/// A change of any one field changes the digest, and no two such changes give the same digest.
#[test]
fn digests_notice_every_field() {
    let text = Bytes::from_static;
    let some = |s: &'static [u8]| Some(Bytes::from_static(s));
    type Change = Box<dyn Fn(&mut Object)>;
    let changes: Vec<Change> = vec![
        Box::new(|_| {}),
        Box::new(|o| drop(o.clock.increment(&actor(1), at(1)))),
        Box::new(|o| drop(o.clock.increment(&actor(2), at(1)))),
        Box::new(|o| o.siblings.push(Sibling::default())),
        Box::new(|o| o.siblings.clear()),
        Box::new(move |o| o.siblings[0].value = text(b"other")),
        Box::new(move |o| o.siblings[0].meta.content_type = some(b"")),
        Box::new(move |o| o.siblings[0].meta.content_type = some(b"a")),
        Box::new(move |o| o.siblings[0].meta.charset = some(b"a")),
        Box::new(move |o| o.siblings[0].meta.content_encoding = some(b"a")),
        Box::new(move |o| o.siblings[0].meta.vtag = some(b"a")),
        Box::new(|o| o.siblings[0].meta.last_modified = Some(UnixMicros(0))),
        Box::new(|o| o.siblings[0].meta.last_modified = Some(UnixMicros(1))),
        Box::new(move |o| o.siblings[0].meta.links.push(Link { bucket: text(b"a"), key: text(b"b"), tag: text(b"") })),
        Box::new(move |o| o.siblings[0].meta.links.push(Link { bucket: text(b"a"), key: text(b""), tag: text(b"b") })),
        Box::new(move |o| o.siblings[0].meta.user_meta.push((text(b"a"), text(b"b")))),
        Box::new(move |o| o.siblings[0].meta.user_meta.push((text(b"ab"), text(b"")))),
        Box::new(move |o| o.siblings[0].meta.extra.push((text(b"a"), text(b"b")))),
        Box::new(|o| o.siblings[0].meta.indexes.push(IndexEntry::parse(b"a_int", b"1").unwrap())),
        Box::new(|o| o.siblings[0].meta.indexes.push(IndexEntry::parse(b"a_bin", b"1").unwrap())),
        Box::new(|o| o.siblings[0].meta.deleted = true),
        Box::new(|o| o.siblings[0].meta.val_encoding = 2),
        Box::new(|o| o.siblings[0].meta.dot = Some(Dot { actor: actor(1), counter: 1, stamp_secs: 0 })),
        Box::new(|o| o.siblings[0].meta.dot = Some(Dot { actor: actor(1), counter: 2, stamp_secs: 0 })),
    ];
    let digests: BTreeSet<u64> = changes
        .iter()
        .map(|change| {
            let mut object = Object::new(Sibling::new("value"));
            change(&mut object);
            object.digest()
        })
        .collect();
    assert_eq!(digests.len(), changes.len());
}

#[test]
fn index_entries_are_read_from_text() {
    let int = |text: &str| IndexEntry::parse(b"Age_INT", text.as_bytes()).map(|e| (e.field.clone(), e.term.to_text()));
    let parsed = |text: &str| Ok((Bytes::from_static(b"age_int"), Bytes::from(text.to_owned())));
    assert_eq!(int("-012"), parsed("-12"));
    assert_eq!(int("+7"), parsed("7"));
    assert_eq!(int(&"9".repeat(300)), parsed(&"9".repeat(300)));
    for bad in ["", "-", "zork", "1 ", "1_0", "--1", &"9".repeat(5000)] {
        assert_eq!(int(bad), Err(BadIndexEntry::NotAnInteger), "{bad}");
    }
    assert_eq!(IndexEntry::parse(b"zork", b"1"), Err(BadIndexEntry::UnknownFieldType));
}

#[test]
fn an_object_ends_with_the_last_of_its_values() {
    let expiring = |n, expires_secs| {
        let mut sibling = value(n);
        sibling.meta.expires_secs = expires_secs;
        sibling
    };
    let object = |siblings: &[Sibling]| Object { clock: VectorClock::new(), siblings: siblings.to_vec() };
    let (short, long, stays, tombstone) =
        (expiring(1, Some(10)), expiring(2, Some(20)), expiring(3, None), Sibling::tombstone());
    for (siblings, ends) in [
        (vec![short.clone()], Some(10)),
        (vec![short.clone(), long.clone()], Some(20)),
        (vec![short.clone(), stays], None),
        (vec![short.clone(), tombstone.clone()], Some(10)),
        (vec![tombstone], None),
    ] {
        let object = object(&siblings);
        assert_eq!(object.expires_secs(), ends, "{siblings:?}");
        let Some(ends) = ends else { continue };
        assert!(!object.is_absent(at(ends.into())) && object.is_absent(at(u64::from(ends) + 1)), "{siblings:?}");
    }
    let mut both = object(&[short, long.clone()]);
    both.drop_expired(at(11));
    assert_eq!(both.siblings, [long]);
}

#[test]
fn the_fingerprint_knows_when_a_value_ends() {
    let mut object = Object::new(value(1));
    let mut seen = BTreeSet::from([object.digest()]);
    for expires_secs in [0, 1, u32::MAX] {
        object.siblings[0].meta.expires_secs = Some(expires_secs);
        assert!(seen.insert(object.digest()), "{expires_secs}");
    }
}
