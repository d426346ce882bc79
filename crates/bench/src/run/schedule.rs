//! The times at which a worker's operations are due.

use crate::config::Mode;
use crate::generators::Random;
use std::time::Duration;

/// The number of operations whose gaps add up to exactly the time that they should take.
const BLOCK: usize = 100;

/// The due times of one worker, counted from the start of the run.
///
/// With a rate, the gaps are exponentially distributed, as if the worker represented many
/// independent clients. The gaps of each hundred operations are scaled so that together they take
/// as long as a hundred operations take at that rate.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    gap_s: Option<f64>,
    due_s: f64,
    block: [f64; BLOCK],
    next: usize,
}

impl Schedule {
    pub(super) fn new(mode: Mode) -> Self {
        let gap_s = match mode {
            Mode::Max => None,
            Mode::Rate(per_second) => Some(per_second.recip()),
        };
        Self { gap_s, due_s: 0.0, block: [0.0; BLOCK], next: BLOCK }
    }

    /// The time when the next operation is due. `None` means as soon as possible.
    pub(super) fn next(&mut self, random: &mut Random) -> Option<Duration> {
        let gap_s = self.gap_s?;
        if self.next == BLOCK {
            self.draw_block(gap_s, random);
        }
        self.due_s += self.block.get(self.next).copied().unwrap_or(gap_s);
        self.next += 1;
        Some(Duration::from_secs_f64(self.due_s))
    }

    fn draw_block(&mut self, gap_s: f64, random: &mut Random) {
        self.block.iter_mut().for_each(|gap| *gap = random.exponential(gap_s));
        let stretch = gap_s * BLOCK as f64 / self.block.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        self.block.iter_mut().for_each(|gap| *gap *= stretch);
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(per_second: f64, count: usize) -> Vec<f64> {
        let (mut schedule, mut random) = (Schedule::new(Mode::Rate(per_second)), Random::new([42, 23, 12], 1));
        (0..count).map(|_| schedule.next(&mut random).unwrap().as_secs_f64()).collect()
    }

    #[test]
    fn every_hundred_takes_its_time() {
        let due = due(250.0, 1000);
        for (hundreds, at) in due.iter().skip(99).step_by(100).enumerate() {
            let expected = 0.4 * (hundreds + 1) as f64;
            assert!((at - expected).abs() < 1e-6, "{at} for {expected}");
        }
    }

    #[test]
    fn gaps_are_exponential() {
        let due = due(100.0, 50_000);
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap >= 0.0));
        // In an exponential distribution with a mean of 10 ms, a share of 1/e is longer than the
        // mean and a share of 1/e³ is longer than three times the mean.
        for (longer_s, share) in [(0.01, (-1f64).exp()), (0.03, (-3f64).exp())] {
            let found = gaps.iter().filter(|gap| **gap > longer_s).count() as f64 / gaps.len() as f64;
            assert!((found - share).abs() < 0.01, "{found} for {share}");
        }
    }

    #[test]
    fn without_a_rate_everything_is_due_at_once() {
        let mut random = Random::new([1, 1, 1], 1);
        assert_eq!(Schedule::new(Mode::Max).next(&mut random), None);
    }
}
