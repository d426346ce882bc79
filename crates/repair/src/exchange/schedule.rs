//! When which exchange is due. It has neither clock nor randomness.
//!
//! Each pair is due once in an interval, with a phase of its own, so that exchanges are spread
//! evenly. A pair that fails is due again after a pause that doubles up to the interval. When a
//! node comes up, the exchanges with it come earlier, and are spread over a minute.

use super::pairs::Pair;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The pause after the first failure.
const RETRY_MIN: Duration = Duration::from_secs(2);
/// The time over which the exchanges with a node that has come up are spread.
const COME_UP_SPREAD: Duration = Duration::from_secs(60);

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

    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// Takes another interval. What would be due after more than that is due then.
    pub(super) fn set_interval(&mut self, interval: Duration, now: Instant) {
        self.interval = interval;
        self.turns.values_mut().for_each(|turn| turn.due = turn.due.min(now + interval));
    }

    /// How many exchanges a round has.
    pub(super) fn pairs_count(&self) -> usize {
        self.turns.len()
    }

    /// How many exchanges have not ended in full since the round began.
    pub(super) fn left_of_round(&self) -> usize {
        self.left_of_round.len()
    }

    /// Gives each pair that is due a phase of its own again.
    pub(super) fn spread(&mut self, now: Instant, mut random: impl FnMut() -> u64) {
        for turn in self.turns.values_mut().filter(|turn| turn.due <= now) {
            turn.due = now + self.interval.mul_f64(random() as f64 / u64::MAX as f64);
        }
    }

    /// Makes everything due, and begins a round anew.
    pub(super) fn all_due(&mut self, now: Instant) {
        self.turns.values_mut().for_each(|turn| *turn = Turn { due: now, failures: 0 });
        self.left_of_round = self.turns.keys().copied().collect();
    }

    /// Makes the exchanges with some nodes due soon, because these have come up. What is due
    /// earlier stays so.
    pub(super) fn have_come_up(&mut self, nodes: &BTreeSet<NodeId>, now: Instant) {
        let spread = COME_UP_SPREAD.min(self.interval);
        let with_them: Vec<&mut Turn> =
            self.turns.iter_mut().filter(|((_, node), _)| nodes.contains(node)).map(|(_, turn)| turn).collect();
        let step = spread / u32::try_from(with_them.len()).unwrap_or(u32::MAX).max(1);
        for (number, turn) in (0..).zip(with_them) {
            *turn = Turn { due: turn.due.min(now + step * number), failures: 0 };
        }
    }

    /// The pairs, and when each is due.
    pub(super) fn turns(&self) -> impl Iterator<Item = (Pair, Instant)> + '_ {
        self.turns.iter().map(|(pair, turn)| (*pair, turn.due))
    }

    /// The pair that has been due for longest, among those that may begin. `may_begin` is told
    /// since when a pair has been due.
    pub(super) fn next(&self, now: Instant, may_begin: impl Fn(Pair, Instant) -> bool) -> Option<Pair> {
        let due = self.turns.iter().filter(|(pair, turn)| turn.due <= now && may_begin(**pair, turn.due));
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
                    schedule.next(now + Duration::from_secs(after), |other, _| other == pair(*number)).is_some()
                })
                .count()
        };
        assert_eq!([0, 119, 121, 241, 361].map(due), [0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_node_that_comes_up_makes_its_exchanges_due_one_after_the_other() {
        let now = Instant::now();
        let other = |number: u32| (pair(number).0, NodeId::new(77));
        let mut schedule = Schedule::new(INTERVAL);
        let pairs: BTreeSet<Pair> = (0..4).flat_map(|number| [pair(number), other(number)]).collect();
        schedule.set_pairs(&pairs, now, || u64::MAX);
        schedule.have_come_up(&[NodeId::new(77)].into(), now);
        let due = |after: u64, is_other: bool| {
            let at = now + Duration::from_secs(after);
            let is_due = |pair: &&Pair| schedule.next(at, |next, _| next == **pair).is_some();
            pairs.iter().filter(|pair| (pair.1 == NodeId::new(77)) == is_other).filter(is_due).count()
        };
        assert_eq!([0, 14, 15, 30, 45].map(|after| due(after, true)), [1, 1, 2, 3, 4]);
        assert_eq!((due(479, false), due(480, false)), (0, 4), "those with other nodes are due at their time");
    }

    #[test]
    fn a_round_ends_when_each_pair_has_ended() {
        let now = Instant::now();
        let mut schedule = schedule(2, now);
        schedule.all_due(now);
        assert_eq!(schedule.next(now, |other, _| other != pair(0)), Some(pair(1)));
        assert!(!schedule.ended(pair(1), now) && !schedule.ended(pair(1), now), "one is left");
        assert!(schedule.ended(pair(0), now));
        assert_eq!(schedule.next(now, |_, _| true), None);
        assert_eq!(schedule.next(now + INTERVAL, |_, _| true), Some(pair(0)));
        assert!(!schedule.ended(pair(0), now), "another round");
    }

    #[test]
    fn what_fails_waits_longer_and_longer_and_no_longer_than_the_interval() {
        let now = Instant::now();
        let mut schedule = schedule(1, now);
        for seconds in [2, 4, 8, 16, 32, 64, 128, 256, 480, 480] {
            schedule.failed(pair(0), now);
            let at = |seconds| schedule.next(now + Duration::from_secs(seconds), |_, _| true);
            assert_eq!((at(seconds - 1), at(seconds)), (None, Some(pair(0))), "{seconds}");
        }
        schedule.goes_on(pair(0), now);
        assert_eq!(schedule.next(now, |_, _| true), Some(pair(0)));
    }

    #[test]
    fn what_is_due_is_spread_again() {
        let now = Instant::now();
        let mut schedule = schedule(2, now);
        schedule.all_due(now);
        schedule.spread(now, || u64::MAX / 2);
        let at =
            |schedule: &Schedule, seconds| schedule.next(now + Duration::from_secs(seconds), |_, _| true).is_some();
        assert!(!at(&schedule, 239) && at(&schedule, 241));
        assert_eq!((schedule.pairs_count(), schedule.left_of_round()), (2, 2));
    }

    #[test]
    fn a_shorter_interval_holds_at_once() {
        let now = Instant::now();
        let mut schedule = schedule(1, now);
        schedule.ended(pair(0), now);
        schedule.set_interval(Duration::from_secs(10), now);
        assert_eq!(schedule.next(now + Duration::from_secs(10), |_, _| true), Some(pair(0)));
    }

    #[test]
    fn a_pair_that_is_none_any_more_is_forgotten() {
        let now = Instant::now();
        let mut schedule = schedule(2, now);
        schedule.all_due(now);
        schedule.set_pairs(&[pair(0)].into(), now, || 0);
        assert!(schedule.ended(pair(0), now), "nothing else is left of the round");
        schedule.failed(pair(1), now);
        assert_eq!(schedule.next(now + INTERVAL, |other, _| other == pair(1)), None);
    }
}
