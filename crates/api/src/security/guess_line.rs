//! The line in which guesses wait when too many before them were wrong.

use std::time::{Duration, Instant};

/// How failures slow down a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// So many failures have no consequence: people mistype.
    pub(super) free_failures: u32,
    /// The time between two guesses after the first failure that counts. It doubles with each
    /// further one.
    pub(super) first_gap: Duration,
    /// The longest time between two guesses.
    pub(super) gap_max: Duration,
    /// How long somebody may have to wait in line. Beyond that the answer is no at once.
    pub(super) wait_max: Duration,
    /// After so much time one failure less counts.
    pub(super) forgives_one_in: Duration,
    /// So many failures are remembered, so that all are forgiven some time after the last one.
    pub(super) failures_max: u32,
}

impl Pace {
    /// For a user in a network. The longest time between two guesses is the one of Riak.
    pub(super) const OF_PAIR: Self = Self {
        free_failures: 3,
        first_gap: Duration::from_millis(250),
        gap_max: Duration::from_secs(5),
        wait_max: Duration::from_secs(30),
        forgives_one_in: Duration::from_secs(60),
        failures_max: 63,
    };

    /// For a network. Many users may share it, so it is slowed down late and little, and waits are
    /// short.
    pub(super) const OF_NETWORK: Self = Self {
        free_failures: 50,
        first_gap: Duration::from_millis(50),
        gap_max: Duration::from_millis(250),
        wait_max: Duration::from_secs(5),
        forgives_one_in: Duration::from_secs(5),
        failures_max: 110,
    };
}

/// The failures of one client, and the times at which its next guesses may be looked at.
#[derive(Debug)]
pub(super) struct GuessLine {
    failures: u32,
    /// Until when failures have been forgiven.
    forgiven_until: Instant,
    /// When the next guess may be looked at, whoever waits.
    opens: Instant,
    /// The times of those who wait, and of those whose guess is being looked at. Sorted.
    taken: Vec<Instant>,
}

impl GuessLine {
    /// A line without failures.
    pub(super) const fn new(now: Instant) -> Self {
        Self { failures: 0, forgiven_until: now, opens: now, taken: Vec::new() }
    }

    /// The failures that count now.
    pub(super) fn failures(&self, pace: &Pace, now: Instant) -> u32 {
        let quiet = now.saturating_duration_since(self.forgiven_until);
        let forgiven = quiet.as_nanos() / pace.forgives_one_in.as_nanos().max(1);
        self.failures.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }

    fn gap(&self, pace: &Pace, now: Instant) -> Duration {
        match self.failures(pace, now).checked_sub(pace.free_failures + 1) {
            None => Duration::ZERO,
            Some(doublings) => pace.first_gap.saturating_mul(1 << doublings.min(16)).min(pace.gap_max),
        }
    }

    /// Takes the first time that is free; `None` if that is too far away. Those who come together
    /// get times one after the other.
    pub(super) fn take(&mut self, pace: &Pace, now: Instant) -> Option<Instant> {
        let gap = self.gap(pace, now);
        let (mut time, mut place) = (now.max(self.opens), self.taken.len());
        if gap.is_zero() {
            return Some(time);
        }
        for (index, taken) in self.taken.iter().enumerate() {
            if time + gap <= *taken {
                place = index;
                break;
            }
            time = time.max(*taken + gap);
        }
        if time.saturating_duration_since(now) > pace.wait_max {
            return None;
        }
        self.taken.insert(place, time);
        Some(time)
    }

    /// Gives a time back: the guess was looked at, or its client has gone. The next one who comes
    /// can have it.
    pub(super) fn give_back(&mut self, time: Instant) {
        if let Ok(place) = self.taken.binary_search(&time) {
            self.taken.remove(place);
        }
    }

    /// A guess was wrong.
    pub(super) fn failed(&mut self, pace: &Pace, now: Instant) {
        self.failures = self.failures(pace, now).saturating_add(1).min(pace.failures_max);
        self.forgiven_until = now;
        self.opens = self.opens.max(now + self.gap(pace, now));
    }

    /// Whether somebody waits.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace::OF_PAIR;

    fn after(failures: u32, now: Instant) -> GuessLine {
        let mut line = GuessLine::new(now);
        (0..failures).for_each(|_| line.failed(&PACE, now));
        line
    }

    #[test]
    fn failures_make_the_next_guesses_wait_longer_and_longer() {
        let mut now = Instant::now();
        let (mut line, mut waits) = (GuessLine::new(now), Vec::new());
        for _ in 0..10 {
            let time = line.take(&PACE, now).unwrap();
            waits.push((time - now).as_millis());
            now = time;
            line.failed(&PACE, now);
            line.give_back(time);
        }
        assert_eq!(waits, [0, 0, 0, 0, 250, 500, 1000, 2000, 4000, 5000]);
        now += 9 * PACE.forgives_one_in;
        let time = line.take(&PACE, now).unwrap();
        line.failed(&PACE, now);
        assert_eq!((time, line.failures(&PACE, now)), (now, 2), "failures are forgiven one by one");
    }

    #[test]
    fn guesses_at_the_same_time_wait_in_line_and_the_line_is_short() {
        let now = Instant::now();
        let mut line = after(20, now);
        let times: Vec<_> = std::iter::from_fn(|| line.take(&PACE, now)).take(100).collect();
        assert_eq!(times.len(), 6, "{times:?}");
        assert!(times.windows(2).all(|two| two[1] - two[0] == PACE.gap_max));
    }

    #[test]
    fn an_hour_after_the_last_of_many_failures_all_are_forgiven() {
        let now = Instant::now();
        let (line, later) = (after(100_000, now), now + Duration::from_secs(3600));
        assert_eq!(line.failures(&PACE, later), 3);
        assert_eq!(line.gap(&PACE, later), Duration::ZERO);
    }

    #[test]
    fn a_time_that_is_given_back_is_taken_again() {
        let now = Instant::now();
        let mut line = after(20, now);
        let times: Vec<_> = std::iter::from_fn(|| line.take(&PACE, now)).collect();
        for time in [times[2], times[5], times[0]] {
            line.give_back(time);
            assert_eq!(line.take(&PACE, now), Some(time));
            assert_eq!(line.take(&PACE, now), None);
        }
        times.iter().for_each(|time| line.give_back(*time));
        assert_eq!((line.waiting(), line.take(&PACE, now)), (0, Some(times[0])));
    }
}
