//! Data types in the engine: counters, sets, maps and HyperLogLogs of bucket types, and the
//! counters of Riak 1.4.
//!
//! What it is: two kinds of values ([`ombak_kv::hooks::ValueKind`]), the puts that change them, and
//! what a reader makes of the object that it got. It knows how a value of `ombak_crdt` lies in a
//! sibling.
//!
//! What it is not: it has no rules of data types, which are in `ombak_crdt`, and none of
//! replication, which are in `ombak_kv`. It knows neither messages nor statuses.
//!
//! Invariants:
//! * Values of the same events are equal, whoever has merged them and in which order.
//! * A value that cannot be read is an error. It is never taken for an absent value.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod counts;
mod form;
mod legacy;
mod sibling;
mod typed;

pub use form::WHOLE_BYTES_MAX;
pub use legacy::{LegacyCounters, legacy_counter, legacy_put};
pub use typed::{TypedValues, state_of, typed_put};

use counts::Counts;
use ombak_kv::hooks::ValueKind;
use ombak_runtime::{Runtime, TokioRuntime};
use std::sync::Arc;

/// The kinds that a node needs for data types. They count what they do with the real time.
pub fn kinds() -> Vec<Arc<dyn ValueKind>> {
    kinds_in(Arc::new(TokioRuntime))
}

/// The kinds of a node whose time comes from `clock`.
pub fn kinds_in(clock: Arc<dyn Runtime>) -> Vec<Arc<dyn ValueKind>> {
    kinds_with(clock, WHOLE_BYTES_MAX)
}

/// The same. Values of up to `whole_bytes_max` are written as a whole with each update.
pub fn kinds_with(clock: Arc<dyn Runtime>, whole_bytes_max: usize) -> Vec<Arc<dyn ValueKind>> {
    let counts = Arc::new(Counts::new(clock));
    vec![Arc::new(TypedValues::new(counts.clone(), whole_bytes_max)), Arc::new(LegacyCounters::new(counts))]
}
