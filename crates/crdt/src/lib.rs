//! Values that merge without conflicts: counters, sets, grow-only sets, maps and HyperLogLogs, with
//! Riak's semantics (docs/riak/semantics.md §7) and Riak's stored bytes (docs/riak/backends.md
//! §7.4).
//!
//! What it is: states, the operations on them, their merge, and deltas. A delta is what one request
//! changed. It is merged into a copy in place of the whole state, so that the cost of a request
//! does not grow with the value (docs/design/datatypes.md).
//!
//! What it is not: it has no I/O, no clock and no randomness. The caller passes in the actor of an
//! event, and the time of a register's value. It knows neither objects nor their vector clocks; who
//! coordinates a request sees to it that an actor never issues a dot twice.
//!
//! Invariants:
//! * Merging is associative, commutative and idempotent, for states and for contexts.
//! * `delta` changes nothing. Merging a delta into the state that it was made of gives the same
//!   state as merging it into any later state gives, apart from what that state has seen besides.
//! * A request is applied as a whole or not at all.
//! * Decoders never trust a length, and give states that keep these rules whatever the bytes are.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod change;
mod clock;
mod codec;
mod counter;
mod deferred;
mod deliberate_faults;
mod delta;
mod dot;
mod dot_map;
mod error;
mod field;
mod gset;
mod hll;
mod json;
mod map;
mod members;
mod request;
mod riak;
mod set;
mod state;
mod summary;
#[cfg(test)]
mod testing;

pub use change::Change;
pub use clock::Clock;
pub use counter::{Counter, CounterDelta};
#[cfg(feature = "deliberate-faults")]
pub use deliberate_faults::ignore_older_assignments;
pub use delta::Delta;
pub use dot::Dot;
pub use error::{Absent, BadBytes, CannotMerge, MissingPast, Refusal};
pub use field::{Field, FieldType};
pub use gset::{GSet, GSetDelta};
pub use hll::{Hll, HllDelta, Precision};
pub use json::{BadJson, bytes_as_request, request_from_json, value_to_json};
pub use map::{FieldOp, FieldValue, MAP_DEPTH_MAX, Map, MapDelta, MapOp};
pub use request::Request;
pub use riak::{RiakCounter, RiakValue};
pub use set::{Set, SetDelta, SetOp};
pub use state::{State, Value};
pub use summary::Summary;
