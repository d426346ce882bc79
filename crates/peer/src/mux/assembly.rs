//! Putting a body together from its chunks.

use bytes::{Bytes, BytesMut};

/// A body of which not all chunks may have arrived.
#[derive(Debug)]
pub(super) struct Assembly {
    body_bytes: usize,
    arrived: Arrived,
}

#[derive(Debug)]
enum Arrived {
    /// The first chunk was the whole body. It is a slice of what was read.
    Whole(Bytes),
    /// The chunks so far, in an allocation for all of them.
    Chunks(BytesMut),
}

/// The chunks have more bytes than the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Assembly {
    /// Begins a body of `body_bytes` bytes, for which the caller has checked that they may be
    /// allocated.
    pub(super) fn begin(body_bytes: usize, first: Bytes) -> Self {
        if first.len() == body_bytes {
            return Self { body_bytes, arrived: Arrived::Whole(first) };
        }
        let mut chunks = BytesMut::with_capacity(body_bytes);
        chunks.extend_from_slice(&first);
        Self { body_bytes, arrived: Arrived::Chunks(chunks) }
    }

    /// Adds the next chunk.
    pub(super) fn add(&mut self, chunk: &[u8]) -> Result<(), TooLong> {
        match &mut self.arrived {
            Arrived::Chunks(chunks) if chunk.len() <= self.body_bytes - chunks.len() => {
                chunks.extend_from_slice(chunk);
                Ok(())
            }
            _ => Err(TooLong),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        match &self.arrived {
            Arrived::Whole(_) => true,
            Arrived::Chunks(chunks) => chunks.len() == self.body_bytes,
        }
    }

    /// The length of the whole body in bytes.
    pub(super) const fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// The body, once it is whole.
    pub(super) fn into_body(self) -> Bytes {
        assert!(self.is_whole(), "a body is used before all of it has arrived");
        match self.arrived {
            Arrived::Whole(body) => body,
            Arrived::Chunks(chunks) => chunks.freeze(),
        }
    }
}
