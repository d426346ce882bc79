//! A client for the Protocol Buffers interface of Ombak and Riak KV.
//!
//! What it is: one connection ([`Client`]) that asks and waits, streams listings, and can send many requests before it
//! reads the answers ([`Client::send`], [`Client::receive`]).
//!
//! What it is not: no pool, no retries, no conflict resolution: all siblings of an object are handed to the caller.
//!
//! Invariants:
//! * an answer is never taken for that of another request: a connection whose last exchange was given up half-way
//!   refuses further ones;
//! * every wait has a limit.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod client;
mod error;
mod listing;

#[cfg(test)]
mod tests;

pub use client::{Client, Found, ServerInfo};
pub use error::ClientError;
pub use listing::NameStream;
pub use ombak_proto::{code, messages};
