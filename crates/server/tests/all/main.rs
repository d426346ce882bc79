//! Tests of the real program, in one test program, because each takes seconds to link.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod audit;
mod backends;
mod background;
mod backup;
mod certificates;
mod client_tls;
mod closed_pipes;
mod cluster_commands;
mod commands;
mod config;
mod convert;
mod debug;
mod exchanges;
mod exit_codes;
mod folds;
mod functions;
mod host_names;
mod import;
mod import_data_types;
mod kill9;
mod large_requests;
mod logs;
mod lone_node;
mod missing_files;
mod node;
mod removed_node;
mod riak_index_scenarios;
mod riaks_commands;
mod scrub;
mod search;
mod slow_requests;
mod statistics;
mod stop_while_starting;
mod support;
mod sync_trace;
mod top;
mod verify;
