//! Random numbers that are reproducible from a seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The random numbers of one worker. They are fast and not cryptographically secure.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Starts from the three parts of the run's seed, each plus the worker's number, as basho_bench
    /// does (docs/riak/basho-bench.md §1.1).
    pub fn new(seed: [u64; 3], worker: u64) -> Self {
        let mixed = seed.iter().fold(0, |mixed, part| scrambled(mixed ^ part.wrapping_add(worker)));
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Any number, uniformly distributed.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 1 to `n`, uniformly distributed. `n` = 0 counts as 1.
    pub fn uniform(&mut self, n: u64) -> u64 {
        1 + self.below(n.max(1))
    }

    /// A number from 0 to n − 1, uniformly distributed. It is the upper half of a product, which is
    /// drawn again in the rare cases that would make some numbers more likely. The division that
    /// detects these cases is needed only if the lower half is small.
    fn below(&mut self, n: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            let (upper, lower) = ((product >> 64) as u64, product as u64);
            if lower >= n || lower >= n.wrapping_neg() % n {
                return upper;
            }
        }
    }

    /// A number from 0 (inclusive) to 1 (exclusive).
    pub fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 / STEPS
    }

    /// Whether an event with this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }

    /// Fills `out` with printable characters, 32 … 126.
    pub fn fill_printable(&mut self, out: &mut [u8]) {
        const CHARACTERS: u64 = 95;
        for four in out.chunks_mut(4) {
            let mut bits = self.next_u64();
            for byte in four {
                *byte = 32 + (((bits & 0xffff) * CHARACTERS) >> 16) as u8;
                bits >>= 16;
            }
        }
    }
}

/// Scrambles 64 bits reversibly (the finalizer of splitmix64), so that neighbouring seeds lead to
/// very different sequences.
fn scrambled(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_repeats_and_workers_differ() {
        let first = |seed, worker| {
            let mut random = Random::new(seed, worker);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(first([42, 23, 12], 1), first([42, 23, 12], 1));
        let mut seen: Vec<_> = (1..=1000).map(|worker| first([42, 23, 12], worker)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1000);
        assert_ne!(first([42, 23, 12], 1), first([42, 23, 13], 1));
        assert_ne!(first([42, 23, 12], 1), first([23, 42, 12], 1));
    }

    #[test]
    fn ranges_include_both_ends() {
        let mut random = Random::new([1, 2, 3], 1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[random.uniform(7) as usize - 1] = true;
        }
        assert_eq!(seen, [true; 7]);
        // Without a second draw, half of all numbers would be too likely for this bound.
        let half = (1 << 63) + 1;
        let low = (0..10_000).filter(|_| random.uniform(half) <= half / 2).count();
        assert!((4800..5200).contains(&low), "{low}");
        assert_eq!(random.uniform(0), 1);
        assert_eq!(random.uniform(1), 1);
        assert!(random.uniform(u64::MAX) >= 1);
    }

    #[test]
    fn printable_characters_are_all_of_them_and_nothing_else() {
        let mut text = vec![0; 100_001];
        Random::new([1, 2, 3], 1).fill_printable(&mut text);
        let mut counts = [0_u32; 256];
        text.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        for (byte, count) in counts.iter().enumerate() {
            if (32..=126).contains(&byte) {
                assert!((850..1260).contains(count), "{byte}: {count} of about 1053");
            } else {
                assert_eq!(*count, 0, "{byte}");
            }
        }
    }
}
