//! The first words: what two nodes tell each other before any request of a connection.
//!
//! They are for what must be known before either side acts on anything else of the other one. The
//! transport does not read them. Nodes exchange them if both have the capability [`FIRST_WORDS`]:
//! earlier versions neither send nor expect them.

use super::outcome::{Refusal, RemotePeer};
use std::fmt::Debug;

/// What a node says in its handshakes that has first words.
pub const FIRST_WORDS: &str = "first-words.1";

/// The maximum length of the first words of a side in bytes.
pub const WORDS_BYTES_MAX: usize = 32 << 10;

/// What a node tells a peer first, and what it makes of the peer's words. Both calls return soon
/// and do not block: connections wait for them.
pub trait FirstWords: Debug + Send + Sync {
    /// What to tell a peer, at most [`WORDS_BYTES_MAX`]. Longer words are not sent: the peer hears
    /// none.
    fn tell(&self, peer: &RemotePeer) -> Vec<u8>;

    /// Hears the words of a peer, before any of its requests is executed and before any request
    /// goes to it. A refusal ends the connection.
    fn hear(&self, peer: &RemotePeer, words: &[u8]) -> Result<(), Refusal>;
}

/// Tells nothing and ignores what it hears.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWords;

impl FirstWords for NoWords {
    fn tell(&self, _peer: &RemotePeer) -> Vec<u8> {
        Vec::new()
    }

    fn hear(&self, _peer: &RemotePeer, _words: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }
}
