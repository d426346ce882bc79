//! The contexts that clients hold: a clock as an external term, in Riak's form.

use super::terms;
use crate::{BadBytes, Clock};
use bytes::Bytes;
use ombak_types::etf::{self, Limits};

/// The largest context that is read: more actors than a value ever has.
const LIMITS: Limits = Limits { terms_max: 64 << 10, inflated_bytes_max: 1 << 20, depth_max: etf::DEPTH_MAX };

impl Clock {
    /// The bytes that a client gets as the context of a value.
    pub fn to_context(&self) -> Bytes {
        etf::encode(&terms::clock_term(self)).into()
    }

    /// Reads the context that a client sends. Riak's are accepted too.
    ///
    /// # Errors
    /// The bytes are not a clock.
    pub fn from_context(bytes: &[u8]) -> Result<Self, BadBytes> {
        terms::clock(&etf::decode_with(bytes, LIMITS)?)
    }
}
