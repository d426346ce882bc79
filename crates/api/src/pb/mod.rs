//! The Protocol Buffers interface (port 8087, docs/riak/pb-api.md).
//!
//! What it is: [`serve`] accepts connections; each has one task that reads as much as there is, answers every complete
//! frame in order, and writes once.
//!
//! What it is not: it knows no quorum and no sibling; every decision about data is the engine's.
//!
//! Invariants:
//! * answers leave in the order of the requests, however many are under way at once;
//! * what a peer can make the node hold is bounded: connections, one frame, replies not taken yet, requests under way,
//!   and the time for each of them;
//! * a message that cannot be served is answered with an `RpbErrorResp`; only bytes that cannot be cut into frames end
//!   the connection.

mod bucket;
mod config;
mod connection;
mod context;
mod cs_bucket;
mod dispatch;
mod index;
mod later;
mod listener;
mod listing;
mod object;
mod pipeline;
mod props;
mod reader;
mod refusal;
mod writer;

#[cfg(test)]
mod tests;

pub use config::PbConfig;
pub use context::PbContext;
pub use listener::serve;
