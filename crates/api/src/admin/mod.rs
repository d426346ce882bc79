//! The administration interface: JSON below `/admin/v1` on the HTTP listener, for the command line.
//!
//! What it is: a small, versioned tree of resources. [`handle`] first checks whether the caller has
//! access ([`guard`]), and then answers.
//!
//! What it is not: it is no part of Riak's HTTP interface, and it is not for browsers. A request
//! that a web page could have caused a browser to send is refused.
//!
//! Every error has the form `{"error":{"kind":"…","message":"…"}}`. The kinds are those of
//! [`AdminError`].

mod backup;
mod backup_place;
mod cluster;
mod error;
mod functions;
mod guard;
mod key_decision;
mod live_config;
mod node;
mod restored_keys;
mod top;
mod types;
mod unreadable_keys;

pub use backup::BackupJobs;
pub use backup_place::BackupPlace;
pub use cluster::{ClusterAdmin, ClusterCommand, ForMembers, HandoffDirection};
pub use error::AdminError;
pub use functions::{FunctionAdmin, FunctionRole, FunctionTest};
pub use guard::{ADMIN_HEADER, AdminToken};
pub use live_config::{Change, ConfigEntry, LiveConfig};
pub use node::NodeInfo;
pub(crate) use node::known_losses;

use crate::http::Request;
use crate::http::reply::{self, Reply};
use crate::http::wire::headers::name;
use crate::memory::MemoryStatus;
use http::{Method, StatusCode};
use ombak_kv::Kv;
use percent_encoding::percent_decode_str;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// The path below which all resources of this module lie.
pub const PREFIX: &str = "/admin";

/// The largest accepted request body, in bytes.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The state of the administration interface.
pub struct AdminContext {
    /// The engine.
    pub kv: Kv,
    /// The identity and the addresses of this node.
    pub node: NodeInfo,
    /// The configuration of the running node.
    pub config: LiveConfig,
    /// Sending `true` stops the node.
    pub stop: watch::Sender<bool>,
    /// The token that a caller must know.
    pub token: AdminToken,
    /// The running backup and the last one.
    pub backups: BackupJobs,
    /// Where backups may be written.
    pub backup_place: BackupPlace,
    /// The cluster of the node, which may be of this node alone.
    pub cluster: Arc<dyn ClusterAdmin>,
    /// The functions of the node.
    pub functions: Arc<dyn FunctionAdmin>,
}

/// Answers a request whose path is [`PREFIX`] or below it. `memory` is the state of the memory
/// budget of requests. `peer` is the address of the client.
pub(crate) async fn handle(ctx: &AdminContext, memory: MemoryStatus, peer: IpAddr, request: &Request) -> Reply {
    if let Err(refusal) = guard::check(&ctx.token, &request.lines) {
        let (method, path) = (shortened(request.method.as_str()), shortened(request.target.path()));
        tracing::warn!(%peer, method, path, why = refusal.kind(), "administration refused");
        return respond(refusal.status(), &refusal.to_json());
    }
    match answer(ctx, memory, request).await {
        Ok(value) => respond(StatusCode::OK, &value),
        Err(error) => respond(error.status(), &error.to_json()),
    }
}

async fn answer(ctx: &AdminContext, memory: MemoryStatus, request: &Request) -> Result<serde_json::Value, AdminError> {
    let body = &request.body;
    if body.len() > BODY_BYTES_MAX {
        return Err(AdminError::TooLarge(BODY_BYTES_MAX));
    }
    let path = segments(request.target.path());
    let path: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
    match (&request.method, path.as_slice()) {
        (&Method::GET, [b"admin", b"v1", b"node"]) => Ok(node::describe(ctx, memory)),
        (&Method::GET, [b"admin", b"v1", b"config"]) => Ok(ctx.config.describe()),
        (&Method::POST, [b"admin", b"v1", b"config"]) => ctx.config.set(body),
        (&Method::GET, [b"admin", b"v1", b"top"]) => Ok(top::describe(ctx)),
        (&Method::GET, [b"admin", b"v1", b"vnodes"]) => node::vnodes(ctx).await,
        (&Method::GET, [b"admin", b"v1", b"backup"]) => Ok(backup::describe(ctx)),
        (&Method::POST, [b"admin", b"v1", b"backup"]) => backup::begin(ctx, body).await,
        (method @ (&Method::GET | &Method::POST), [b"admin", b"v1", b"cluster", action]) => {
            ctx.cluster.run(cluster::command(*method == Method::POST, action, body)?).await
        }
        (&Method::GET, [b"admin", b"v1", b"restored-keys"]) => restored_keys::list(ctx).await,
        (&Method::POST, [b"admin", b"v1", b"restored-keys"]) => restored_keys::decide(ctx, body).await,
        (&Method::GET, [b"admin", b"v1", b"unreadable-keys"]) => unreadable_keys::list(ctx).await,
        (&Method::POST, [b"admin", b"v1", b"unreadable-keys"]) => unreadable_keys::decide(ctx, body).await,
        (&Method::POST, [b"admin", b"v1", b"stop"]) => Ok(node::stop(ctx)),
        (&Method::GET, [b"admin", b"v1", b"bucket-types"]) => Ok(types::list(ctx)),
        (&Method::GET, [b"admin", b"v1", b"bucket-types", name]) => types::describe(ctx, name),
        (&Method::POST, [b"admin", b"v1", b"bucket-types", name, action]) => {
            types::change(ctx, name, action, body).await
        }
        (&Method::GET, [b"admin", b"v1", b"functions"]) => functions::list(ctx).await,
        (&Method::GET, [b"admin", b"v1", b"functions", name]) => functions::describe(ctx, name).await,
        (&Method::POST, [b"admin", b"v1", b"functions", name, action]) => functions::act(ctx, name, action, body).await,
        _ => Err(AdminError::NoSuchResource(format!("{} {}", request.method, request.target.path()))),
    }
}

/// A text from a client, shortened for a log line.
fn shortened(text: &str) -> &str {
    const SHOWN_CHARS: usize = 100;
    text.char_indices().nth(SHOWN_CHARS).map_or(text, |(end, _)| &text[..end])
}

fn segments(path: &str) -> Vec<Vec<u8>> {
    path.trim_matches('/').split('/').map(|s| percent_decode_str(s).collect()).collect()
}

fn respond(status: StatusCode, value: &serde_json::Value) -> Reply {
    let mut reply = reply::json(status, value.to_string());
    reply.set(name::CACHE_CONTROL, "no-store");
    reply
}
