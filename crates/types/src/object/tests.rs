//! Objects and their merges.

mod kinds;

use super::*;
use crate::testing::any_object;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

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

fn merged(a: &Object, b: &Object) -> Object {
    let mut out = a.clone();
    out.merge(b.clone());
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

/// A copy with a clock and dots that no coordinator has made.
fn any_forged() -> impl Strategy<Value = Object> {
    let dot = || (0usize..2, 1u64..3).prop_map(|(n, counter)| Dot { actor: actor(n), counter, stamp_secs: 1 });
    let sibling = (0u32..3, prop::option::of(dot()), any::<bool>(), prop::option::of(1u32..3));
    let sibling = sibling.prop_map(|(n, dot, deleted, expires_secs)| {
        let mut sibling = value(n);
        (sibling.meta.dot, sibling.meta.deleted) = (dot, deleted);
        sibling.meta.expires_secs = expires_secs.filter(|_| !deleted);
        sibling
    });
    let parts = (prop::collection::vec(dot(), 0..3), prop::collection::vec(sibling, 1..3));
    parts.prop_map(|(dots, siblings)| {
        let mut object = Object { clock: VectorClock::from_entries(dots), siblings };
        object.order_siblings();
        object
    })
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

/// The model: the set of events that were seen, and the events that no later write has replaced,
/// each with its value.
#[derive(Clone, Default)]
struct Model {
    seen: BTreeSet<u32>,
    current: BTreeMap<u32, u32>,
}

impl Model {
    /// Without DVV, what stays although the client has seen it becomes an event of its own.
    fn write(&mut self, value: u32, context: &BTreeSet<u32>, dvv: bool, next_event: &mut impl FnMut() -> u32) {
        let all_seen = self.seen.is_subset(context);
        let current = std::mem::take(&mut self.current);
        self.seen.extend(context);
        for (event, value) in current {
            match context.contains(&event) {
                true if dvv || all_seen => {}
                true => drop(self.current.insert(next_event(), value)),
                false => drop(self.current.insert(event, value)),
            }
        }
        self.current.insert(next_event(), value);
        self.seen.extend(self.current.keys());
    }

    fn merge(&mut self, other: &Self) {
        let is_replaced = |event: &u32, by: &Self| by.seen.contains(event) && !by.current.contains_key(event);
        let mine = self.clone();
        self.current.retain(|event, _| !is_replaced(event, other));
        self.current.extend(other.current.iter().filter(|(event, _)| !is_replaced(event, &mine)));
        self.seen.extend(&other.seen);
    }

    fn values(&self) -> BTreeSet<Bytes> {
        self.current.values().map(|n| Bytes::from(n.to_be_bytes().to_vec())).collect()
    }
}

#[derive(Default)]
struct World {
    copies: [Option<Object>; REPLICAS],
    models: [Model; REPLICAS],
    contexts: [(VectorClock, BTreeSet<u32>); CLIENTS],
    writes: u32,
    events: u32,
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
                let events = &mut self.events;
                self.models[replica].write(self.writes, &seen, dvv, &mut || {
                    *events += 1;
                    *events
                });
            }
            Event::Send { from, to } => {
                let Some(copy) = self.copies[from].clone() else { return };
                match &mut self.copies[to] {
                    Some(local) => {
                        local.merge(copy);
                    }
                    none => *none = Some(copy),
                }
                let model = self.models[from].clone();
                self.models[to].merge(&model);
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
    fn merging_is_commutative_associative_and_idempotent(events in prop::collection::vec(any_event(), 1..40), dvv in any::<bool>()) {
        let world = World::after(&events, dvv);
        let [a, b, c] = world.copies.map(Option::unwrap_or_default);
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        let (left, right) = (merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(left.digest(), right.digest());
        prop_assert_eq!(merged(&left, &left), left.clone());
        prop_assert_eq!(merged(&left, &a), left);
    }

    /// Copies from elsewhere may have any clocks and dots, and the result may depend on the order
    /// of merges. But copies that are exchanged again become equal, and nothing that was there is
    /// empty afterwards.
    #[test]
    fn all_copies_become_one(objects in prop::collection::vec(any_forged(), 2..4)) {
        let mut copies = objects.clone();
        for _ in 0..4 {
            let sent = copies.clone();
            for copy in &mut copies {
                for other in &sent {
                    copy.merge(other.clone());
                }
            }
        }
        prop_assert!(copies.iter().all(|copy| copy.digest() == copies[0].digest()), "{:?}", copies);
        prop_assert!(!copies[0].siblings.is_empty());
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
fn without_dots_clients_see_equal_contents_once() {
    let write = |n, value| Object::coordinate(None, sent(value, &VectorClock::new()), &actor(n), at(1), false);
    let mut both = merged(&merged(&write(1, 7), &write(2, 7)), &write(3, 8));
    assert_eq!(both.siblings.len(), 3, "two events are two values");
    both.unite_equal_contents();
    assert_eq!(both.siblings.iter().map(|s| s.value.clone()).collect::<Vec<_>>(), [7, 8].map(|n| value(n).value));
}

/// Without DVV a value stays beside a write whose client had seen it, if the client had not seen
/// everything. It is not older than what had replaced it elsewhere.
#[test]
fn without_dots_what_stays_is_a_new_event() {
    let first = Object::coordinate(None, sent(1, &VectorClock::new()), &actor(0), at(1), false);
    let replaced = Object::coordinate(Some(first.clone()), sent(2, &first.clock), &actor(1), at(2), false);
    let beside = Object::coordinate(Some(first), sent(3, &VectorClock::new()), &actor(0), at(3), false);
    let copy = Object::coordinate(Some(beside), sent(4, &replaced.clock), &actor(0), at(4), false);
    assert_eq!(values(&copy), [1, 3, 4].map(|n| value(n).value).into());
    let other = Object::coordinate(None, sent(5, &VectorClock::new()), &actor(2), at(5), false);
    let (one, two) = (merged(&merged(&copy, &replaced), &other), merged(&copy, &merged(&replaced, &other)));
    assert_eq!(one, two);
    assert_eq!(values(&one), [1, 3, 4, 5].map(|n| value(n).value).into());
}

#[test]
fn values_without_a_dot_are_never_dropped() {
    let imported = |actor_no, n| Object {
        clock: VectorClock::from_entries([Dot { actor: actor(actor_no), counter: 3, stamp_secs: 1 }]),
        siblings: vec![value(n)],
    };
    let both = merged(&imported(1, 10), &imported(2, 20));
    assert_eq!(both.siblings.len(), 2);
    assert_eq!(merged(&both, &imported(1, 10)), both);
}

/// The head and the whole object of one event differ in their values but are one sibling.
#[test]
fn a_version_that_is_sent_again_without_its_dots_adds_nothing() {
    let stored = Object::coordinate(None, sent(1, &VectorClock::new()), &actor(0), at(1), true);
    let mut again = stored.clone();
    again.siblings.iter_mut().for_each(|sibling| sibling.meta.dot = None);
    assert_eq!(merged(&stored, &again), stored);
    assert_eq!(merged(&again, &stored), stored);
}

#[test]
fn one_event_is_one_sibling() {
    let whole = Object::coordinate(None, sent(1, &VectorClock::new()), &actor(0), at(1), true);
    let mut head = whole.clone();
    head.siblings[0].value = Bytes::new();
    let whole = Object::coordinate(Some(whole), sent(2, &VectorClock::new()), &actor(1), at(2), true);
    let head = Object::coordinate(Some(head), sent(3, &VectorClock::new()), &actor(2), at(3), true);
    assert_eq!(values(&merged(&whole, &head)), [1, 2, 3].map(|n| value(n).value).into());
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
    assert_eq!(one.merge(newer.clone()), Merged::TookIncoming);
    assert_eq!(one.merge(older), Merged::KeptLocal);
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

/// A copy that an actor has written alone, with a time in seconds.
fn written_by(n: usize, mut sibling: Sibling, secs: u64) -> Object {
    sibling.meta.last_modified = Some(at(secs));
    Object::coordinate(None, Object::new(sibling), &actor(n), at(secs), true)
}

#[test]
fn a_tombstone_without_its_time_is_older_than_every_value() {
    let (value, deleted) = (written_by(0, value(1), 5), written_by(1, Sibling::tombstone(), 9));
    let mut timeless = deleted.clone();
    assert!(timeless.has_timed_tombstone() && !timeless.brings_timeless_tombstone(None));
    timeless.take_times_of_tombstones();
    assert!(timeless.brings_timeless_tombstone(None) && !value.brings_timeless_tombstone(None));
    assert!(!timeless.has_timed_tombstone() && timeless.digest() != deleted.digest());
    for (tombstone, is_hidden) in [(deleted, true), (timeless, false)] {
        let both = merged(&value, &tombstone);
        assert_eq!(both.is_hidden_by_tombstone(), is_hidden);
        let mut shown = both.clone();
        shown.keep_newest();
        assert_eq!(shown.is_deleted(), is_hidden);
        assert!(!value.is_hidden_by_tombstone() && !tombstone.is_hidden_by_tombstone());
    }
}

#[test]
fn a_tombstone_never_gets_its_time_back() {
    let timed = written_by(1, Sibling::tombstone(), 9);
    let mut timeless = timed.clone();
    timeless.take_times_of_tombstones();
    assert_eq!(merged(&timed, &timeless), timeless);
    assert_eq!(merged(&timeless, &timed), timeless);
    // It is so beside a value that one of the copies has met.
    let met = merged(&timed, &written_by(0, value(1), 5));
    let both = merged(&met, &merged(&timeless, &written_by(0, value(1), 5)));
    assert!(!both.has_timed_tombstone() && both.siblings.len() == 2);
    assert_eq!(both.digest(), merged(&merged(&timeless, &written_by(0, value(1), 5)), &met).digest());
}

/// Rounds of removal take the times of two deletions one after the other.
#[test]
fn each_tombstone_without_its_time_is_news_of_its_own() {
    let mut first = written_by(1, Sibling::tombstone(), 9);
    first.take_times_of_tombstones();
    let before = merged(&first, &written_by(2, Sibling::tombstone(), 11));
    let mut after = before.clone();
    after.take_times_of_tombstones();
    assert_eq!((before.siblings.len(), after.siblings.len()), (2, 2));
    assert!(before.brings_timeless_tombstone(None) && !before.brings_timeless_tombstone(Some(&first)));
    assert!(after.brings_timeless_tombstone(Some(&before)), "one of two was known before");
    assert!(!after.brings_timeless_tombstone(Some(&after)) && !first.brings_timeless_tombstone(Some(&after)));
}

#[test]
fn copies_without_a_clock_keep_the_times_of_their_tombstones() {
    let mut sibling = Sibling::tombstone();
    sibling.meta.last_modified = Some(at(9));
    assert!(!Object::new(sibling).has_timed_tombstone());
}
