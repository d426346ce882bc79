//! The Redis driver: a well-known reference that uses the same generators, keys and values.
//!
//! What it is not: it has no pipelining and no transactions. It uses GET, SET and DEL of whole
//! values.

mod plan;
mod worker;

pub use plan::RedisPlan;
pub use worker::RedisWorker;
