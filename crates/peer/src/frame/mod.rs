//! The layout of the bytes on a connection after the handshake, protocol version 1.
//!
//! ```text
//! frame    length u32   bytes of the payload, at most 65,536
//!          kind u8      see below
//!          flags u8     0 in this version
//!          reserved u16 0 in this version
//!          stream u64   number of the request that the frame belongs to, or 0
//!          payload
//!
//! kind  name           payload
//!  1    Request        RequestHead (44 bytes), then the first bytes of the body
//!  2    RequestChunk   the next bytes of the body, at least one
//!  3    Answer         AnswerHead (8 bytes), then the first bytes of the body; ends the stream
//!  4    AnswerChunk    the next bytes of the answer's body, at least one
//!  5    Item           length u32 of an item of a streamed answer, then its first bytes
//!  6    ItemChunk      the next bytes of the item, at least one
//!  7    Cancel         empty: the caller does not want an answer any more
//!  8    Credit         bytes u32: the caller has room for so many more bytes of items
//!  9    Ping           id u64, clock i64 of the sender
//! 10    Pong           id u64 of the ping, clock i64 of the sender
//! 11    Goodbye        reason u16, taken u64, then a text of at most 256 bytes: the sender closes.
//!                      It executes no request of the receiver with a number above `taken`
//! ```
//!
//! All integers are little-endian. Clocks are microseconds of a node's own monotonic clock. The
//! node that opened the connection numbers its requests with odd numbers, the other with even
//! numbers. The kinds 9 to 11 have stream 0, and all others have another. Heads announce the length
//! of the body, so the last chunk needs no mark.
//!
//! A later version may add kinds and flags. A node sends them only on a connection whose handshake
//! agreed on that version.

mod decode;
mod encode;
mod heads;

pub use decode::{FrameError, next_frame};
pub use encode::{encode_frame, encode_header};
pub use heads::{AnswerHead, AnswerStatus, Priority, RequestHead};

use bytes::Bytes;

/// The length of the fixed part of a frame in bytes.
pub const HEADER_BYTES: usize = 16;

/// The maximum length of the payload of a frame in bytes. A larger body travels in several frames,
/// and frames of other requests go between them.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// The maximum length of the text of a goodbye in bytes.
pub const GOODBYE_TEXT_BYTES_MAX: usize = 256;

/// The number of a request on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

impl StreamId {
    /// Whether the node that opened the connection made the request.
    pub const fn is_of_initiator(self) -> bool {
        self.0 % 2 == 1
    }
}

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table in the header of this module describes each")]
#[repr(u8)]
pub enum FrameKind {
    Request = 1,
    RequestChunk = 2,
    Answer = 3,
    AnswerChunk = 4,
    Item = 5,
    ItemChunk = 6,
    Cancel = 7,
    Credit = 8,
    Ping = 9,
    Pong = 10,
    Goodbye = 11,
}

impl FrameKind {
    const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Request,
            2 => Self::RequestChunk,
            3 => Self::Answer,
            4 => Self::AnswerChunk,
            5 => Self::Item,
            6 => Self::ItemChunk,
            7 => Self::Cancel,
            8 => Self::Credit,
            9 => Self::Ping,
            10 => Self::Pong,
            11 => Self::Goodbye,
            _ => return None,
        })
    }

    /// Whether frames of this kind belong to the connection and not to a request.
    const fn is_of_connection(self) -> bool {
        matches!(self, Self::Ping | Self::Pong | Self::Goodbye)
    }
}

/// Why a side closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoodbyeReason {
    /// The node shuts down.
    ShuttingDown,
    /// The other side broke the protocol.
    ProtocolError,
    /// Another connection takes the place of this one.
    Replaced,
    /// The other side was silent for too long.
    Silent,
    /// A reason that a later version has added.
    Other(u16),
}

impl GoodbyeReason {
    const fn code(self) -> u16 {
        match self {
            Self::ShuttingDown => 1,
            Self::ProtocolError => 2,
            Self::Replaced => 3,
            Self::Silent => 4,
            Self::Other(code) => code,
        }
    }

    const fn from_code(code: u16) -> Self {
        match code {
            1 => Self::ShuttingDown,
            2 => Self::ProtocolError,
            3 => Self::Replaced,
            4 => Self::Silent,
            other => Self::Other(other),
        }
    }
}

/// A decoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table in the header of this module describes the fields")]
pub enum Frame {
    Request { stream: StreamId, head: RequestHead, chunk: Bytes },
    RequestChunk { stream: StreamId, chunk: Bytes },
    Answer { stream: StreamId, head: AnswerHead, chunk: Bytes },
    AnswerChunk { stream: StreamId, chunk: Bytes },
    Item { stream: StreamId, length: u32, chunk: Bytes },
    ItemChunk { stream: StreamId, chunk: Bytes },
    Cancel { stream: StreamId },
    Credit { stream: StreamId, bytes: u32 },
    Ping { id: u64, clock_us: i64 },
    Pong { id: u64, clock_us: i64 },
    Goodbye { reason: GoodbyeReason, taken: u64, text: String },
}

#[cfg(test)]
mod tests;
