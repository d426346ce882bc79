//! The Raft group of the metadata. Nothing outside of this module knows openraft, so that another
//! release can replace it.

#![allow(clippy::result_large_err, reason = "openraft's errors are large")]

mod async_runtime;
pub(crate) mod group;
mod log_storage;
mod machine;
mod network;
mod room;
pub(crate) mod saved;
#[cfg(test)]
mod tests;
mod types;
pub(crate) mod wire;
