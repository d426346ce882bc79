//! When the sums of which class are walked. It has neither clock nor randomness.
//!
//! Sums that are not known come first, those first that have waited for longest: no exchange of
//! their class is answered before. All others are compared with the index once in an interval, each
//! class with a phase of its own. A walk that fails is tried again after a pause, at twice the
//! pace: a store takes a view away that lives too long.

use ombak_kv::ClassId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The pause after the first failed walk, and the longest pause.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The pause after a walk that has ended. Sums may be behind again already, if the store cannot
/// name what its writes replace.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// The pace doubles this often at most.
const DOUBLINGS_MAX: u32 = 10;

#[derive(Clone, Copy, Debug)]
struct Turn {
    /// When the sums are to be compared with the index again.
    due: Instant,
    failures: u32,
    /// No walk begins before; none: at once.
    not_before: Option<Instant>,
}

/// When the sums of which class are walked.
#[derive(Debug)]
pub(super) struct SumsSchedule {
    interval: Duration,
    turns: BTreeMap<ClassId, Turn>,
    /// Whether something has changed since the last look at all classes.
    has_changed: bool,
}

impl SumsSchedule {
    pub(super) const fn new(interval: Duration) -> Self {
        Self { interval, turns: BTreeMap::new(), has_changed: false }
    }

    /// Whether a look at all classes is wanted at once. The wish is forgotten with the answer.
    pub(super) const fn takes_change(&mut self) -> bool {
        std::mem::replace(&mut self.has_changed, false)
    }

    /// Takes the classes that there are now. A new one gets a phase: `random` gives a number for
    /// it.
    pub(super) fn set_classes(&mut self, classes: &[ClassId], now: Instant, mut random: impl FnMut() -> u64) {
        self.has_changed = true;
        let wanted: BTreeSet<&ClassId> = classes.iter().collect();
        self.turns.retain(|class, _| wanted.contains(class));
        for class in classes {
            let mut phase = || self.interval.mul_f64(random() as f64 / u64::MAX as f64);
            self.turns.entry(*class).or_insert_with(|| Turn { due: now + phase(), failures: 0, not_before: None });
        }
    }

    /// Makes all classes due at once.
    pub(super) fn all_due(&mut self, now: Instant) {
        self.turns.values_mut().for_each(|turn| turn.due = now);
        self.has_changed = true;
    }

    /// The class that is to be walked now, and how often the pace is doubled for it.
    pub(super) fn next(&self, now: Instant, is_known: impl Fn(ClassId) -> bool) -> Option<(ClassId, u32)> {
        let may_begin = |turn: &Turn| turn.not_before.is_none_or(|at| at <= now);
        let of = |(class, turn): (&ClassId, &Turn)| (*class, turn.failures.min(DOUBLINGS_MAX));
        let unknown = self.turns.iter().filter(|(class, turn)| may_begin(turn) && !is_known(**class));
        // Sums that are behind again as soon as they were walked leave room for those of others.
        let unknown = unknown.min_by_key(|(_, turn)| turn.not_before);
        let due = || {
            let due = self.turns.iter().filter(|(_, turn)| may_begin(turn) && turn.due <= now);
            due.min_by_key(|(_, turn)| turn.due)
        };
        unknown.or_else(due).map(of)
    }

    /// Whether some class waits for the end of a pause.
    pub(super) fn is_waiting(&self, now: Instant) -> bool {
        self.turns.values().any(|turn| turn.not_before.is_some_and(|at| now < at))
    }

    /// A walk that began at a moment has ended. A class that became due meanwhile stays due: the
    /// walk may have passed already what somebody wants to have looked at.
    pub(super) fn ended(&mut self, class: ClassId, begun: Instant, now: Instant) {
        if let Some(turn) = self.turns.get_mut(&class) {
            let is_due_again = begun < turn.due && turn.due <= now;
            let due = if is_due_again { turn.due } else { now + self.interval };
            *turn = Turn { due, failures: 0, not_before: Some(now + AGAIN_AFTER) };
        }
    }

