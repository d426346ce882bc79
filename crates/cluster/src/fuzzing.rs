//! The properties of the decoders of messages between nodes, for the fuzz targets and for the tests
//! of this crate.

use crate::services::{again, registry};
use crate::wire::{decode_error, encode_error};
use bytes::Bytes;
use std::sync::LazyLock;
use std::time::Instant;

/// Deadlines travel outside of messages. All messages of a program get this one.
pub(crate) fn deadline() -> Instant {
    static DEADLINE: LazyLock<Instant> = LazyLock::new(Instant::now);
    *DEADLINE
}

/// Any bytes are refused by every decoder, or decode to a message that encodes to bytes of the same
/// message.
pub fn messages(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    registry::messages().for_each(|kind| (kind.check)(&bytes));
    again(&bytes, decode_error, encode_error);
}
