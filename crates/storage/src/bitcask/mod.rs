//! Bitcask: a journal with an index in memory that knows where the current version of each key
//! lies.
//!
//! What it is: a put is one write call, and a get is one read of known length.
//!
//! What it is not: the index in memory has no order. The ordered index (`ordered_index`) is built
//! on first use. The crate `ombak-riak-files` reads the files of Riak's own bitcask.

mod factory;
mod head_cache;
mod index;
mod ordered_index;
mod policy;

pub use factory::BitcaskFactory;
#[cfg(any(test, fuzzing))]
pub(crate) use ordered_index::check_order_entry;
pub(crate) use ordered_index::{ORDER_NOTE, places_of_entry};
