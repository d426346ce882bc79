//! The connections of one node to its peers.
//!
//! What it is: [`Peers`] listens, connects on demand, and sends requests to nodes by their id. A
//! node opens at most one connection of each [`Lane`] to a peer and sends its own requests over it;
//! the peer's requests arrive over the peer's connections. So two nodes have at most four
//! connections, and a link that works in one direction only is used in that direction.
//!
//! A request waits for a connection that is being opened, with its age running, and is never moved
//! from one connection to another. While a peer is not reachable, attempts are spaced by a growing
//! pause, and requests fail at once.
//!
//! [`Lane`]: crate::Lane

mod accept;
mod config;
mod establish;
mod links;
#[expect(clippy::module_inception, reason = "the main type of the folder")]
mod peers;

pub use config::PeersConfig;
pub use peers::{Outgoing, Peers, PeersParts};

#[cfg(test)]
mod tests;
