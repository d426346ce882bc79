//! The commands `ombak start`, `stop`, `ping`, `status` and `getpid`.

use super::admin_client::{RequestError, request, request_any};
use super::args::Common;
use super::config;
use super::failure::Failure;
use super::output::Output;
use super::target::Target;
use crate::node::{Refusal, RefusalKind};
use hyper::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// How long 'ombak stop' waits for a node to stop. The node may have large files to write.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(20);

pub fn start(common: &Common, accepts_loss: bool) -> Result<(), Failure> {
    // This comes before the configuration is read, so that a signal during that time ends the start
    // with a message.
    let starting = crate::node::Starting::begin().map_err(Failure::new)?;
    let config = config::load(common).map_err(|failure| Failure::needs_operator(failure.message))?;
    crate::node::run(starting, &config, accepts_loss).map_err(refused)
}

fn refused(refusal: Refusal) -> Failure {
    match refusal.kind {
        RefusalKind::MayPass => Failure::new(refusal.text),
        RefusalKind::NeedsOperator => Failure::needs_operator(refusal.text),
    }
}

pub async fn stop(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    request(&target, Method::POST, "/admin/v1/stop", "").await.map_err(|e| e.into_failure(&target))?;
    let deadline = Instant::now() + STOP_TIMEOUT;
    while TcpStream::connect(target.http).await.is_ok() || is_held(&target) {
        if Instant::now() > deadline {
            return Err(Failure::new(format!("the node at {} is still stopping", target.source)));
        }
        tokio::time::sleep(STOP_POLL_INTERVAL).await;
    }
    out.result(&json!({"stopped": true}), || "ok".into())
}

/// Whether a process still holds the lock of the node's data directory.
fn is_held(target: &Target) -> bool {
    target.data_dir.as_deref().is_some_and(crate::node::lock::is_held)
}

pub async fn ping(common: &Common, out: Output) -> Result<(), Failure> {
    let target = Target::find(common)?;
    // A node that takes no part in its cluster answers everything else with an error. One that is
    // not ready for another reason is alive.
    match request_any(&target, Method::GET, "/health/ready", "").await {
        Ok(answer) if answer["takes_no_part"].is_string() => {
            Err(Failure { kind: "takes_no_part".into(), ..Failure::new(no_part(&answer)) })
        }
        // A node that refuses this request still answers, so it is alive.
        Ok(_) | Err(RequestError::Refused { .. }) => out.result(&json!({"ping": "pong"}), || "pong".into()),
        Err(RequestError::NoUsableAnswer(why)) => {
            Err(target.advised(Failure::no_node(format!("Node at {} not responding to pings: {why}", target.source))))
        }
    }
}

pub async fn status(common: &Common, out: Output) -> Result<(), Failure> {
    let node = describe(common).await?;
    out.result(&node, || status_text(&node))
}

pub async fn getpid(common: &Common, out: Output) -> Result<(), Failure> {
    let node = describe(common).await?;
    out.result(&json!({"pid": node["pid"]}), || node["pid"].to_string())
}

async fn describe(common: &Common) -> Result<Value, Failure> {
    let target = Target::find(common)?;
    request(&target, Method::GET, "/admin/v1/node", "").await.map_err(|e| e.into_failure(&target))
}

/// Why a node takes no part in its cluster; empty if it does.
fn no_part(answer: &Value) -> String {
    answer["takes_no_part"].as_str().unwrap_or_default().to_owned()
}

fn status_text(node: &Value) -> String {
    let text = |name: &str| node[name].as_str().map_or_else(|| node[name].to_string(), str::to_owned);
    let list = |name: &str| {
        let items: Vec<&str> = node[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        items.join(", ")
    };
    let ready = match (node["takes_no_part"].is_string(), &node["ready"]) {
        (true, _) => "up, and takes no part in its cluster",
        (false, Value::Bool(true)) => "up and ready",
        (false, _) => "up, not ready",
    };
    let https = match list("https") {
        none if none.is_empty() => none,
        some => format!("\nHTTPS: {some}"),
    };
    let mut out = format!(
        "'{}' is {ready} (ombak {}, pid {}, up {} s)\nHTTP: {}{https}\nProtocol Buffers: {}\ndata: {}\nbackend: {}, {} partitions",
        text("name"),
        text("version"),
        text("pid"),
        text("uptime_secs"),
        list("http"),
        list("pb"),
        text("data_dir"),
        text("backend"),
        text("ring_size"),
    );
    out.push_str(&request_memory_text(&node["request_memory"]));
    out.push_str(&cluster_text(&node["cluster"]));
    if node["takes_no_part"].is_string() {
        out.push_str(&format!("\nproblem: {}", no_part(node)));
    }
    for problem in node["problems"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.push_str("\nproblem: ");
        out.push_str(problem);
    }
    for loss in node["known_losses"].as_array().into_iter().flatten() {
        out.push_str(&format!(
            "\nincomplete: data of partition {} is known to be missing, in {} places; 'ombak admin backend verify' \
             shows what is known",
            loss["partition"], loss["places"]
        ));
    }
    out
}

/// The line about the cluster. A node that does not listen for others has none.
fn cluster_text(cluster: &Value) -> String {
    if cluster.is_null() {
        return String::new();
    }
    let closed = if cluster["takes_writes"] == false { "; no writes while it changes" } else { "" };
    format!(
        "\ncluster: {} members, {} of them own partitions; listening for other nodes on {}{closed}",
        cluster["members"],
        cluster["ring_nodes"],
        cluster["peer_address"].as_str().unwrap_or_default(),
    )
}

/// The line about the memory budget of requests and answers in flight. A node of an earlier version
/// does not report this budget.
fn request_memory_text(memory: &Value) -> String {
    let number = |name: &str| memory[name].as_u64().unwrap_or(0);
    if memory.is_null() {
        return String::new();
    }
    format!(
        "\nmemory of requests: {} of {} MiB used; {} connections wait for memory; {} connections were closed and {} \
         requests refused because of the limit",
        number("used_bytes") >> 20,
        number("limit_bytes") >> 20,
        number("waiting_connections"),
        number("ended_connections"),
        number("refused_requests"),
    )
}
