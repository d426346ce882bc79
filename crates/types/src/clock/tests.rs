use super::*;
use crate::time::GREGORIAN_OFFSET_SECS;
use proptest::prelude::*;

fn dot(actor: u8, counter: u64, stamp_secs: u64) -> Dot {
    Dot { actor: Actor::new(&[actor]), counter, stamp_secs }
}

fn entries() -> impl Strategy<Value = Vec<Dot>> {
    prop::collection::vec((0..6u8, 1..5u64, 0..9u64).prop_map(|(a, c, s)| dot(a, c, s)), 0..8)
}

fn any_clock() -> impl Strategy<Value = VectorClock> {
    entries().prop_map(VectorClock::from_entries)
}

fn merged(a: &VectorClock, b: &VectorClock) -> VectorClock {
    let mut out = a.clone();
    out.merge(b);
    out
}

/// The model of a clock: a counter for each of a few actors.
fn model(clock: &VectorClock) -> [u64; 6] {
    std::array::from_fn(|actor| clock.counter(&Actor::new(&[actor as u8])))
}

fn is_ordered(clock: &VectorClock) -> bool {
    clock.entries().is_sorted_by(|a, b| a.actor < b.actor)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn entries_of_one_actor_become_the_newest(entries in entries()) {
        let clock = VectorClock::from_entries(entries.clone());
        prop_assert!(is_ordered(&clock));
        for kept in clock.entries() {
            let of_actor = entries.iter().filter(|e| e.actor == kept.actor);
            prop_assert_eq!(of_actor.map(|e| (e.counter, e.stamp_secs)).max(), Some((kept.counter, kept.stamp_secs)));
        }
        prop_assert!(entries.iter().all(|e| clock.contains(e)));
    }

    #[test]
    fn merging_takes_the_larger_counter_of_each_actor(a in any_clock(), b in any_clock(), c in any_clock()) {
        let ab = merged(&a, &b);
        let expected: [u64; 6] = std::array::from_fn(|i| model(&a)[i].max(model(&b)[i]));
        prop_assert_eq!(model(&ab), expected);
        prop_assert!(is_ordered(&ab));
        prop_assert_eq!(&ab, &merged(&b, &a));
        prop_assert_eq!(merged(&ab, &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &a), a);
    }

    #[test]
    fn descending_is_being_at_least_as_far_for_every_actor(a in any_clock(), b in any_clock()) {
        let expected = model(&a).iter().zip(model(&b)).all(|(mine, theirs)| *mine >= theirs);
        prop_assert_eq!(a.descends(&b), expected);
        prop_assert_eq!(a.same_events(&b), model(&a) == model(&b));
        prop_assert_eq!(a.dominates(&b), expected && model(&a) != model(&b));
        prop_assert!(merged(&a, &b).descends(&a));
    }

    #[test]
    fn an_increment_is_seen_by_nobody_else(mut clock in any_clock(), actor in 0..6u8) {
        let before = clock.clone();
        let dot = clock.increment(&Actor::new(&[actor]), UnixMicros::from_secs(7));
        prop_assert!(clock.contains(&dot) && !before.contains(&dot) && clock.dominates(&before));
        prop_assert_eq!(dot.counter, before.counter(&dot.actor) + 1);
        prop_assert!(is_ordered(&clock));
    }

    #[test]
    fn pruning_keeps_the_newest_stamps(
        entries in entries(), small in 0..5usize, over in 0..3usize, young_secs in 0..5u64, old_secs in 0..9u64,
    ) {
        let stamped = |e: Dot| Dot { stamp_secs: e.stamp_secs + GREGORIAN_OFFSET_SECS, ..e };
        let mut clock = VectorClock::from_entries(entries.into_iter().map(stamped));
        let before = clock.clone();
        let limits = Pruning { small, big: small + over, young_secs, old_secs };
        clock.prune(&limits, UnixMicros::from_secs(8));
        prop_assert!(is_ordered(&clock));
        prop_assert!(clock.entries().iter().all(|e| before.entries().contains(e)));
        let age = |e: &Dot| 8 + GREGORIAN_OFFSET_SECS - e.stamp_secs;
        let dropped: Vec<&Dot> = before.entries().iter().filter(|e| !clock.entries().contains(e)).collect();
        for gone in &dropped {
            prop_assert!(age(gone) >= young_secs);
            prop_assert!(clock.entries().iter().all(|kept| kept.stamp_secs >= gone.stamp_secs));
        }
        // Young entries were dropped only because the clock was too long.
        let surplus = before.entries().len().saturating_sub(limits.big);
        prop_assert!(dropped.iter().filter(|gone| age(gone) <= old_secs).count() <= surplus);
        // Nothing that pruning must drop is left.
        let oldest_secs = clock.entries().iter().map(age).max().unwrap_or(0);
        let len = clock.entries().len();
        prop_assert!(
            len <= small || oldest_secs < young_secs || (len <= limits.big && oldest_secs <= old_secs),
            "{} entries, the oldest of {} s", len, oldest_secs
        );
    }
}

#[test]
fn a_short_clock_is_never_pruned() {
    let limits = Pruning { small: 50, big: 50, young_secs: 20, old_secs: 86_400 };
    let mut clock = VectorClock::from_entries((0..50).map(|a| dot(a, 1, 0)));
    let before = clock.clone();
    clock.prune(&limits, UnixMicros::from_secs(1_000_000_000));
    assert_eq!(clock, before);
}

#[test]
fn forged_stamps_do_not_make_a_clock_grow_without_end() {
    let limits = Pruning { small: 50, big: 50, young_secs: 20, old_secs: 86_400 };
    let entries = (0..5000u32).map(|n| Dot { actor: Actor::new(&n.to_be_bytes()), counter: 1, stamp_secs: u64::MAX });
    let mut clock = VectorClock::from_entries(entries);
    clock.prune(&limits, UnixMicros::from_secs(1_000_000_000));
    assert_eq!(clock.entries().len(), ENTRIES_MAX);
}

#[test]
fn a_missing_actor_does_not_hide_the_next_one() {
    let mine = VectorClock::from_entries([dot(2, 5, 0)]);
    let theirs = VectorClock::from_entries([dot(1, 1, 0), dot(2, 1, 0)]);
    assert!(!mine.descends(&theirs));
    assert!(theirs.descends(&VectorClock::from_entries([dot(2, 1, 0)])));
}

#[test]
fn long_actors_are_refused() {
    assert!(Actor::try_new(&[0; 255]).is_some());
    assert!(Actor::try_new(&[0; 256]).is_none());
}
