//! TLS: mutual between the nodes of a cluster, and for clients.
//!
//! What it is: a layer between the transport of nodes and the sockets. [`Certificates`] reads the
//! certificate of this node, its key and the authorities that it trusts from files. [`TlsNetwork`]
//! makes and takes connections of another [`ombak_runtime::Network`], and encrypts them. The room
//! [`clients`] has the configuration of TLS for clients, whose rules are others.
//!
//! What it is not: it knows no nodes and no requests. It checks no names: an authority vouches for
//! all certificates that it has issued, so the authority of a cluster issues them to its nodes
//! only. It asks nobody whether a certificate was revoked.
//!
//! Invariants between nodes:
//! * A connection carries bytes of the layer above only after both sides have proved that they own
//!   a valid certificate of an authority that the other side trusts. Each connection proves that
//!   anew: there is no resumption.
//! * A stranger learns no more than that this node speaks TLS, and its certificate.
//! * What a stranger can make this node hold is bounded, and the time limit of the layer above ends
//!   its handshake like any other wait.
//! * Files that cannot be used change nothing: what was read before stays in force.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod certificates;
pub mod clients;
mod failure;
mod files;
mod network;
mod stream;
#[cfg(any(test, feature = "test-authority"))]
pub mod test_authority;
mod verification;

pub use certificates::Certificates;
pub use files::{CertificateFiles, FileProblem, FileRole};
pub use network::TlsNetwork;

#[cfg(test)]
mod tests;
