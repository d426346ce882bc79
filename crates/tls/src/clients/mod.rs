//! The configuration of TLS for clients.
//!
//! What it is: [`ClientCertificates`] reads the certificate that this node shows to its clients,
//! and the authorities and revocation lists with which it checks theirs. It gives the configuration
//! in force for each handshake. [`ciphers`] understands OpenSSL's names of cipher suites, and
//! [`common_name`] reads the name that the certificate of a client proves.
//!
//! What it is not: it has no sockets, and it knows no users. Whether a client needs a certificate
//! is decided where its requests are.
//!
//! Invariants:
//! * A certificate that a client presents comes from an authority that this node trusts, or the
//!   handshake ends. While revocation is checked, so does the handshake of a client about whose
//!   certificate no list in force says that it was not revoked. Without any list, the node asks for
//!   no certificates.
//! * There is no resumption: each connection proves its certificate anew.
//! * Files and lists of ciphers that cannot be used change nothing.

mod certificate_checks;
mod certificates;
pub mod ciphers;
mod failure;
mod material;
mod names;
mod revocations;
mod settings;

pub use certificates::ClientCertificates;
pub use failure::explain;
pub use names::common_name;
pub use settings::{ClientFiles, ClientTlsSettings, Versions};

#[cfg(test)]
mod tests;
