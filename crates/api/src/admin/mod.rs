//! The administration interface: JSON below `/admin/v1` on the HTTP listener, for the command line.
//!
//! What it is: a small, versioned tree of resources. Each module lists its paths, with the
//! permission that each of them needs; `registry` collects the lists. [`handle`] first asks whether
//! the caller may ([`guard`]), and then answers.
//!
//! What it is not: it is no part of Riak's HTTP interface, and it is not for browsers. A request
//! that a web page could have caused a browser to send is refused.
//!
//! Every error has the form `{"error":{"kind":"…","message":"…"}}`. The kinds are those of
//! [`AdminError`].

mod audited;
mod backup;
mod backup_place;
mod cluster;
mod cluster_command;
mod encryption;
mod error;
mod fold;
mod folds_under_way;
mod functions;
mod guard;
mod index_repair;
mod kept_trees;
mod key_decision;
mod key_jobs;
mod live_config;
mod node;
mod path;
mod registry;
mod restored_keys;
mod scrub;
mod search;
mod search_schemas;
mod security;
mod top;
mod types;
mod unreadable_keys;

pub use backup::BackupJobs;
pub use backup_place::BackupPlace;
pub use cluster_command::{ClusterAdmin, ClusterCommand, ExchangeWish, ForMembers, HandoffDirection};
pub use error::AdminError;
pub use folds_under_way::FoldsUnderWay;
pub use functions::{FunctionAdmin, FunctionRole, FunctionTest};
pub use guard::{ADMIN_HEADER, AdminToken};
pub use live_config::{Change, ConfigEntry, LiveConfig};
pub use node::NodeInfo;
pub(crate) use node::known_losses;
#[cfg(test)]
pub(crate) use security::known_permissions;

use self::audited::Audited;
use self::path::{AdminCall, AdminPath};
use crate::access::AccessPolicy;
use crate::http::Request;
use crate::http::reply::{self, Reply};
use crate::http::wire::headers::name;
use crate::memory::MemoryStatus;
use crate::security::NodeSecurity;
use http::StatusCode;
use ombak_audit::AuditLog;
use ombak_key_queues::KeyQueues;
use ombak_kv::Kv;
use ombak_searching::Search;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;

/// The rows of all paths in the document about security.
#[cfg(test)]
pub(crate) fn rows() -> impl Iterator<Item = String> {
    registry::paths().map(AdminPath::row)
}

/// The path below which all resources of this module lie.
pub const PREFIX: &str = "/admin";

/// How many parts of a path come before those of a resource: `/admin/v1`.
const VERSIONED_PARTS: usize = 2;

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
    /// The keys that folds erase, reap and repair.
    pub key_queues: KeyQueues,
    /// The folds of operators.
    pub folds: FoldsUnderWay,
    /// The search of the node; `None` if it is off.
    pub search: Option<Arc<Search>>,
    /// Where backups may be written.
    pub backup_place: BackupPlace,
    /// The cluster of the node, which may be of this node alone.
    pub cluster: Arc<dyn ClusterAdmin>,
    /// The functions of the node.
    pub functions: Arc<dyn FunctionAdmin>,
    /// The security of the node.
    pub security: Option<Arc<NodeSecurity>>,
    /// What is told of changes and refusals.
    pub audit: AuditLog,
}

impl AdminContext {
    /// The same state with the search of the node.
    #[must_use]
    pub fn with_search(self, search: Arc<Search>) -> Self {
        Self { search: Some(search), ..self }
    }
}

/// Answers a request whose path is [`PREFIX`] or below it. `memory` is the state of the memory
/// budget of requests.
pub(crate) async fn handle(
    ctx: &AdminContext,
    policy: Option<&dyn AccessPolicy>,
    memory: MemoryStatus,
    request: &Request,
) -> Reply {
    let names = segments(request.target.path());
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let path = registry::find(&request.method, &names);
    let access = path.map_or(registry::UNKNOWN_PATH, AdminPath::access);
    if let Err(refusal) = guard::admit(&ctx.token, policy, request.session(), &request.lines, &access) {
        let (method, path) = (shortened(request.method.as_str()), shortened(request.target.path()));
        tracing::warn!(peer = %request.session().peer.ip(), method, path, why = refusal.kind(), "administration refused");
        audited::tell_refusal(&ctx.audit, request, &refusal.to_string());
        return respond(refusal.status(), &refusal.to_json());
    }
    let names = names.get(VERSIONED_PARTS..).unwrap_or_default();
    let audited = path.filter(|path| path.changes(names)).map(|_| Audited::begin(&ctx.audit, request));
    let answer = answer(path, AdminCall { ctx, memory, names, body: &request.body }, request).await;
    if let Some(audited) = audited {
        audited.ended(&answer);
    }
    match answer {
        Ok(value) => respond(StatusCode::OK, &value),
        Err(error) => respond(error.status(), &error.to_json()),
    }
}

async fn answer(path: Option<&AdminPath>, call: AdminCall<'_>, request: &Request) -> Result<Value, AdminError> {
    if call.body.len() > BODY_BYTES_MAX {
        return Err(AdminError::TooLarge(BODY_BYTES_MAX));
    }
    match path {
        Some(path) => path.answer(call).await,
        None => Err(AdminError::NoSuchResource(format!("{} {}", request.method, request.target.path()))),
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

fn respond(status: StatusCode, value: &Value) -> Reply {
    let mut reply = reply::json(status, value.to_string());
    reply.set(name::CACHE_CONTROL, "no-store");
    reply
}
