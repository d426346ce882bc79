//! Generators of keys and values with the distributions of basho_bench (docs/riak/basho-bench.md
//! §2, §3).
//!
//! What it is: [`KeySpec`] and [`ValueSpec`] are configured generators that have been checked and
//! can be described. [`Generators`] holds what all workers of a run share (pools of random bytes,
//! files of keys, resume states). A [`Draw`] is what one worker draws from.
//!
//! What it is not: it runs no Erlang functions, and its random numbers are not those of Erlang. A
//! seed gives the same keys each time here, but not the keys that it gives in basho_bench.
//!
//! Invariants:
//! * The same seed, worker and number of workers give the same keys and values. Those of two
//!   workers differ.
//! * A draw allocates nothing: all memory is allocated before the first draw, except that a buffer
//!   may grow to the length of the longest key.
//! * An accepted specification never fails later, unless a file changes while it is used. In that
//!   case the generator ends, and [`Generators::warnings`] says why.

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
