//! The program `ombak`: a node, and the command line that runs and administers it.
//!
//! What it is: the configuration ([`config`]), the assembly of a node from its parts ([`node`]),
//! and the command line ([`cli`]). It is the only crate that depends on all parts of a node.
//!
//! What it is not: it has no knowledge of data. The crates below decide what a value, a quorum or a
//! file means.

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
mod table;
mod verify;
mod wall_clock;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    node::dir_access::keep_files_private();
    let arguments: Vec<_> = std::env::args_os().collect();
    match arguments.get(1) {
        Some(word) if word == node::WORKER_ARGUMENT => ombak_functions::serve(),
        _ => cli::run(arguments),
    }
}
