//! Shared by the tests.

use bytes::Bytes;
use ombak_types::Actor;

/// The actor of a replica. Replicas have numbers.
pub(crate) fn actor(replica: usize) -> Actor {
    Actor::new(&[b'a' + replica as u8; 8])
}

pub(crate) fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Bytes from hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}
