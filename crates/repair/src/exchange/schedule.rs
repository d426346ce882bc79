//! When which exchange is due. It has neither clock nor randomness.
//!
//! Each pair is due once in an interval, with a phase of its own, so that exchanges are spread
//! evenly. A pair that fails is due again after a pause that doubles up to the interval.

use super::pairs::Pair;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The pause after the first failure.
const RETRY_MIN: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
struct Turn {
    due: Instant,
    failures: u32,
}

/// When which exchange is due.
#[derive(Debug)]
pub(super) struct Schedule {
    interval: Duration,
    turns: BTreeMap<Pair, Turn>,
    /// The pairs that have not ended in full since the round began.
    left_of_round: BTreeSet<Pair>,
}

impl Schedule {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, turns: BTreeMap::new(), left_of_round: BTreeSet::new() }
    }

    /// Takes the pairs that there are now. A new one gets a phase: `random` gives a number for it.
    pub(super) fn set_pairs(&mut self, pairs: &BTreeSet<Pair>, now: Instant, mut random: impl FnMut() -> u64) {
        self.turns.retain(|pair, _| pairs.contains(pair));
        self.left_of_round.retain(|pair| pairs.contains(pair));
        for pair in pairs {
            if !self.turns.contains_key(pair) {
                let phase = self.interval.mul_f64(random() as f64 / u64::MAX as f64);
                self.turns.insert(*pair, Turn { due: now + phase, failures: 0 });
                self.left_of_round.insert(*pair);
            }
        }
    }

    /// Makes everything due, and begins a round anew.
    pub(super) fn all_due(&mut self, now: Instant) {
        self.turns.values_mut().for_each(|turn| *turn = Turn { due: now, failures: 0 });
        self.left_of_round = self.turns.keys().copied().collect();
    }

    /// The pair that has been due for longest, among those that may begin.
    pub(super) fn next(&self, now: Instant, may_begin: impl Fn(Pair) -> bool) -> Option<Pair> {
        let due = self.turns.iter().filter(|(pair, turn)| turn.due <= now && may_begin(**pair));
        due.min_by_key(|(_, turn)| turn.due).map(|(pair, _)| *pair)
    }

    /// Notes that an exchange has ended in full. Returns whether that was the last one of a round.
    pub(super) fn ended(&mut self, pair: Pair, now: Instant) -> bool {
        self.set(pair, now + self.interval, 0);
        let was_last = self.left_of_round.remove(&pair) && self.left_of_round.is_empty();
        if was_last {
            self.left_of_round = self.turns.keys().copied().collect();
        }
        was_last
    }

    /// Notes that an exchange has done a part of what there was.
    pub(super) fn goes_on(&mut self, pair: Pair, now: Instant) {
        self.set(pair, now, 0);
    }

    /// Notes that an exchange has failed.
    pub(super) fn failed(&mut self, pair: Pair, now: Instant) {
        let failures = self.turns.get(&pair).map_or(0, |turn| turn.failures);
        let pause = (RETRY_MIN * (1 << failures.min(16))).min(self.interval);
        self.set(pair, now + pause, failures + 1);
    }

    fn set(&mut self, pair: Pair, due: Instant, failures: u32) {
        if let Some(turn) = self.turns.get_mut(&pair) {
            *turn = Turn { due, failures };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_kv::ClassId;
    use ombak_types::NodeId;

    const INTERVAL: Duration = Duration::from_secs(480);

    fn pair(partition: u32) -> Pair {
        (ClassId { partition, n: 3 }, NodeId::new(1))
    }

    fn schedule(count: u32, now: Instant) -> Schedule {
        let mut schedule = Schedule::new(INTERVAL);
        let mut phase = 0;
        schedule.set_pairs(&(0..count).map(pair).collect(), now, || {
            phase += u64::MAX / 4;
            phase
        });
        schedule
    }

    #[test]
    fn exchanges_are_spread_over_the_interval() {
        let now = Instant::now();
        let schedule = schedule(3, now);
        let due = |after: u64| {
            (0..3)
                .filter(|number| {
                    schedule.next(now + Duration::from_secs(after), |other| other == pair(*number)).is_some()
                })
                .count()
        };
        assert_eq!([0, 119, 121, 241, 361].map(due), [0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_round_ends_when_each_pair_has_ended() {
        let now = Instant::now();
        let mut schedule = schedule(2, now);
        schedule.all_due(now);
        assert_eq!(schedule.next(now, |other| other != pair(0)), Some(pair(1)));
        assert!(!schedule.ended(pair(1), now) && !schedule.ended(pair(1), now), "one is left");
        assert!(schedule.ended(pair(0), now));
        assert_eq!(schedule.next(now, |_| true), None);
        assert_eq!(schedule.next(now + INTERVAL, |_| true), Some(pair(0)));
        assert!(!schedule.ended(pair(0), now), "another round");
    }

    #[test]
    fn what_fails_waits_longer_and_longer_and_no_longer_than_the_interval() {
        let now = Instant::now();
        let mut schedule = schedule(1, now);
        for seconds in [2, 4, 8, 16, 32, 64, 128, 256, 480, 480] {
            schedule.failed(pair(0), now);
            let at = |seconds| schedule.next(now + Duration::from_secs(seconds), |_| true);
            assert_eq!((at(seconds - 1), at(seconds)), (None, Some(pair(0))), "{seconds}");
        }
        schedule.goes_on(pair(0), now);
        assert_eq!(schedule.next(now, |_| true), Some(pair(0)));
    }

    #[test]
    fn a_pair_that_is_none_any_more_is_forgotten() {
        let now = Instant::now();
        let mut schedule = schedule(2, now);
        schedule.all_due(now);
        schedule.set_pairs(&[pair(0)].into(), now, || 0);
        assert!(schedule.ended(pair(0), now), "nothing else is left of the round");
        schedule.failed(pair(1), now);
        assert_eq!(schedule.next(now + INTERVAL, |other| other == pair(1)), None);
    }
}
