//! Tests of the real program, in one test program, because each takes seconds to link.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod backends;
mod backup;
mod certificates;
mod cluster_commands;
mod commands;
mod config;
mod convert;
mod functions;
mod import;
mod import_data_types;
mod kill9;
mod large_requests;
mod missing_files;
mod node;
mod riak_index_scenarios;
mod statistics;
mod stop_while_starting;
mod support;
mod sync_trace;
mod verify;
