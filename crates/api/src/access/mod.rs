//! Who asks for what: the question that security answers.
//!
//! What it is: a [`Session`] says who has sent a request, from where, and how that was proved. An
//! [`Access`] says what the request does, and to what. An [`AccessPolicy`] allows it or refuses it.
//! Each request asks once, before its feature sees it: Protocol Buffers in `pb::gate`, HTTP in its
//! decision graph, administration in `admin::guard`. For a MapReduce job, `crate::map_reduce` asks
//! on both interfaces when the job has been read.
//!
//! What it is not: it proves nothing. Whoever learns a proof writes it into the session: the
//! handshake of TLS, the token of administration, and [`crate::security`] when a user logs in.
//!
//! A node without a policy allows every request for data, and administration to those who know the
//! node's admin token.

mod admin_role;
#[cfg(test)]
mod noted_accesses;
mod permission;
mod policy;
mod session;

pub use admin_role::AdminRole;
#[cfg(test)]
pub(crate) use noted_accesses::NotedAccesses;
pub use permission::Permission;
pub use policy::{Access, AccessPolicy};
pub use session::{Proof, Session, SessionUser};
