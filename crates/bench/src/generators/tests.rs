//! Tests of whole generators, from the configured term to keys and values.

mod distributions;
mod errors;
mod properties;
mod sequences;

use super::{Draw, Exhausted, Generators, KeySpec, Place, PoolSettings, ValueSpec};
use crate::config::ConfigError;
use crate::term::Term;

const SEED: [u64; 3] = [42, 23, 12];

/// Settings with a small pool, because tests run in parallel.
fn small() -> PoolSettings {
    PoolSettings { source_bytes: 1 << 20, ..PoolSettings::new(SEED) }
}

fn key_spec(text: &str) -> Result<KeySpec, ConfigError> {
    KeySpec::parse(&Term::parse(text).unwrap())
}

fn value_spec(text: &str) -> Result<ValueSpec, ConfigError> {
    ValueSpec::parse(&Term::parse(text).unwrap())
}

fn generators(keys: &str, values: &str) -> Generators {
    Generators::new(&key_spec(keys).unwrap(), &value_spec(values).unwrap(), &small()).unwrap()
}

fn place(worker: usize, concurrent: usize) -> Place {
    Place { worker, concurrent, seed: SEED }
}

fn keys_of(text: &str) -> Draw {
    generators(text, "{fixed_bin, 1}").draw(place(1, 1)).unwrap()
}

fn values_of(text: &str) -> Draw {
    generators("{uniform_int, 10}", text).draw(place(1, 1)).unwrap()
}

/// The next key of a generator of integers.
fn number(draw: &mut Draw) -> i64 {
    std::str::from_utf8(draw.key().unwrap()).unwrap().parse().unwrap()
}

/// All keys until the generator ends.
fn all(draw: &mut Draw) -> Vec<String> {
    let mut keys = Vec::new();
    loop {
        match draw.key() {
            Ok(key) => keys.push(String::from_utf8(key.to_vec()).unwrap()),
            Err(Exhausted) => return keys,
        }
    }
}
