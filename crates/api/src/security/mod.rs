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
//! * A change of a record costs as much as that record, and no request waits for it.
//! * The answer to a wrong password, an unknown user and a user without a source is the same, and
//!   takes as long. The one exception is a user that has logged in from the same address before,
//!   who does not wait for what others guess from there.

mod audit;
mod client_network;
#[cfg(test)]
mod documented;
mod failure_brake;
mod guess_key;
mod guess_line;
mod guess_lines;
mod login;
mod node_security;
mod password_check;
mod password_checks;
mod plain_sessions;
mod proven_pairs;
mod remembered_grants;
mod remembered_passwords;
mod security_namespace;
mod snapshot;
mod switch;
#[cfg(test)]
pub(crate) mod tests;
mod tls_ciphers;
mod waiting_checks;

pub(crate) use login::{Credentials, LoginRefused};
pub use node_security::NodeSecurity;
pub use ombak_security::AddressRange;
pub(crate) use plain_sessions::{PlainSessions, SessionEnd};
pub use security_namespace::SecurityNamespace;
pub use tls_ciphers::{NoTls, TlsCiphers};
