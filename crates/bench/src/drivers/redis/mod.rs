//! Redis, on the same generators, keys and values: a yardstick that everybody knows.
//!
//! What it is not: no pipelining, no transactions; GET, SET and DEL of whole values.

mod plan;
mod worker;

pub use plan::RedisPlan;
pub use worker::RedisWorker;
