//! The cipher suites of TLS for clients, which the command `security ciphers` chooses.

use std::fmt;

/// The cipher suites of TLS for clients.
pub trait TlsCiphers: fmt::Debug + Send + Sync {
    /// Whether this node has TLS for clients at all.
    fn is_there(&self) -> bool;

    /// Whether a name, as OpenSSL or the standard has it, is one of a suite that this node has.
    fn is_known(&self, name: &str) -> bool;

    /// Handshakes from now on use these suites, in this order, with colons between their names;
    /// `None`: those of the node. Nothing is chosen while the record that has the list cannot be
    /// read, so what was chosen last stays in force.
    fn choose(&self, list: Option<&str>);
}

/// A node without TLS for clients.
#[derive(Debug)]
pub struct NoTls;

impl TlsCiphers for NoTls {
    fn is_there(&self) -> bool {
        false
    }

    fn is_known(&self, _: &str) -> bool {
        false
    }

    fn choose(&self, _: Option<&str>) {}
}
