//! The commands `ombak admin cluster`, `member-status`, `ring-status`, `ringready`, `down`,
//! `transfers` and `transfer-limit`. The node words the answers.

use super::admin_client::request;
use super::args::Common;
use super::cluster_args::ClusterCommand;
use super::failure::Failure;
use super::output::Output;
use super::partitions::Partitions;
use super::target::Target;
use super::{restored_keys, unreadable_keys};
use crate::config::{Kind, Value as Setting};
use hyper::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often a command looks that waits.
const SETTLED_POLL_INTERVAL: Duration = Duration::from_millis(200);
const PATH: &str = "/admin/v1/cluster";
/// The largest limit of transfers, as in the configuration.
const TRANSFER_LIMIT_MAX: u64 = 1024;

pub async fn run(command: &ClusterCommand, common: &Common, out: Output) -> Result<(), Failure> {
    match command {
        ClusterCommand::Join { address } => change("join", Some(address), common, out).await,
        ClusterCommand::Rejoin { address } => change("rejoin", address.as_deref(), common, out).await,
        ClusterCommand::Alone => change("alone", None, common, out).await,
        ClusterCommand::Leave { member } => change("leave", member.as_deref(), common, out).await,
        ClusterCommand::ForceRemove { member } => change("force-remove", Some(member), common, out).await,
        ClusterCommand::Replace { member, with } => replace("replace", member, with, common, out).await,
        ClusterCommand::ForceReplace { member, with } => replace("force-replace", member, with, common, out).await,
        ClusterCommand::Location { location, member } => set_location(location, member.as_deref(), common, out).await,
        ClusterCommand::Plan => change("plan", None, common, out).await,
        ClusterCommand::Commit { accept_loss } => commit(*accept_loss, common, out).await,
        ClusterCommand::Clear => change("clear", None, common, out).await,
        ClusterCommand::Status => show("status", common, out).await,
        ClusterCommand::Partitions { member } => partitions(common).await?.print(member.as_deref(), out),
        ClusterCommand::PartitionCount { member } => partitions(common).await?.print_count(member.as_deref(), out),
        ClusterCommand::Partition { partition } => partitions(common).await?.print_one(partition, out),
        ClusterCommand::Settled { wait, reaped } => settled(*wait, *reaped, common, out).await,
        ClusterCommand::RestoredKeys { push_dropped: true, keys, .. } => {
            restored_keys::decide("push-dropped", keys, common, out).await
        }
        ClusterCommand::RestoredKeys { push, drop, keys, .. } => match (push, drop) {
            (false, false) => restored_keys::list(keys, common, out).await,
            (true, _) => restored_keys::decide("push", keys, common, out).await,
            (false, true) => restored_keys::decide("drop", keys, common, out).await,
        },
        ClusterCommand::UnreadableKeys { drop, keys } => match drop {
            false => unreadable_keys::list(keys, common, out).await,
            true => unreadable_keys::give_up(keys, common, out).await,
        },
    }
}

/// Runs a command that changes the cluster, about a node if there is one.
pub async fn change(action: &str, node: Option<&str>, common: &Common, out: Output) -> Result<(), Failure> {
    let body = node.map_or_else(String::new, |node| json!({ "node": node }).to_string());
    let answer = ask(Method::POST, action, &body, common).await?;
    print(answer, out)
}

async fn replace(action: &str, member: &str, with: &str, common: &Common, out: Output) -> Result<(), Failure> {
    let body = json!({ "node": member, "with": with }).to_string();
    print(ask(Method::POST, action, &body, common).await?, out)
}

async fn commit(accept_loss: bool, common: &Common, out: Output) -> Result<(), Failure> {
    let body = if accept_loss { json!({ "accept_loss": true }).to_string() } else { String::new() };
    print(ask(Method::POST, "commit", &body, common).await?, out)
}

async fn set_location(location: &str, member: Option<&str>, common: &Common, out: Output) -> Result<(), Failure> {
    let body = json!({ "location": location, "node": member }).to_string();
    print(ask(Method::POST, "location", &body, common).await?, out)
}

/// Prints a description of the cluster.
pub async fn show(what: &str, common: &Common, out: Output) -> Result<(), Failure> {
    print(ask(Method::GET, what, "", common).await?, out)
}

async fn partitions(common: &Common) -> Result<Partitions, Failure> {
    Partitions::read(ask(Method::GET, "partitions", "", common).await?)
}

/// Prints or sets the limits of transfers: of all members, or of one.
pub async fn transfer_limit(words: &[String], rate: Option<&str>, common: &Common, out: Output) -> Result<(), Failure> {
    let (member, limit) = match words {
        [] => (None, None),
        [limit] => (None, Some(limit)),
        [member, limit, ..] => (Some(member), Some(limit)),
    };
    let number = |text: &String| {
        let parsed = text.parse::<u64>().ok().filter(|limit| *limit <= TRANSFER_LIMIT_MAX);
        parsed.ok_or_else(|| Failure::usage(format!("{text}: LIMIT is a number from 0 to {TRANSFER_LIMIT_MAX}")))
    };
    let limit = limit.map(number).transpose()?;
    let rate = rate.map(bytes).transpose()?;
    if limit.is_none() && rate.is_none() {
        return show("transfer-limit", common, out).await;
    }
    let body = json!({"limit": limit, "bytes_per_second": rate, "member": member, "all": member.is_none()});
    print(ask(Method::POST, "transfer-limit", &body.to_string(), common).await?, out)
}

/// A number of bytes in the form of the configuration file.
fn bytes(text: &str) -> Result<u64, Failure> {
    match Kind::ByteSize.parse(text) {
        Ok(Setting::Bytes(bytes)) => Ok(bytes),
        Ok(_) => Err(Failure::usage(format!("--rate {text}: is no number of bytes"))),
        Err(why) => Err(Failure::usage(format!("--rate {text}: {why}"))),
    }
}

/// Prints whether all nodes agree on the ring. The exit code says it, too.
pub async fn ring_ready(common: &Common, out: Output) -> Result<(), Failure> {
    let answer = ask(Method::GET, "ring-ready", "", common).await?;
    let is_ready = answer["ring_ready"] == true;
    print(answer, out)?;
    if is_ready { Ok(()) } else { Err(Failure::already_reported()) }
}

/// Prints whether everything lies where it belongs, after it has waited for that. The exit code
/// says it, too. With `reaped`, nothing may wait for its removal either.
async fn settled(wait_secs: Option<u64>, reaped: bool, common: &Common, out: Output) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_secs(wait_secs.unwrap_or(0));
    loop {
        let answer = ask(Method::GET, "settled", "", common).await?;
        let is_settled = answer["settled"] == true && (!reaped || answer["reaped"] == true);
        if is_settled || Instant::now() >= deadline {
            print(answer, out)?;
            return if is_settled { Ok(()) } else { Err(Failure::already_reported()) };
        }
        tokio::time::sleep(SETTLED_POLL_INTERVAL).await;
    }
}

/// Asks the node for a resource of the cluster.
pub(super) async fn ask(method: Method, action: &str, body: &str, common: &Common) -> Result<Value, Failure> {
    let target = Target::find(common)?;
    request(&target, method, &format!("{PATH}/{action}"), body).await.map_err(|e| e.into_failure(&target))
}

/// Prints the text of an answer, or its data.
pub(super) fn print(mut answer: Value, out: Output) -> Result<(), Failure> {
    let text = answer.as_object_mut().and_then(|fields| fields.remove("text"));
    out.result(&answer, || text.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned())
}
