//! The connections of one node to its peers.
//!
//! What it is: [`Peers`] listens, connects on demand, and sends requests to nodes by their id. A
//! node opens at most one connection of each [`Channel`] to a peer and sends its own requests over
//! it; the peer's requests arrive over the peer's connections. So a link that works in one
//! direction only is used in that direction. The thread that serves a client asks the peers over
//! connections of its own, and the peer serves them on one of its threads for clients.
//!
//! A request waits for a connection that is being opened, with its age running, and is never moved
//! from one connection to another. While a peer is not reachable, attempts are spaced by a growing
//! pause, and requests fail at once.
//!
//! [`Channel`]: crate::Channel

mod accept;
mod config;
mod establish;
mod links;
#[expect(clippy::module_inception, reason = "the main type of the folder")]
mod peers;
mod pending_call;

pub use config::PeersConfig;
pub use peers::{IdentifyError, Outgoing, Peers, PeersParts};
pub use pending_call::PendingCall;

#[cfg(test)]
mod tests;
