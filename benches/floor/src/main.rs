//! `ombak-floor`: measures how far Ombak is from the minimum cost of such a server.
//!
//! What it is: one run on one machine that measures in turns an echo server with the same frames,
//! Redis if it is installed, and Ombak on the memory and bitcask backends: requests per second,
//! latencies, and processor time of the server's process for each request. All servers get the same
//! client and the same number of worker threads. Another command measures, without a network, a
//! store's puts against appends to a file.
//!
//! What it is not: a load test. One client thread sends requests and waits; the ratios to the echo
//! server are the result.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod appends;
mod cpu;
mod echo;
mod echo_http;
mod files;
mod front;
mod load;
mod options;
mod preference_lists;
mod report;
mod server;
mod target;
mod workload;

use load::Requests;
use options::{Command, Load, Options};
use report::{Report, Sample};
use server::Server;
use std::process::ExitCode;
use target::Target;

/// The allocator of a node.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => {
            print!("{}", options::USAGE);
            Ok(())
        }
        Ok(Command::Echo { port, files, short }) => echo::run(port, files.as_deref(), short),
        Ok(Command::Front { port, peers }) => front::run(port, &peers),
        Ok(Command::Load(options)) => load_only(options),
        Ok(Command::EchoHttp { port }) => echo_http::run(port),
        Ok(Command::Appends(options)) => appends::run(&options),
        Ok(Command::Measure(options)) => measure(&options),
        Err(wrong) => Err(format!("{wrong}\n\n{}", options::USAGE)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ombak-floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), String> {
    let servers = Server::start_all(options)?;
    let mut targets = Vec::new();
    for server in &servers {
        let target = Target::new(server.name, server.protocol, vec![server.address], vec![server.pid()])?;
        load::fill(&target)?;
        targets.push((server.name, target));
    }
    let mut report = Report::new(options, servers.iter().map(|server| server.name).collect());
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for &connections in &options.connections {
            for &op in &options.ops {
                for &(server, ref target) in &targets {
                    let requests = Requests {
                        ops: &[op],
                        connections,
                        duration: options.seconds,
                        rate: None,
                        counts_errors: false,
                    };
                    let outcome = load::run(target, requests)?;
                    report.add(Sample { server, op, connections, outcome });
                }
            }
        }
    }
    print!("{report}");
    Ok(())
}

/// Measures servers that run already.
fn load_only(options: Load) -> Result<(), String> {
    let mut target = Target::new("load", options.protocol, options.addresses, options.pids)?;
    if options.fill {
        load::fill(&target)?;
    }
    if options.preference_lists {
        let keys = preference_lists::keys_by_address(&target).map_err(|e| format!("preference lists: {e}"))?;
        target = target.with_keys(keys)?;
    }
    let Load { connections, seconds, rate, counts_errors, .. } = options;
    let counts_errors = counts_errors || rate.is_some();
    let requests = Requests { ops: &options.ops, connections, duration: seconds, rate, counts_errors };
    let outcome = load::run(&target, requests)?;
    println!("{}", report::json(outcome));
    Ok(())
}
