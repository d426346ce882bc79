//! The command line.
//!
//! What it is: grammar ([`args`]), Riak's names for it ([`riak_names`]), and a file per group of commands. Commands that
//! talk to a node use its administration interface, or Protocol Buffers for values.
//!
//! What it is not: nothing here opens a store or knows a quorum.
//!
//! Invariants: results go to standard output, everything else to standard error; exit codes are 0 (done), 1 (failed)
//! and 2 (wrong usage); a failure is one line wherever one line can say it, and with `--json` a document on standard
//! output as well, unless a result has said it there.

mod admin;
mod admin_client;
mod admin_token;
mod args;
mod backend;
mod backup;
mod bucket_type;
mod config;
mod failure;
mod kv;
mod live_config;
mod local_config;
mod node;
pub mod output;
mod pb_client;
mod riak_names;
mod target;
pub mod value_json;

use crate::import;
use args::{AdminCommand, Cli, Command, ImportCommand};
use clap::Parser;
use failure::Failure;
use output::Output;
use serde_json::json;
use std::ffi::OsString;
use std::future::Future;
use std::io::Write;
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The version of Riak KV whose behaviour this program has.
const RIAK_VERSION: &str = "3.2.3";
const VERSION_TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), " (compatible with Riak KV 3.2.3)");

/// Runs the program with these arguments, the program's name first.
pub fn run(args: Vec<OsString>) -> ExitCode {
    // The grammar says it, too, where the rest of the command line follows it.
    let json = args.iter().skip(1).take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    let cli = match Cli::try_parse_from(riak_names::translate(args)) {
        Ok(cli) => cli,
        Err(usage) => return wrong_usage(&usage, Output { json }),
    };
    let out = Output { json: cli.common.json };
    match dispatch(cli, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                complain(&failure.message);
            }
            if out.json && !failure.has_result {
                // What cannot be printed is not worth a second failure.
                drop(out.line(&failure.to_json().to_string()));
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Help and version come here as well, and are no errors.
fn wrong_usage(usage: &clap::Error, out: Output) -> ExitCode {
    // clap knows what goes where. A closed output changes nothing.
    drop(usage.print());
    if out.json && usage.use_stderr() {
        let text = usage.render().to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        drop(out.line(&Failure::usage(message).to_json().to_string()));
    }
    ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(2))
}

/// Prints to standard error; where that is closed there is nobody to tell.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

fn dispatch(cli: Cli, out: Output) -> Result<(), Failure> {
    let common = cli.common;
    match cli.command {
        Command::Start { accept_loss } => node::start(&common, accept_loss),
        Command::Version => {
            out.result(&json!({"ombak": VERSION, "riak": RIAK_VERSION}), || format!("ombak {VERSION_TEXT}"))
        }
        Command::Config(command) => config::run(&command, &common, out),
        Command::Import(ImportCommand::Bitcask { dir: source, types, restart }) => {
            import(&import::Options { source, types, restart }, &common, out)
        }
        Command::Restore { dir, check: true } => backup::check(&dir, out),
        Command::Restore { dir, check: false } => backup::restore(&dir, &common, out),
        Command::Stop => wait_for(node::stop(&common, out)),
        Command::Ping => wait_for(node::ping(&common, out)),
        Command::Status => wait_for(node::status(&common, out)),
        Command::Getpid => wait_for(node::getpid(&common, out)),
        Command::Kv(command) => wait_for(kv::run(command, &common, out)),
        Command::Admin(AdminCommand::Backend(command)) => backend::run(command, &common, out),
        Command::Admin(AdminCommand::BucketType(command)) => wait_for(bucket_type::run(&command, &common, out)),
        Command::Admin(AdminCommand::Status) => wait_for(admin::status(&common, out)),
        Command::Admin(AdminCommand::Backup { dir, since }) => {
            wait_for(backup::create(&dir, since.as_deref(), &common, out))
        }
        Command::Admin(AdminCommand::Test) => wait_for(kv::self_test(&common, out)),
        Command::Admin(AdminCommand::Set { assignment }) => wait_for(live_config::set(&assignment, &common, out)),
        Command::Admin(AdminCommand::Show { key }) => wait_for(live_config::show(&key, &common, out)),
        Command::Admin(AdminCommand::VnodeStatus) => wait_for(admin::vnode_status(&common, out)),
    }
}

fn import(options: &import::Options, common: &args::Common, out: Output) -> Result<(), Failure> {
    let report = import::bitcask(options, &config::load(common)?).map_err(Failure::new)?;
    out.result(&json!(report), || report.to_text())?;
    if report.complete && !report.left_something_out() { Ok(()) } else { Err(Failure::told()) }
}

fn wait_for(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(format!("the operating system refuses a runtime: {e}")))?
        .block_on(command)
}
