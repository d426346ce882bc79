//! Tests of the engine through its public face, in one program, because each program takes seconds
//! to link.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod backends;
mod background;
mod change_feed;
mod clock_back;
mod coverage;
mod deadlines;
mod expiry;
mod faults;
mod folds;
mod imports;
mod index_entries;
mod index_queries;
mod kv;
mod one_writer;
mod power;
mod replicas;
mod restart;
mod retries;
mod riak_scenarios;
mod slow_requests;
mod support;
mod wires;
