//! The bytes of the questions to replicas of other nodes and of their answers, and the means by
//! which all services lay out their messages. (The messages of another service lie beside it, such
//! as `crate::waking::messages`.)
//!
//! What it is: a hand-written layout for each message. A message has the version of its layout in
//! front, so that a later version can be told apart, and optional [`fields`] that a later version
//! adds without a new layout. The head and the body of a stored object travel as they are stored.
//!
//! What it is not: it knows no frames, deadlines, ages and ring versions. Those travel in the
//! header of the transport (`ombak_peer::frame`).
//!
//! ```text
//! varint   LEB128, at most 10 bytes
//! bytes    varint length, then so many bytes
//! fields   (tag u8, bytes content)*, then 0; tags rise      see `fields`
//! object   varint head_len, head, body                      body: all that is left
//! ```
//!
//! Fixed integers are little-endian. Each file has the layouts of its messages.
//!
//! Invariants:
//! * Any bytes decode to a message or to [`Malformed`]. A decoder allocates nothing for a length
//!   that the bytes do not have.
//! * What a decoder does not understand it refuses, unless the sender has marked it as optional.

mod error;
pub mod fields;
mod forwarded_put;
mod found;
mod object;
mod promise;
mod put_reply;
mod put_request;
mod reader;
mod reap_order;
mod reaping;
mod replica_read;
mod replica_store;
mod transfer;
mod writer;

pub use error::{decode_error, encode_error};
pub(crate) use fields::no_fields;
pub use forwarded_put::{ForwardedMessage, decode_forwarded_put, encode_forwarded_put};
pub use found::{
    decode_read_reply, decode_store_reply, encode_read_reply, encode_read_reply_without_placement, encode_store_reply,
    encode_store_reply_without_placement,
};
pub use promise::{
    decode_promise_reply, decode_promise_request, encode_promise_reply, encode_promise_reply_without_placement,
    encode_promise_request,
};
pub use put_reply::{decode_put_reply, encode_put_reply};
pub use reader::Malformed;
pub(crate) use reader::Reader;
pub use reap_order::{decode_ordered, decode_reap_order, encode_ordered, encode_reap_order};
pub use reaping::{
    ReapQuestion, decode_reap_answers, decode_reap_question, decode_votes, encode_reap_answers, encode_reap_question,
    encode_votes,
};
pub use replica_read::{decode_replica_read, encode_replica_read};
pub use replica_store::{decode_replica_store, encode_replica_store};
pub use transfer::{
    TransferQuestion, decode_compared, decode_giving, decode_pushed, decode_summary, decode_transfer_question,
    encode_compared, encode_giving, encode_pushed, encode_summary, encode_transfer_question,
};
pub(crate) use writer::Writer;

/// The ring of a message that was just decoded: the header of the transport has the right one.
pub(crate) const NO_RING: ombak_ring::RingVersion = ombak_ring::RingVersion::first(0);

/// The version of all layouts in this module.
pub const VERSION: u8 = 1;

#[cfg(test)]
mod tests;
