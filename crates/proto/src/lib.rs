//! Riak's client protocol: message codes, framing, messages, and hand-written codecs for gets and
//! puts.
//!
//! What it is: the conversion between bytes and messages. [`messages`] is generated from the
//! `.proto` files beside the sources. [`get_req`], [`put_req`] and [`reply`] are equivalents for
//! the hot path. They borrow from the frame and write directly into the output, so that a value is
//! copied once when it is sent and never when it is received.
//!
//! What it is not: it has no sockets, no time, and no knowledge of what a request means. Server,
//! client and benchmarks use the same code.
//!
//! Invariants:
//! * No decoder panics, recurses without bound, or reserves memory that a peer has only announced.
//! * The hand-written decoders return the same result as the generated ones for every message that
//!   the generated ones accept.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod code;
pub mod decoded_bytes;
pub mod frame;
pub mod get_req;
pub mod lenient;
pub mod put_req;
pub mod reply;
pub mod request;
pub mod wire;

/// The generated messages. `messages/*.proto` describe each, and `tests/generated.rs` writes them.
#[allow(missing_docs, reason = "the names are Riak's; docs/riak/pb-api.md describes each")]
#[allow(clippy::doc_markdown, reason = "generated")]
pub mod messages {
    include!("generated/riak.rs");
}

pub use frame::{Frame, FrameError};
