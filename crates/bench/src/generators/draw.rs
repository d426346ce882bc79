//! The keys, values and random numbers of one worker.

use super::key_source::KeySource;
use super::random::Random;
use super::value_source::ValueSource;

/// The initial capacity of the key buffer, in bytes. The buffer grows at most to the length of the
/// longest key.
const KEY_BYTES: usize = 256;

/// The worker that draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of the worker, from 1 to `concurrent`.
    pub worker: usize,
    /// The number of workers in the run.
    pub concurrent: usize,
    /// The run's `rng_seed`.
    pub seed: [u64; 3],
}

/// A finite generator has ended, so the worker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// The generators of one worker.
#[derive(Debug)]
pub struct Draw {
    random: Random,
    keys: KeySource,
    values: ValueSource,
    key: Vec<u8>,
    noise: Vec<u8>,
    /// The total length of drawn values that [`Draw::take_value_bytes`] has not returned yet.
    value_bytes: u64,
    place: Place,
}

impl Draw {
    /// Creates the generators of one worker, for [`super::Generators::draw`].
    pub(super) fn new(keys: KeySource, values: ValueSource, place: Place) -> Self {
        let random = Random::new(place.seed, place.worker as u64);
        Self { random, keys, values, key: Vec::with_capacity(KEY_BYTES), noise: Vec::new(), value_bytes: 0, place }
    }

    /// Draws the next key. Integers are written as decimal text.
    pub fn key(&mut self) -> Result<&[u8], Exhausted> {
        self.next_key()?;
        Ok(&self.key)
    }

    /// Draws the next value. Integers are written as decimal text.
    pub fn value(&mut self) -> &[u8] {
        let value = self.values.next(&mut self.random);
        self.value_bytes += value.len() as u64;
        value
    }

    /// Draws the next key and the next value.
    pub fn pair(&mut self) -> Result<(&[u8], &[u8]), Exhausted> {
        self.next_key()?;
        let value = self.values.next(&mut self.random);
        self.value_bytes += value.len() as u64;
        Ok((&self.key, value))
    }

    /// Draws `n` new random bytes. They count as a value.
    pub fn bytes(&mut self, n: usize) -> &[u8] {
        self.value_bytes += n as u64;
        self.noise.resize(n, 0);
        self.random.fill(&mut self.noise);
        &self.noise
    }

    /// The total length of the values drawn since the last call.
    pub fn take_value_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.value_bytes)
    }

    /// Draws a random number from 1 to `n`.
    pub fn uniform(&mut self, n: u64) -> u64 {
        self.random.uniform(n)
    }

    /// The random numbers of the worker.
    pub fn rng(&mut self) -> &mut Random {
        &mut self.random
    }

    /// The number of the worker, counted from 1.
    pub fn worker(&self) -> usize {
        self.place.worker
    }

    /// The number of the worker, the number of workers, and the seed.
    pub fn place(&self) -> Place {
        self.place
    }

    fn next_key(&mut self) -> Result<(), Exhausted> {
        self.key.clear();
        self.keys.append(&mut self.random, &mut self.key)
    }
}
