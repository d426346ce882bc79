//! Riak's client protocol: message codes, framing, messages, and hand-written codecs for the two messages that matter
//! most.
//!
//! What it is: bytes to messages and back. [`messages`] is generated from the `.proto` files beside the sources;
//! [`get_req`], [`put_req`] and [`reply`] are their twins for the hot path, which borrow from the frame and write
//! straight into the output, so that a value is copied once on its way out and never on its way in.
//!
//! What it is not: no sockets, no time, no idea what a request means. The same code serves server, client and benches.
//!
//! Invariants:
//! * no decoder panics, recurses without bound or reserves memory that the peer has only announced;
//! * on every message that the generated decoders take, the hand-written ones say the same.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod code;
pub mod frame;
pub mod get_req;
pub mod lenient;
pub mod put_req;
pub mod reply;
pub mod request;
pub mod wire;

/// The generated messages; `messages/*.proto` describe each.
#[allow(missing_docs, reason = "the names are Riak's; docs/riak/pb-api.md describes each")]
#[allow(clippy::doc_markdown, reason = "generated")]
pub mod messages {
    include!(concat!(env!("OUT_DIR"), "/riak.rs"));
}

pub use frame::{Frame, FrameError};
