//! A kind of message of a service, for the tests that all messages have in common.

use bytes::Bytes;
use ombak_peer::mux::Body;
use std::fmt::Debug;

/// A kind of message.
pub(crate) struct MessageKind {
    /// Its name. The names of its frozen bytes in `tests/fixtures` begin with it.
    pub(crate) name: &'static str,
    /// Checks what the kind does with any bytes, with [`again`]. Panics if it does wrong.
    pub(crate) check: fn(&Bytes),
}

/// Bytes are refused, or they decode to a message that encodes to bytes of the same message.
pub(crate) fn again<T: Debug, E: Debug>(bytes: &Bytes, decode: fn(&Bytes) -> Result<T, E>, encode: fn(&T) -> Body) {
    let Ok(message) = decode(bytes) else { return };
    let copy = encode(&message).parts().concat().into();
    let copy = decode(&copy).unwrap_or_else(|why| panic!("{message:?} does not decode again: {why:?}"));
    assert_eq!(format!("{message:?}"), format!("{copy:?}"));
}
