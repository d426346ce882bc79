//! Paths of administration and who serves them: what a module of administration registers.
//!
//! A module lists its [`AdminPath`]s in a constant, which the registry collects.

use super::{AdminContext, AdminError, ClusterCommand};
use crate::access::{Access, AdminRole, Permission};
use crate::http::{Part, parts_match};
use crate::memory::MemoryStatus;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Method;
use serde_json::Value;

/// A path below `/admin/v1`, the permission that it needs, and the code that serves it.
pub(super) struct AdminPath {
    verb: Verb,
    parts: &'static [Part],
    /// What the policy is asked for.
    pub(super) permission: Permission,
    /// The role that has the permission.
    role: AdminRole,
    /// Which requests change nothing, by the parts of the path, although the method is POST.
    reads: fn(&[&[u8]]) -> bool,
    serve: Serve,
}

/// The method of a path: GET reads, POST changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Get,
    Post,
}

/// The code that answers a request.
pub(super) type Answer = for<'a> fn(AdminCall<'a>) -> BoxFuture<'a, Result<Value, AdminError>>;

/// The code that reads a command about the cluster in the body of a request.
pub(super) type ReadCommand = fn(&[u8]) -> Result<ClusterCommand, AdminError>;

/// The code that serves a request.
#[derive(Clone, Copy)]
enum Serve {
    Answer(Answer),
    Cluster(ReadCommand),
}

/// A request with what is needed to answer it.
pub(super) struct AdminCall<'a> {
    /// The state of the interface.
    pub(super) ctx: &'a AdminContext,
    /// The state of the memory budget of requests.
    pub(super) memory: MemoryStatus,
    /// The parts of the path behind `/admin/v1`.
    pub(super) names: &'a [&'a [u8]],
    /// The body; empty if there was none.
    pub(super) body: &'a Bytes,
}

impl<'a> AdminCall<'a> {
    /// The name in a path such as `functions/NAME`; empty in a path without one.
    pub(super) fn name(&self) -> &'a [u8] {
        self.names.get(1).copied().unwrap_or_default()
    }

    /// The error for a path such as `functions/NAME/ACTION` with an action that `kind` does not
    /// have.
    pub(super) fn no_such_action(&self, kind: &str) -> AdminError {
        let action = self.names.last().copied().unwrap_or_default();
        AdminError::NoSuchResource(format!("{kind} action '{}'", String::from_utf8_lossy(action)))
    }
}

impl AdminPath {
    const fn new(verb: Verb, parts: &'static [Part], permission: Permission, serve: Serve) -> Self {
        let role = match verb {
            Verb::Get => AdminRole::Observer,
            Verb::Post => AdminRole::Operator,
        };
        Self { verb, parts, permission, role, reads: |_| false, serve }
    }

    /// A path that is read.
    pub(super) const fn get(parts: &'static [Part], permission: Permission, answer: Answer) -> Self {
        Self::new(Verb::Get, parts, permission, Serve::Answer(answer))
    }

    /// A path that changes something.
    pub(super) const fn post(parts: &'static [Part], permission: Permission, answer: Answer) -> Self {
        Self::new(Verb::Post, parts, permission, Serve::Answer(answer))
    }

    /// A path that shows something of the cluster.
    pub(super) const fn show_cluster(parts: &'static [Part], permission: Permission, read: ReadCommand) -> Self {
        Self::new(Verb::Get, parts, permission, Serve::Cluster(read))
    }

    /// A path that changes the cluster.
    pub(super) const fn change_cluster(parts: &'static [Part], permission: Permission, read: ReadCommand) -> Self {
        Self::new(Verb::Post, parts, permission, Serve::Cluster(read))
    }

    /// The same path, for those who administer security alone.
    pub(super) const fn of_security(self) -> Self {
        Self { role: AdminRole::Security, ..self }
    }

    /// What a request for it does.
    pub(super) const fn access(&self) -> Access<'static> {
        Access::to_administration(self.permission, self.role)
    }

    /// The row of the document about security for this path.
    #[cfg(test)]
    pub(crate) fn row(&self) -> String {
        let verb = match self.verb {
            Verb::Get => "GET",
            Verb::Post => "POST",
        };
        let role = self.role.permission().name();
        format!("| {verb} `{}` | `{}` | `{role}` |", crate::http::shown(self.parts), self.permission.name())
    }

    /// The same path, of which some requests change nothing, by the parts of the path.
    pub(super) const fn that_reads(self, reads: fn(&[&[u8]]) -> bool) -> Self {
        Self { reads, ..self }
    }

    /// Whether a request for it with these parts behind `/admin/v1` changes something.
    pub(super) fn changes(&self, names: &[&[u8]]) -> bool {
        matches!(self.verb, Verb::Post) && !(self.reads)(names)
    }

    /// Whether it is for requests with this method and with these parts behind `/admin/v1`.
    pub(super) fn matches(&self, method: &Method, names: &[&[u8]]) -> bool {
        let verb = match self.verb {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
        };
        *method == verb && parts_match(self.parts, names)
    }

    /// Answers a request.
    pub(super) async fn answer(&self, call: AdminCall<'_>) -> Result<Value, AdminError> {
        match self.serve {
            Serve::Answer(answer) => answer(call).await,
            Serve::Cluster(read) => call.ctx.cluster.run(read(call.body)?).await,
        }
    }

    /// The command that a body names; `None` if the path is not about the cluster.
    #[cfg(test)]
    pub(super) fn command(&self, body: &[u8]) -> Option<Result<ClusterCommand, AdminError>> {
        match self.serve {
            Serve::Answer(_) => None,
            Serve::Cluster(read) => Some(read(body)),
        }
    }
}
