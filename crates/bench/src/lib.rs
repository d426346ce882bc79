//! `ombak-bench`: a load generator that runs basho_bench configurations as they are (docs/riak/basho-bench.md).
//!
//! What it is: configurations in Erlang terms are read, explained and run with as many workers as they ask for, over the
//! Protocol Buffers or the HTTP interface of a Riak or an Ombak, over a storage engine inside this process, or against
//! Redis; what was seen is written as basho_bench writes it and drawn.
//!
//! What it is not: it runs no Erlang code, and it does not decide what is good.
//!
//! Parts: [`term`] reads Erlang terms, [`config`] makes a plan of them, [`generators`] make keys and values, [`drivers`]
//! speak to what is measured, [`run`] lets workers loose and keeps time, [`stats`] counts, [`resources`] watches the server,
//! [`report`] writes and draws.
//!
//! Invariants:
//! * a setting that would change what is measured and is not understood stops the start by name;
//! * on the path of a request nothing is allocated, and every answer is checked;
//! * with a given rate, latency counts from when a request was due, not from when it could be sent.

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
