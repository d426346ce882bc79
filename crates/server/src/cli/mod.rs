//! The command line.
//!
//! What it is: the grammar ([`args`]), Riak's names for it ([`riak_names`]), and one file for each
//! group of commands. Commands that talk to a node use its administration interface, or Protocol
//! Buffers for values.
//!
//! What it is not: nothing here opens a store or knows about quorums.
//!
//! Invariants:
//! * Results go to standard output, everything else to standard error.
//! * Exit codes are 0 (done), 1 (failed), 2 (wrong usage), and 78 (a node does not start until an
//!   operator has changed something).
//! * A failure is one line wherever one line can say it. With `--json` it is also a document on
//!   standard output, unless a result there has already reported it.

mod admin;
mod admin_client;
mod admin_token;
mod args;
mod backend;
mod background;
mod backup;
mod bucket_type;
mod cluster;
mod cluster_args;
mod config;
mod debug;
mod diag;
mod exchange_args;
mod exchanges;
mod failure;
mod fold;
mod function;
mod function_args;
mod handoff;
mod key_jobs;
mod key_list;
mod key_names;
mod kv;
mod live_config;
mod local_config;
mod node;
pub mod output;
mod partitions;
mod pb_client;
mod repair_2i;
mod restored_keys;
mod riak_args;
mod riak_names;
mod riak_stubs;
mod scrub;
mod search;
mod search_args;
mod security;
mod services;
mod stat;
mod target;
mod top;
mod top_text;
mod unreadable_keys;
pub mod value_json;

use crate::import;
use args::{AdminCommand, Cli, Command, ImportCommand};
use clap::Parser;
use failure::Failure;
use output::{Output, as_text, shown_text};
use riak_args::{RiakCommand, StatCommand};
use serde_json::json;
use std::ffi::OsString;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The version of Riak KV whose behaviour this program implements.
const RIAK_VERSION: &str = "3.2.3";
const VERSION_TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), " (compatible with Riak KV 3.2.3)");

/// Runs the program with these arguments. The first one is the program's name.
pub fn run(args: Vec<OsString>) -> ExitCode {
    // This is known before parsing, because a usage error has to be printed as JSON, too. Arguments
    // after `--` are values, not options.
    let json = args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    let words = riak_names::translate(args);
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(usage) => return unknown_or_wrong(&usage, &words, Output { json }),
    };
    let out = Output { json: cli.common.json };
    match dispatch(cli, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, out),
    }
}

/// Reports a failure, and returns its exit code.
fn report(failure: &Failure, out: Output) -> ExitCode {
    if !failure.message.is_empty() {
        complain(&failure.message);
    }
    if out.json && !failure.has_result {
        // An error is ignored. If this cannot be printed either, a report would not help.
        drop(out.document(&failure.to_json()));
    }
    ExitCode::from(failure.code)
}

/// Reports an error of clap. A command of Riak that this program does not have is answered with
/// what to use instead.
fn unknown_or_wrong(usage: &clap::Error, words: &[OsString], out: Output) -> ExitCode {
    match riak_stubs::instead_of(usage, words) {
        Some(instead) => report(&Failure::usage(instead), out),
        None => wrong_usage(usage, out),
    }
}

/// Reports an error of clap. Requests for help or version arrive here as well; they are not errors.
fn wrong_usage(usage: &clap::Error, out: Output) -> ExitCode {
    // clap chooses between standard output and standard error. If that stream is closed, nothing
    // else can be done.
    drop(usage.print());
    if out.json && usage.use_stderr() {
        let text = usage.render().to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        drop(out.document(&Failure::usage(message).to_json()));
    }
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
}

/// Prints to standard error. An error is ignored: if standard error is closed, nobody can be told.
fn complain(message: &str) {
    let shown = if std::io::stderr().is_terminal() { shown_text(message, as_text) } else { message.to_owned() };
    let _ = writeln!(std::io::stderr(), "{shown}");
}

