//! A client for the Protocol Buffers interface of Ombak and Riak KV.
//!
//! What it is: a single connection ([`Client`]). It sends a request and waits for the answer,
//! streams listings, and can send many requests before it reads their answers ([`Client::send`],
//! [`Client::receive`]).
//!
//! What it is not: it has no pool, no retries and no conflict resolution. The caller gets all
//! siblings of an object.
//!
//! Invariants:
//! * An answer is never taken for the answer to another request: after an abandoned exchange, a
//!   connection refuses further requests.
//! * Every wait has a limit.

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
