//! Keys and values, drawn as basho_bench draws them (spec/basho-bench.md §2, §3).

use crate::config::ConfigError;
use crate::term::Term;

/// A key generator as it was configured.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySpec(Term);

/// A value generator as it was configured.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueSpec(Term);

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

impl KeySpec {
    /// Reads a `key_generator`.
    pub fn parse(term: &Term) -> Result<Self, ConfigError> {
        Ok(Self(term.clone()))
    }
}

impl ValueSpec {
    /// Reads a `value_generator`.
    pub fn parse(term: &Term) -> Result<Self, ConfigError> {
        Ok(Self(term.clone()))
    }
}

/// What one worker draws from.
#[derive(Debug)]
pub struct Draw {}

impl Draw {
    /// The generators of one worker. Pools that workers share are made once, before.
    pub fn new(_keys: &KeySpec, _values: &ValueSpec, _place: Place) -> Result<Self, ConfigError> {
        Ok(Self {})
    }

    /// The next key. Integers come as decimal text.
    pub fn key(&mut self) -> Result<&[u8], Exhausted> {
        Err(Exhausted)
    }

    /// The next value. Integers come as decimal text.
    pub fn value(&mut self) -> &[u8] {
        &[]
    }

    /// The next key with the next value.
    pub fn pair(&mut self) -> Result<(&[u8], &[u8]), Exhausted> {
        Err(Exhausted)
    }

    /// A random number in 1 … n.
    pub fn uniform(&mut self, _n: u64) -> u64 {
        1
    }
}
