//! The Protocol Buffers interface (port 8087, docs/riak/pb-api.md).
//!
//! What it is: [`serve`] accepts connections. Each connection has one task that reads the bytes
//! that are available, answers every complete frame in order, and writes the answers together.
//!
//! A feature is a module that lists the messages that it serves (`handler`); `registry` collects
//! the lists. Every request passes the `gate` before its feature sees it.
//!
//! What it is not: it knows nothing about quorums and siblings. The engine takes every decision
//! about data.
//!
//! Invariants:
//! * Answers are sent in the order of the requests, however many run at the same time.
//! * The resources that a peer can use are bounded: connections, the size of a frame, unsent
//!   replies, requests in progress, and the time for each of these.
//! * The modules use each other in one direction only (`tests/structure` checks that).
//! * A message that cannot be served is answered with an `RpbErrorResp`. The connection ends only
//!   if its bytes cannot be split into frames.

mod bucket;
mod close_reason;
mod config;
mod connection;
mod context;
mod counters;
mod cs_bucket;
mod datatype_messages;
mod datatypes;
mod failure;
mod folds;
mod gate;
mod handler;
mod index;
mod listener;
mod listing;
mod login;
mod map_reduce;
mod message;
mod object;
mod object_messages;
mod operation;
mod pipeline;
mod props;
mod reader;
mod refusal;
mod registry;
mod search;
mod search_administration;
mod server_info;
mod session;
mod start_tls;
mod unsupported;
mod writer;

#[cfg(test)]
mod tests;

pub use config::PbConfig;
pub use context::PbContext;
pub use listener::serve;
#[cfg(test)]
pub(crate) use registry::codes;
