//! The security of a node: who its clients are, and what they may do.
//!
//! What it is: [`NodeSecurity`] follows the records of security in the metadata. It proves who a
//! client is (a password, a certificate, or an address that is trusted), and is the policy of
//! Protocol Buffers, HTTP and administration. The rules are those of the crate `security`.
//!
//! What it is not: it reads no message of a client. `pb::login` and `http::login` do.
//!
//! Invariants:
//! * A node that is told of nothing allows what a node without security allows.
//! * A node that may lack decisions of its cluster is closed as soon as another member says that
//!   security is on, and until it has caught up.
//! * A password is compared with a stored hash on threads of its own, never on a network thread.
//! * What is remembered or counted about clients is bounded.
//! * The answer to a wrong password, an unknown user and a user without a source is the same, and
//!   takes as long.

#[cfg(test)]
mod documented;
mod failure_brake;
mod login;
mod node_security;
mod password_checks;
mod plain_sessions;
mod remembered_passwords;
mod security_namespace;
mod snapshot;
mod switch;
#[cfg(test)]
pub(crate) mod tests;
mod tls_ciphers;

pub(crate) use login::{Credentials, LoginRefused};
pub use node_security::NodeSecurity;
pub use ombak_security::AddressRange;
pub(crate) use plain_sessions::{PlainSessions, SessionEnd};
pub use security_namespace::SecurityNamespace;
pub use tls_ciphers::{NoTls, TlsCiphers};