    /// A walk has failed, or could not begin.
    pub(super) fn failed(&mut self, class: ClassId, now: Instant) {
        if let Some(turn) = self.turns.get_mut(&class) {
            let pause = (RETRY_MIN * (1 << turn.failures.min(16))).min(RETRY_MAX);
            turn.not_before = Some(now + pause);
            turn.failures = turn.failures.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    const fn class(partition: u32) -> ClassId {
        ClassId { partition, n: 3 }
    }

    fn schedule(now: Instant) -> SumsSchedule {
        let mut schedule = SumsSchedule::new(DAY);
        let mut phase = 0;
        schedule.set_classes(&[class(0), class(1), class(2)], now, || {
            phase += u64::MAX / 4;
            phase
        });
        schedule
    }

    #[test]
    fn what_is_not_known_comes_first_and_the_rest_once_a_day() {
        let now = Instant::now();
        let mut schedule = schedule(now);
        assert_eq!(schedule.next(now + DAY, |other| other != class(2)), Some((class(2), 0)));
        let next = |schedule: &SumsSchedule, at: Instant| schedule.next(at, |_| true).map(|(class, _)| class.partition);
        assert_eq!([1, 2, 3].map(|quarter| next(&schedule, now + DAY / 4 * quarter + RETRY_MIN)), [Some(0); 3]);
        assert_eq!(next(&schedule, now), None);
        schedule.ended(class(0), now + DAY / 4, now + DAY / 4);
        assert_eq!(next(&schedule, now + DAY / 2 + RETRY_MIN), Some(1));
        schedule.all_due(now);
        assert_eq!(next(&schedule, now), Some(1), "the other one has just been walked");
        assert_eq!(next(&schedule, now + DAY / 4 + AGAIN_AFTER), Some(0));
        schedule.set_classes(&[class(1)], now, || 0);
        assert_eq!(next(&schedule, now), Some(1));
    }

    #[test]
    fn a_class_that_becomes_due_while_it_is_walked_is_walked_again() {
        let begun = Instant::now();
        let mut schedule = schedule(begun);
        let asked = begun + Duration::from_millis(1);
        schedule.all_due(asked);
        schedule.ended(class(0), begun, asked);
        assert_eq!(schedule.next(asked + AGAIN_AFTER, |_| true), Some((class(0), 0)));
        schedule.ended(class(0), asked + AGAIN_AFTER, asked + AGAIN_AFTER * 2);
        assert_eq!(schedule.next(asked + AGAIN_AFTER * 3, |_| true), Some((class(1), 0)));
    }

    #[test]
    fn sums_that_are_behind_again_after_each_walk_leave_room_for_others() {
        let mut now = Instant::now();
        let mut schedule = schedule(now);
        let mut walked = Vec::new();
        for _ in 0..6 {
            let (class, _) = schedule.next(now, |_| false).unwrap();
            walked.push(class.partition);
            // A walk takes longer than the pause after it.
            now += 2 * AGAIN_AFTER;
            schedule.ended(class, now, now);
        }
        assert_eq!(walked, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_walk_that_fails_is_tried_again_at_a_higher_pace() {
        let now = Instant::now();
        let mut schedule = schedule(now);
        let unknown = |other| other != class(0);
        schedule.failed(class(0), now);
        assert_eq!(schedule.next(now, unknown), None);
        assert_eq!(schedule.next(now + RETRY_MIN, unknown), Some((class(0), 1)));
        (0..40).for_each(|_| schedule.failed(class(0), now));
        assert_eq!(schedule.next(now + RETRY_MAX, unknown), Some((class(0), DOUBLINGS_MAX)));
        schedule.ended(class(0), now, now);
        assert_eq!(schedule.next(now, unknown), None);
        assert_eq!(schedule.next(now + AGAIN_AFTER, unknown), Some((class(0), 0)));
    }
}
