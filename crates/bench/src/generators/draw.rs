//! One worker's keys, values and random numbers.

use super::key_source::KeySource;
use super::random::Random;
use super::value_source::ValueSource;

/// What a key's buffer has room for at first. It grows to the longest key once.
const KEY_BYTES: usize = 256;

/// Which worker draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// 1 … concurrent.
    pub worker: usize,
    /// All workers.
    pub concurrent: usize,
    /// The run's `rng_seed`.
    pub seed: [u64; 3],
}

/// A finite generator has run dry: the worker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// What one worker draws from.
#[derive(Debug)]
pub struct Draw {
    random: Random,
    keys: KeySource,
    values: ValueSource,
    key: Vec<u8>,
    noise: Vec<u8>,
    /// Of values that were handed out and not counted yet.
    value_bytes: u64,
    place: Place,
}

impl Draw {
    /// A worker's own; [`super::Generators::draw`] makes it.
    pub(super) fn new(keys: KeySource, values: ValueSource, place: Place) -> Self {
        let random = Random::new(place.seed, place.worker as u64);
        Self { random, keys, values, key: Vec::with_capacity(KEY_BYTES), noise: Vec::new(), value_bytes: 0, place }
    }

    /// The next key. Integers come as decimal text.
    pub fn key(&mut self) -> Result<&[u8], Exhausted> {
        self.next_key()?;
        Ok(&self.key)
    }

    /// The next value. Integers come as decimal text.
    pub fn value(&mut self) -> &[u8] {
        let value = self.values.next(&mut self.random);
        self.value_bytes += value.len() as u64;
        value
    }

    /// The next key with the next value.
    pub fn pair(&mut self) -> Result<(&[u8], &[u8]), Exhausted> {
        self.next_key()?;
        let value = self.values.next(&mut self.random);
        self.value_bytes += value.len() as u64;
        Ok((&self.key, value))
    }

    /// So many random bytes, new each time. They count as a value.
    pub fn bytes(&mut self, n: usize) -> &[u8] {
        self.value_bytes += n as u64;
        self.noise.resize(n, 0);
        self.random.fill(&mut self.noise);
        &self.noise
    }

    /// How long the values were that were handed out since this was asked last.
    pub fn take_value_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.value_bytes)
    }

    /// A random number in 1 … n.
    pub fn uniform(&mut self, n: u64) -> u64 {
        self.random.uniform(n)
    }

    /// The worker's random numbers.
    pub fn rng(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The worker's number, from 1.
    pub fn worker(&self) -> usize {
        self.place.worker
    }

    /// Which worker of how many this is.
    pub fn place(&self) -> Place {
        self.place
    }

    fn next_key(&mut self) -> Result<(), Exhausted> {
        self.key.clear();
        self.keys.append(&mut self.random, &mut self.key)
    }
}
