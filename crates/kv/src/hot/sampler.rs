//! Chooses the requests that are counted.
//!
//! A quiet node counts all of its requests: the first ones of each second. A busy one counts one in
//! [`GAP`] of the others, with that weight, so that the estimate stays right on average. The gaps
//! vary, or a workload that repeats in step with them would hide keys.

use std::time::{Duration, Instant};

/// One request in this many is counted on average, after the first ones of a second.
const GAP: u32 = 64;
/// How many requests of each second are counted one by one, for each shard.
const ALL_OF: u32 = 32;
const SECOND: Duration = Duration::from_secs(1);

/// Chooses the next requests of one shard.
#[derive(Debug)]
pub(super) struct Sampler {
    second: Instant,
    counted: u32,
    /// How many requests the next one that is counted stands for.
    weight: u32,
    random: u32,
}

impl Sampler {
    pub(super) const fn new(now: Instant, seed: u32) -> Self {
        // Zero would stay zero.
        Self { second: now, counted: 0, weight: 1, random: seed | 1 }
    }

    /// The weight of the request that is counted now, and how many requests come before the next
    /// one.
    pub(super) fn count(&mut self, now: Instant) -> (u64, u32) {
        let weight = self.weight;
        if now.saturating_duration_since(self.second) >= SECOND {
            (self.second, self.counted) = (now, 0);
        }
        self.counted += 1;
        if self.counted < ALL_OF {
            self.weight = 1;
            return (weight.into(), 0);
        }
        let skipped = self.random() % (2 * GAP - 1);
        self.weight = GAP;
        (weight.into(), skipped)
    }

    /// A number of the generator xorshift32. Nothing but the choice of samples depends on it.
    const fn random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate of `requests` requests at the same moment.
    fn estimated(sampler: &mut Sampler, now: Instant, requests: u32) -> u64 {
        let (mut total, mut left) = (0, 0);
        for _ in 0..requests {
            if left > 0 {
                left -= 1;
                continue;
            }
            let (weight, skipped) = sampler.count(now);
            total += weight;
            left = skipped;
        }
        total
    }

    #[test]
    fn few_requests_are_counted_one_by_one_and_many_are_estimated() {
        let start = Instant::now();
        let mut sampler = Sampler::new(start, 7);
        assert_eq!(estimated(&mut sampler, start, ALL_OF), u64::from(ALL_OF));
        let estimate = estimated(&mut sampler, start, 1_000_000);
        assert!((900_000..1_100_000).contains(&estimate), "{estimate}");
        // The first one of the next second still stands for those that were skipped before it.
        let _ = sampler.count(start + SECOND);
        assert_eq!(estimated(&mut sampler, start + SECOND, ALL_OF - 2), u64::from(ALL_OF) - 2);
    }
}
