//! `ombak-bench`: a load generator that runs unchanged configurations of basho_bench
//! (docs/riak/basho-bench.md).
//!
//! What it is: it reads, explains and runs configurations in Erlang terms, with as many workers as
//! they ask for. It can measure Riak and Ombak over Protocol Buffers or HTTP, a storage engine
//! inside its own process, and Redis. It writes the results in the format of basho_bench, and as a
//! report with charts.
//!
//! What it is not: it runs no Erlang code, and it does not judge results.
//!
//! Parts: [`term`] reads Erlang terms; [`config`] checks settings and turns them into a
//! configuration; [`generators`] make keys and values; [`drivers`] speak to the measured system;
//! [`run`] starts the workers and keeps time; [`stats`] counts; [`resources`] observes the server's
//! process; [`report`] writes files and draws charts.
//!
//! Invariants:
//! * A setting that would affect the measurement and is not understood prevents the start, and the
//!   error names it.
//! * Sending a request and receiving its answer allocates nothing, and every answer is checked.
//! * With a given rate, latency is measured from the time when a request was due, not from the time
//!   when it could be sent.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod cli;
pub mod config;
pub mod drivers;
pub mod generators;
pub mod report;
pub mod resources;
pub mod run;
pub mod stats;
pub mod term;
