//! The keys of a worker (docs/riak/basho-bench.md §4.2).

use crate::config::ConfigError;
use crate::generators::Draw;
use crate::term::Term;
use ombak_types::etf;
use ombak_types::phash2::phash2;
use std::io::Write;

/// The order in which a worker writes its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// In ascending order.
    Growing,
    /// Spread over the key space by a hash.
    Skewed,
}

impl KeyOrder {
    /// Parses `key_order` or `skew_order`.
    pub fn parse(setting: &str, term: &Term) -> Result<Self, ConfigError> {
        match term {
            Term::Atom(word) if word == "key_order" => Ok(Self::Growing),
            Term::Atom(word) if word == "skew_order" => Ok(Self::Skewed),
            _ => Err(ConfigError::setting(setting, "the order has to be key_order or skew_order")),
        }
    }

    /// The word that a configuration uses.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Growing => "key_order",
            Self::Skewed => "skew_order",
        }
    }
}

/// A number that distinguishes the keys of a worker from those of other workers and of other load
/// generators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId(u32);

impl KeyId {
    /// The id of a worker on the load generator with this node name.
    pub fn new(worker: usize, node_name: &etf::Term) -> Self {
        Self(phash2(&etf::Term::from(worker as u64)) ^ phash2(node_name))
    }

    /// Writes the key with this number: nine digits for the number or its hash, and nine for the
    /// worker.
    pub fn write(self, number: u64, order: KeyOrder, out: &mut Vec<u8>) {
        let first = match order {
            KeyOrder::Growing => number,
            KeyOrder::Skewed => u64::from(phash2(&etf::Term::from(number))),
        };
        out.clear();
        // Writing to memory cannot fail. Only the upper 26 of the 32 bits of the worker's id are
        // used.
        let _ = write!(out, "{first:09}{:09}", self.0 >> 6);
    }
}

/// Draws one of `n` existing keys, counted from 1. About four of five draws fall into the lowest
/// fifth.
pub fn eighty_twenty(n: u64, draw: &mut Draw) -> u64 {
    let turn = draw.uniform((n / 5).max(1));
    if draw.uniform(n.max(1)) < turn { draw.uniform(n - turn) + turn.max(1) } else { draw.uniform(turn.max(1)) }
}

/// The term as Erlang encodes it.
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
