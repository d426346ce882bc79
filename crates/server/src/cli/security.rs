//! The commands `ombak admin security`: users, groups, sources, grants, and whether security is on.
//!
//! The node knows the commands, their words and their rules. This module passes them on.

use super::admin_client::request;
use super::args::Common;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use clap::Args;
use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;
use std::io::Read;

const PATH: &str = "/admin/v1/security";

/// The longest password that is read from the standard input, in bytes.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// The arguments. Users see the doc comments in `--help`.
#[derive(Clone, Debug, Args)]
pub struct SecurityArgs {
    /// Read the password from the standard input, so that it stands in no list of processes: one
    /// line. For add-user and alter-user, in place of password=...
    #[arg(long)]
    password_stdin: bool,
    /// add-user NAME [password=...] [groups=a,b] [OPTION=VALUE...], alter-user, del-user,
    /// add-group NAME [groups=a,b], alter-group, del-group, add-source all|USERS CIDR
    /// trust|password|certificate, del-source all|USERS CIDR, grant PERMISSIONS on any|TYPE
    /// [BUCKET] to all|NAMES, revoke PERMISSIONS on any|TYPE [BUCKET] from all|NAMES, print-users,
    /// print-user NAME, print-groups, print-group NAME, print-sources, print-grants NAME, ciphers
    /// [LIST], enable, disable, status
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    words: Vec<String>,
}

/// Runs a command. With `--json` the answer is what the node has in place of tables.
pub async fn run(args: SecurityArgs, common: &Common, out: Output) -> Result<(), Failure> {
    let SecurityArgs { password_stdin, mut words } = args;
    if words.is_empty() {
        return Err(Failure::new("a command is missing, such as status".to_owned()));
    }
    let command = words.remove(0);
    if password_stdin {
        words.push(format!("password={}", read_password()?));
    }
    let target = Target::find(common)?;
    let path = format!("{PATH}/{}", utf8_percent_encode(&command, NON_ALPHANUMERIC));
    let answer = request(&target, Method::POST, &path, &json!({ "arguments": words }).to_string()).await;
    let answer = answer.map_err(|e| e.into_failure(&target))?;
    out.result(&answer["result"], || answer["text"].as_str().unwrap_or_default().to_owned())?;
    if let Some(notes) = answer["notes"].as_str() {
        out.note(notes);
    }
    Ok(())
}

fn read_password() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().take(PASSWORD_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|why| Failure::new(format!("the password cannot be read from the standard input: {why}")))?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    if password.is_empty() || password.len() as u64 > PASSWORD_BYTES_MAX || password.contains('\n') {
        return Err(Failure::new(format!("the standard input has to be one line of 1 to {PASSWORD_BYTES_MAX} bytes")));
    }
    Ok(password.to_owned())
}
