//! The `ombak` program: a node, and the command line to run and administer it.
//!
//! What it is: configuration ([`config`]), wiring of a node ([`node`]), the command line ([`cli`]). The only crate that
//! knows every other.
//!
//! What it is not: there is no knowledge of data here. What a value, a quorum or a file means is decided below.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod backends;
mod cli;
mod config;
mod convert;
mod import;
mod logging;
mod node;
mod offline;
mod restore;
mod verify;
mod wall_clock;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    node::dir_access::keep_files_private();
    cli::run(std::env::args_os().collect())
}
