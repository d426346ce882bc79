//! Bitcask: a journal, and an index in memory that knows where the current version of each key lies.
//!
//! What it is: a put is one write call, a get is one read of known length.
//!
//! What it is not: it has no order. Riak's own files are read elsewhere.

mod factory;
mod head_cache;
mod index;
mod order;

pub use factory::BitcaskFactory;
#[cfg(any(test, fuzzing))]
pub(crate) use order::check_order_entry;
pub(crate) use order::{ORDER_NOTE, places_of_entry};