fn dispatch(cli: Cli, out: Output) -> Result<(), Failure> {
    let common = cli.common;
    match cli.command {
        Command::Start { accept_loss, background: false } => node::start(&common, accept_loss),
        Command::Start { accept_loss, background: true } | Command::Daemon { accept_loss } => {
            background::start(&common, accept_loss, out)
        }
        Command::Chkconfig => config::run(&args::ConfigCommand::Check, &common, out),
        Command::Version => {
            out.result(&json!({"ombak": VERSION, "riak": RIAK_VERSION}), || format!("ombak {VERSION_TEXT}"))
        }
        Command::Config(command) => config::run(&command, &common, out),
        Command::Import(ImportCommand::Bitcask { dir: source, types, restart }) => {
            import(&import::Options { source, types, restart }, &common, out)
        }
        Command::Restore { dir, check: true, .. } => backup::check(&dir, out),
        Command::Restore { dir, check: false, new_cluster } => backup::restore(&dir, new_cluster, &common, out),
        Command::Stop => wait_for(node::stop(&common, out)),
        Command::Ping => wait_for(node::ping(&common, out)),
        Command::Status => wait_for(node::status(&common, out)),
        Command::Getpid => wait_for(node::getpid(&common, out)),
        Command::Kv(command) => wait_for(kv::run(command, &common, out)),
        Command::Admin(AdminCommand::Backend(command)) => backend::run(command, &common, out),
        Command::Admin(AdminCommand::BucketType(command)) => wait_for(bucket_type::run(&command, &common, out)),
        Command::Admin(AdminCommand::Cluster(command)) => wait_for(cluster::run(&command, &common, out)),
        Command::Admin(AdminCommand::MemberStatus) => wait_for(cluster::show("member-status", &common, out)),
        Command::Admin(AdminCommand::RingStatus) => wait_for(cluster::show("ring-status", &common, out)),
        Command::Admin(AdminCommand::Ringready) => wait_for(cluster::ring_ready(&common, out)),
        Command::Admin(AdminCommand::Down { member }) => wait_for(cluster::change("down", Some(&member), &common, out)),
        Command::Admin(AdminCommand::Transfers) => wait_for(cluster::show("transfers", &common, out)),
        Command::Admin(AdminCommand::Function(command)) => wait_for(function::run(&command, &common, out)),
        Command::Admin(AdminCommand::Handoff(command)) => wait_for(handoff::run(&command, &common, out)),
        Command::Admin(AdminCommand::TransferLimit { limit, rate }) => {
            wait_for(cluster::transfer_limit(&limit, rate.as_deref(), &common, out))
        }
        Command::Admin(AdminCommand::Security(args)) => wait_for(security::run(args, &common, out)),
        Command::Admin(AdminCommand::Scrub(command)) => wait_for(scrub::run(command, &common, out)),
        Command::Admin(AdminCommand::Search(command)) => wait_for(search::run(&command, &common, out)),
        Command::Admin(AdminCommand::AaeStatus) => wait_for(exchanges::status(&common, out)),
        Command::Admin(AdminCommand::Tictacaae(command)) => wait_for(exchanges::tictacaae(&command, &common, out)),
        Command::Admin(AdminCommand::Node(exchange_args::NodeCommand::Repair(command))) => {
            wait_for(exchanges::node_repair(&command, &common, out))
        }
        Command::Admin(AdminCommand::Fold(command)) => wait_for(fold::run(&command, &common, out)),
        Command::Admin(AdminCommand::Bucket(command)) => wait_for(key_jobs::bucket(&command, &common, out)),
        Command::Admin(AdminCommand::Repair2i(args)) => wait_for(repair_2i::run(&args, &common, out)),
        Command::Admin(AdminCommand::Status) => wait_for(admin::status(&common, out)),
        Command::Admin(AdminCommand::Top(args)) => wait_for(top::run(&args, &common, out)),
        Command::Admin(AdminCommand::Debug(args)) => wait_for(debug::run(&args, &common, out)),
        Command::Admin(AdminCommand::Backup { dir, since }) => {
            wait_for(backup::create(&dir, since.as_deref(), &common, out))
        }
        Command::Admin(AdminCommand::Test) => wait_for(kv::self_test(&common, out)),
        Command::Admin(AdminCommand::Set { assignment }) => wait_for(live_config::set(&assignment, &common, out)),
        Command::Admin(AdminCommand::Show { key }) => wait_for(live_config::show(&key, &common, out)),
        Command::Admin(AdminCommand::Riak(command)) => wait_for(riak_command(command, &common, out)),
        Command::Admin(AdminCommand::VnodeStatus) => wait_for(admin::vnode_status(&common, out)),
    }
}

/// Runs a command that only has to do what Riak's does.
async fn riak_command(command: RiakCommand, common: &args::Common, out: Output) -> Result<(), Failure> {
    match command {
        RiakCommand::Services => services::list(common, out).await,
        RiakCommand::WaitForService { service, member, wait } => {
            services::wait_for(&service, member.as_deref(), wait, common, out).await
        }
        RiakCommand::Stat(StatCommand::Show { patterns }) => stat::show(&patterns, common, out).await,
        RiakCommand::Diag => diag::run(common, out).await,
    }
}

fn import(options: &import::Options, common: &args::Common, out: Output) -> Result<(), Failure> {
    let report = import::bitcask(options, &config::load(common)?).map_err(Failure::new)?;
    out.result(&json!(report), || report.to_text())?;
    if report.complete && !report.left_something_out() { Ok(()) } else { Err(Failure::already_reported()) }
}

fn wait_for(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("cannot create a runtime: {e}")))?
        .block_on(command)
}
