//! The interfaces of a node: Protocol Buffers, HTTP and administration.
//!
//! What it is: code that decodes a request, authorises it, calls the engine and encodes the answer.
//! This is the only crate that knows both a wire format and the engine.
//!
//! What it is not: it decides nothing about quorums, siblings or storage.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod access;
pub mod admin;
mod bulk;
mod client_stream;
mod data_types;
mod decoding;
mod folds;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod http;
mod index_query;
pub mod jobs;
mod map_reduce;
pub mod memory;
mod network_threads;
pub mod pb;
mod search;
pub mod security;
mod stop;
mod thread_buffers;
mod turn;

pub use access::{Access, AccessPolicy, AdminRole, Permission, Proof, Session, SessionUser};
pub use client_stream::{CertificateName, ClientListener, ClientTls, HandshakeFault, Handshakes};
pub use jobs::{JobClass, JobSwitches};
pub use memory::{MemoryBudget, MemoryLimits};
pub use network_threads::NetworkThreads;
pub use security::NodeSecurity;
