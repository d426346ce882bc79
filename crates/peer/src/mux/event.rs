//! What a connection tells its driver.

use super::assembly::TooLong;
use crate::clock::ClockContradiction;
use crate::error::PeerError;
use crate::frame::{FrameError, GoodbyeReason, Priority, StreamId};
use crate::identity::RingVersion;
use bytes::Bytes;

/// A request of the peer that has arrived whole and in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivedRequest {
    /// Its number.
    pub stream: StreamId,
    /// The number of the service.
    pub service: u16,
    /// How urgent it is.
    pub priority: Priority,
    /// The version of the ring that the sender acted on.
    pub ring: RingVersion,
    /// The earliest moment at which the request can have come into being, on this node's clock. An
    /// age that is computed with it is never too low.
    pub born_us: i64,
    /// The earliest moment at which the sender's deadline can pass, on this node's clock.
    pub deadline_us: i64,
    /// The window of a streamed answer in bytes. Zero asks for a single answer.
    pub window_bytes: usize,
    /// The body. If it is small, it shares its memory with what was read together with it.
    pub body: Bytes,
}

/// The answer of a service.
pub type Response = Result<Bytes, PeerError>;

/// What happened. `T` is what the caller gave along with its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// A request has to be executed.
    Request(ArrivedRequest),
    /// An own request has ended.
    Answered {
        /// What the caller gave along.
        token: T,
        /// How it ended.
        response: Response,
    },
    /// An item of a streamed answer has arrived.
    Item {
        /// What the caller gave along.
        token: T,
        /// The item.
        item: Bytes,
    },
    /// A streamed answer has room for more items, or is not wanted any more.
    Room {
        /// The number of the request.
        stream: StreamId,
    },
    /// The peer closes the connection.
    Goodbye {
        /// Its reason.
        reason: GoodbyeReason,
        /// Its words.
        text: String,
    },
}

/// Why a connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// Bytes that are no frame.
    #[error("the peer sent no frame: {0}")]
    Frame(#[from] FrameError),
    /// The clocks contradict each other.
    #[error(transparent)]
    Clock(#[from] ClockContradiction),
    /// Nothing has arrived for too long.
    #[error("the peer was silent for too long")]
    Silent,
    /// A frame of a request belongs to the other side's requests.
    #[error("the peer used a number of a request that is not its own")]
    WrongSide,
    /// A new request has the number of one that is under way.
    #[error("the peer used the number of a request twice")]
    NumberInUse,
    /// The chunks of a body have more bytes than announced.
    #[error("the peer sent more of a body than it announced")]
    BodyTooLong,
    /// The items of a streamed answer exceed the credit, or nobody asked for a stream.
    #[error("the peer sent more items than it had credit for")]
    CreditExceeded,
    /// The peer goes on sending requests without taking the answers.
    #[error("the peer has too many requests under way")]
    TooManyRequests,
}

impl From<TooLong> for ConnectionError {
    fn from(_: TooLong) -> Self {
        Self::BodyTooLong
    }
}
