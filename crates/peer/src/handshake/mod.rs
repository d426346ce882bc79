//! How two nodes get to know each other at the start of a connection.
//!
//! ```text
//! initiator                                  responder
//!    | -- Greeting: versions, nonce ------------> |
//!    | <------------ Greeting: versions, nonce -- |
//!    | -- Proof --------------------------------> |  checks that the initiator knows the secret
//!    | <-- Hello: clock, identity --------------- |  proves that the responder knows it, too
//!    | -- Hello: clock, identity ---------------> |
//!    | -- Words --------------------------------> |  if both know first words (`words`)
//!    | <-- Words -------------------------------- |
//!    | <-- Accepted ----------------------------- |
//! ```
//!
//! Everything after the greetings ends in an HMAC-SHA256 with the cluster's secret over all bytes
//! that both sides have sent so far, and over the sender's role and the kind of message. So a
//! message proves knowledge of the secret, covers both nonces and the versions that were offered,
//! and is of no use on another connection or in the other direction.
//!
//! A stranger learns only which versions a node speaks: a responder says who it is after the
//! initiator's proof, and an initiator says who it is after the responder's. A wrong proof is
//! answered by closing the connection. The reason goes to the log of the node that found it. A node
//! that has proved its knowledge is told why it is refused.
//!
//! The proof gives a listener that is posted at a node's address something to try secrets on, so
//! the secret must be long and random: [`Secret::BYTES_MIN`].

mod core;
mod message;
mod outcome;
mod secret;
mod words;

pub use core::{Handshake, LocalPeer};
pub use outcome::{Established, HandshakeError, Refusal, RefusalKind, RemotePeer};
pub use secret::{Secret, SecretTooShort};
pub use words::{FIRST_WORDS, FirstWords, NoWords, WORDS_BYTES_MAX};

/// The lowest protocol version that this program speaks.
pub const VERSION_MIN: u16 = 1;
/// The highest protocol version that this program speaks.
pub const VERSION_MAX: u16 = 1;

/// The maximum number of bytes that a side sends during the handshake. Before its proof it sends at
/// most [`UNPROVED_BYTES_MAX`].
pub const HANDSHAKE_BYTES_MAX: usize = (32 << 10) + WORDS_BYTES_MAX;

/// The number of bytes that an initiator sends up to and including its proof. A responder reads no
/// more from a stranger.
pub const UNPROVED_BYTES_MAX: usize = message::GREETING_BYTES + message::HEADER_BYTES + secret::MAC_BYTES;

#[cfg(test)]
mod tests;
