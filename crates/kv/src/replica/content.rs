//! The parts of which a coverage question and the pieces of its answers consist when they travel.
//!
//! What it is not: it lays out no bytes. What carries messages between nodes implements both
//! traits.

use bytes::Bytes;

/// Takes the parts of a message one after the other.
pub trait ContentWriter {
    /// Writes a byte.
    fn u8(&mut self, number: u8);

    /// Writes a number.
    fn varint(&mut self, number: u64);

    /// Writes bytes with their length.
    fn bytes(&mut self, bytes: &[u8]);
}

/// Gives the parts of a message in the order in which they were written. The bytes may come from
/// anybody: no part needs more memory than the message has bytes.
pub trait ContentReader {
    /// The next byte.
    fn u8(&mut self) -> Result<u8, BadContent>;

    /// The next number.
    fn varint(&mut self) -> Result<u64, BadContent>;

    /// The next bytes. They share their memory with the message: whoever keeps them for longer
    /// copies them.
    fn bytes(&mut self) -> Result<Bytes, BadContent>;

    /// The next number, which has at most 32 bits.
    fn varint32(&mut self) -> Result<u32, BadContent> {
        u32::try_from(self.varint()?).map_err(|_| BadContent("a number is too large"))
    }
}

/// Why bytes are no question, or no piece of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadContent(pub &'static str);
