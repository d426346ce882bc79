//! A delta with its place in the history of its object.

use crate::codec::{self, Codec, Reader, Writer};
use crate::{BadBytes, Delta};
use bytes::Bytes;
use ombak_types::VectorClock;
use ombak_types::clock::Dot;

/// What one put changed in an object with a data type.
///
/// The object's clock decides who may merge it: a copy that has seen what the coordinator had seen
/// before the put. So a copy's clock tells all that is in the copy, as with whole objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The object's clock at the coordinator before the put.
    pub before: VectorClock,
    /// The put's event.
    pub dot: Dot,
    /// What it changed.
    pub delta: Delta,
}

impl Record {
    /// The bytes in a store or a message.
    pub fn to_bytes(&self) -> Bytes {
        codec::encode(self)
    }

    /// Reads such bytes.
    ///
    /// # Errors
    /// The bytes are not a record, or one of a version that is not known.
    pub fn from_bytes(bytes: &Bytes) -> Result<Self, BadBytes> {
        codec::decode(bytes)
    }
}

impl Codec for Record {
    fn write(&self, out: &mut Writer) {
        self.before.write(out);
        self.dot.write(out);
        self.delta.write(out);
    }

    fn read(from: &mut Reader) -> Result<Self, BadBytes> {
        Ok(Self { before: Codec::read(from)?, dot: Codec::read(from)?, delta: Codec::read(from)? })
    }
}
