//! Sharing one connection between many requests: a state machine without I/O.
//!
//! What it is: [`Mux`] is one side of a connection after the handshake. Callers hand requests in,
//! services hand answers in, a driver hands arrived bytes in and takes bytes out. The time is a
//! parameter: microseconds of the node's monotonic clock.
//!
//! * Bodies travel in chunks, and chunks of different requests take turns. [`Priority::Control`]
//!   goes first. [`Priority::Bulk`] gets at least one turn in nine while others have more to send.
//! * A body that fits one frame is a slice of what was read. A larger body is assembled in one
//!   allocation, which is counted against a limit before it is made.
//! * The answer to a request is one body, or a stream of items and then one body. The items of a
//!   stream are limited by credit that the caller gives as it consumes them.
//! * A request dies with its deadline, with its lifetime and with the connection, whichever comes
//!   first. It is executed only if it arrived whole and in time.
//!
//! Invariants:
//! * Each limit of [`MuxConfig`] holds at all times. What does not fit is refused at once.
//! * A caller hears of the end of each request exactly once.
//! * [`crate::PeerError::was_not_executed`] is true only if the peer never saw the whole request,
//!   or refused it.
//!
//! [`Priority::Control`]: crate::frame::Priority::Control
//! [`Priority::Bulk`]: crate::frame::Priority::Bulk

mod assembly;
mod body;
mod budget;
mod calls;
mod config;
mod core;
mod event;
mod heartbeat;
mod message;
mod output;
mod schedule;
mod served;
mod sorted;
mod streams;

pub use body::Body;
pub use config::{InvalidConfig, MuxConfig};
pub use core::{FrameCounts, ItemRefused, Mux, Request, Side};
pub use event::{ArrivedRequest, ConnectionError, Event, Response};
pub use output::OutputBuffer;

/// What an item of a streamed answer costs in credit beside its bytes, so that empty items are
/// bounded, too.
pub const ITEM_COST_BYTES: usize = 64;

/// The smallest window of a streamed answer in bytes.
pub const WINDOW_BYTES_MIN: usize = 4 << 10;

#[cfg(test)]
mod tests;
