//! Keys and values, drawn as basho_bench draws them (docs/riak/basho-bench.md §2, §3).
//!
//! What it is: [`KeySpec`] and [`ValueSpec`] are configured generators, checked and explained; [`Generators`] is what
//! all workers of a run share (pools of random bytes, files of keys, resume states); a [`Draw`] is what one worker draws
//! from.
//!
//! What it is not: it runs no Erlang functions, and its random numbers are not Erlang's: a seed gives the same keys each
//! time here, but others than it gave there.
//!
//! Invariants:
//! * the same seed, worker and number of workers give the same keys and values; two workers' differ;
//! * what a generator needs is allocated before the first draw, or grows to the longest key once: a draw allocates nothing;
//! * a specification that was accepted never fails later, but for files that change while they are used: such a
//!   generator runs dry and [`Generators::warnings`] says why.

mod draw;
mod format;
mod hash;
mod integers;
mod key_source;
mod keys;
mod lines;
mod pool;
mod random;
mod reader;
mod resume;
mod shared;
#[cfg(test)]
mod tests;
mod value_source;
mod values;
pub(crate) mod words;

pub use draw::{Draw, Exhausted, Place};
pub use keys::KeySpec;
pub use random::Random;
pub use shared::{Generators, PoolSettings};
pub use values::ValueSpec;
