//! How the clock of the peer relates to our own.
//!
//! Each node has a monotonic clock of its own with an origin that means nothing to others. A sample
//! bounds the difference: the peer's clock showed `theirs_us` at some moment between `asked_at_us`
//! and `answered_at_us` of our clock. From the samples of a connection follows the earliest moment
//! at which something happened that the peer stamped with its clock. So an age is never
//! underestimated, however long a message lay in a buffer: it is too high by at most one round trip
//! (docs/design/replication.md §6).

/// How many samples are kept. The best of them decides.
const SAMPLES_MAX: usize = 8;

/// By how much two clocks may drift apart, in millionths. NTP slews a clock by at most 500; both
/// clocks may be slewed, and the oscillators differ a little.
const DRIFT_PPM: i64 = 1_200;

/// One comparison of the two clocks, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// Our clock when we asked.
    pub asked_at_us: i64,
    /// The peer's clock when it answered.
    pub theirs_us: i64,
    /// Our clock when the answer had arrived.
    pub answered_at_us: i64,
}

/// One of the clocks stood still or jumped: two samples contradict each other. Ages on this
/// connection cannot be trusted, and it has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clocks of the two nodes do not run alike; one of the machines may have been suspended")]
pub struct ClockContradiction;

/// The relation of the two clocks of a connection.
#[derive(Clone, Debug)]
pub struct ClockAlignment {
    samples: [ClockSample; SAMPLES_MAX],
    filled: usize,
    next: usize,
    /// The sample with the highest lower bound. The bounds of all samples fall alike as time
    /// passes, so it stays that until a sample is added.
    best: ClockSample,
}

impl ClockAlignment {
    /// Begins with the sample of the handshake.
    pub const fn new(first: ClockSample) -> Self {
        Self { samples: [first; SAMPLES_MAX], filled: 1, next: 1, best: first }
    }

    /// Adds a sample. It takes the place of the oldest one.
    pub fn add(&mut self, sample: ClockSample) -> Result<(), ClockContradiction> {
        self.samples[self.next] = sample;
        self.next = (self.next + 1) % SAMPLES_MAX;
        self.filled = (self.filled + 1).min(SAMPLES_MAX);
        let now_us = sample.answered_at_us;
        let lower_bound_us = |sample: &&ClockSample| lower_bound_us(sample, now_us);
        if let Some(best) = self.filled().max_by_key(lower_bound_us) {
            self.best = *best;
        }
        if self.lowest_offset_us(now_us) > self.highest_offset_us(now_us) { Err(ClockContradiction) } else { Ok(()) }
    }

    /// The earliest moment of our clock at which the peer's clock can have shown `theirs_us`.
    pub fn earliest_us(&self, theirs_us: i64, now_us: i64) -> i64 {
        theirs_us.saturating_add(self.lowest_offset_us(now_us))
    }

    /// By how much [`ClockAlignment::earliest_us`] can be too early, in microseconds.
    pub fn error_us(&self, now_us: i64) -> i64 {
        self.highest_offset_us(now_us).saturating_sub(self.lowest_offset_us(now_us)).max(0)
    }

    /// The least that our clock can be ahead of the peer's.
    pub(crate) fn lowest_offset_us(&self, now_us: i64) -> i64 {
        lower_bound_us(&self.best, now_us)
    }

    fn highest_offset_us(&self, now_us: i64) -> i64 {
        let highest = |sample: &ClockSample| {
            sample.answered_at_us.saturating_sub(sample.theirs_us).saturating_add(drift_us(sample, now_us))
        };
        self.filled().map(highest).min().unwrap_or(i64::MAX)
    }

    fn filled(&self) -> impl Iterator<Item = &ClockSample> {
        self.samples[..self.filled].iter()
    }
}

/// The least that our clock can be ahead of the peer's, after a sample.
fn lower_bound_us(sample: &ClockSample, now_us: i64) -> i64 {
    sample.asked_at_us.saturating_sub(sample.theirs_us).saturating_sub(drift_us(sample, now_us))
}

