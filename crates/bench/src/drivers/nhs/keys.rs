//! Keys of a worker (docs/riak/basho-bench.md §4.2).

use crate::config::ConfigError;
use crate::generators::Draw;
use crate::term::Term;
use ombak_types::etf;
use ombak_types::phash2::phash2;
use std::io::Write;

/// The order in which a worker's keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// They grow.
    Growing,
    /// They are spread.
    Skewed,
}

impl KeyOrder {
    /// `key_order` or `skew_order`.
    pub fn parse(setting: &str, term: &Term) -> Result<Self, ConfigError> {
        match term {
            Term::Atom(word) if word == "key_order" => Ok(Self::Growing),
            Term::Atom(word) if word == "skew_order" => Ok(Self::Skewed),
            _ => Err(ConfigError::setting(setting, "the order has to be key_order or skew_order")),
        }
    }

    /// As it is configured.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Growing => "key_order",
            Self::Skewed => "skew_order",
        }
    }
}

/// What tells a worker's keys from another's, and this generator's from another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId(u32);

impl KeyId {
    /// Of a worker of the node with this name.
    pub fn new(worker: usize, node_name: &etf::Term) -> Self {
        Self(phash2(&etf::Term::from(worker as u64)) ^ phash2(node_name))
    }

    /// Writes the key with this number: two times nine digits.
    pub fn write(self, number: u64, order: KeyOrder, out: &mut Vec<u8>) {
        let first = match order {
            KeyOrder::Growing => number,
            KeyOrder::Skewed => u64::from(phash2(&etf::Term::from(number))),
        };
        out.clear();
        // Writing into memory does not fail. Of the worker the upper 26 of 32 bits count.
        let _ = write!(out, "{first:09}{:09}", self.0 >> 6);
    }
}

/// One of `n` existing keys, from 1 on: about four of five times one of the lower fifth.
pub fn eighty_twenty(n: u64, draw: &mut Draw) -> u64 {
    let turn = draw.uniform((n / 5).max(1));
    if draw.uniform(n.max(1)) < turn { draw.uniform(n - turn) + turn.max(1) } else { draw.uniform(turn.max(1)) }
}

/// The term by which Erlang would know this one.
pub fn etf_term(term: &Term) -> Option<etf::Term> {
    Some(match term {
        Term::Atom(name) => etf::Term::atom(name),
        Term::Text(text) => {
            let code = |c: char| etf::Term::Int(i64::from(u32::from(c)));
            etf::Term::from_list(text.chars().map(code).collect())
        }
        Term::Binary(bytes) => etf::Term::binary(bytes),
        Term::Integer(n) => etf::Term::Int(i64::try_from(*n).ok()?),
        _ => return None,
    })
}