/// By how much the clocks can have drifted apart since a sample.
fn drift_us(sample: &ClockSample, now_us: i64) -> i64 {
    let since_us = now_us.saturating_sub(sample.asked_at_us).max(0);
    since_us.saturating_mul(DRIFT_PPM) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Our clock is a true time; the peer's clock is `offset` ahead and runs by `ppm` millionths
    /// too fast.
    fn theirs_at(true_us: i64, offset_us: i64, ppm: i64) -> i64 {
        true_us + offset_us + true_us * ppm / 1_000_000
    }

    proptest! {
        #[test]
        fn an_age_is_never_too_low_and_at_most_a_round_trip_too_high(
            offset_us in -1i64 << 50..1 << 50,
            ppm in -1000i64..1000,
            rounds in prop::collection::vec((0i64..20_000_000, 0i64..500_000, 0i64..500_000), 1..30),
            lay_us in 0i64..100_000_000,
        ) {
            let (mut now_us, mut clocks) = (0, None::<ClockAlignment>);
            let mut best_round_trip_us = i64::MAX;
            for (pause_us, way_there_us, way_back_us) in rounds {
                let asked_at_us = now_us + pause_us;
                let answered_at_us = asked_at_us + way_there_us + way_back_us;
                let theirs_us = theirs_at(asked_at_us + way_there_us, offset_us, ppm);
                let sample = ClockSample { asked_at_us, theirs_us, answered_at_us };
                match &mut clocks {
                    None => clocks = Some(ClockAlignment::new(sample)),
                    Some(clocks) => prop_assert_eq!(clocks.add(sample), Ok(())),
                }
                best_round_trip_us = way_there_us + way_back_us;
                now_us = answered_at_us;
            }
            let clocks = clocks.unwrap();
            let happened_us = now_us;
            let stamp_us = theirs_at(happened_us, offset_us, ppm);
            now_us += lay_us;
            let earliest_us = clocks.earliest_us(stamp_us, now_us);
            prop_assert!(earliest_us <= happened_us, "the age is {} too low", earliest_us - happened_us);
            // The last sample bounds the error: its round trip, and the drift since then.
            let drift_us = (lay_us + best_round_trip_us) * 2 * DRIFT_PPM / 1_000_000 + 2;
            prop_assert!(happened_us - earliest_us <= best_round_trip_us + drift_us);
            prop_assert!(clocks.error_us(now_us) >= happened_us - earliest_us - drift_us);
        }

        #[test]
        fn the_best_sample_stays_the_best(
            rounds in prop::collection::vec((0i64..20_000_000, 0i64..500_000, 0i64..500_000), 1..30),
            pauses_us in prop::collection::vec(0i64..1_000_000_000, 30),
        ) {
            let first = ClockSample { asked_at_us: 0, theirs_us: 0, answered_at_us: 600_000 };
            let (mut now_us, mut clocks) = (first.answered_at_us, ClockAlignment::new(first));
            for ((pause_us, way_there_us, way_back_us), later_us) in rounds.into_iter().zip(pauses_us) {
                let asked_at_us = now_us + pause_us;
                now_us = asked_at_us + way_there_us + way_back_us;
                let sample = ClockSample { asked_at_us, theirs_us: asked_at_us + way_there_us, answered_at_us: now_us };
                prop_assert_eq!(clocks.add(sample), Ok(()));
                let at_us = now_us + later_us;
                let of_all_us = clocks.filled().map(|sample| lower_bound_us(sample, at_us)).max().unwrap();
                // The drifts are rounded.
                prop_assert!((of_all_us - 1..=of_all_us).contains(&clocks.lowest_offset_us(at_us)));
            }
        }

        #[test]
        fn any_samples_are_survived(samples in prop::collection::vec(any::<(i64, i64, i64)>(), 1..12), at: i64, stamp: i64) {
            let sample = |(asked_at_us, theirs_us, answered_at_us)| ClockSample { asked_at_us, theirs_us, answered_at_us };
            let mut clocks = ClockAlignment::new(sample(samples[0]));
            for other in &samples[1..] {
                let _ = clocks.add(sample(*other));
            }
            clocks.earliest_us(stamp, at);
            clocks.error_us(at);
        }
    }

    #[test]
    fn a_clock_that_stood_still_is_noticed() {
        let sample = |asked_at_us, theirs_us| ClockSample { asked_at_us, theirs_us, answered_at_us: asked_at_us + 100 };
        let mut clocks = ClockAlignment::new(sample(0, 50));
        assert_eq!(clocks.add(sample(1_000_000, 1_000_050)), Ok(()));
        // Our clock did not count a minute during which the peer's clock went on.
        assert_eq!(clocks.add(sample(2_000_000, 62_000_050)), Err(ClockContradiction));
    }
}
