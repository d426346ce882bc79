//! What an operator has set for TLS with clients.

use crate::files::{FileProblem, FileRole};
use std::path::PathBuf;

/// What an operator has set for TLS with clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsSettings {
    /// Where the certificates are.
    pub files: ClientFiles,
    /// The versions that are on.
    pub versions: Versions,
    /// Whether the order of the node's cipher suites counts, rather than that of the client.
    pub honors_own_order: bool,
    /// Whether certificates of clients are looked up in lists of revoked ones.
    pub checks_revocation: bool,
}

/// The files of TLS with clients. All are in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The certificate of the node, followed by the intermediate ones.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities that issue certificates to clients. Without it, clients are asked for none.
    pub authorities: Option<PathBuf>,
    /// The lists of certificates that these authorities have revoked.
    pub revocations: Option<PathBuf>,
}

/// The versions of TLS that are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is the version of its name")]
pub struct Versions {
    pub tls12: bool,
    pub tls13: bool,
}

impl ClientFiles {
    /// A problem with one of the files.
    pub(super) fn problem(&self, role: FileRole, what: impl Into<String>) -> FileProblem {
        let path = match role {
            FileRole::Certificate => Some(&self.certificate),
            FileRole::Key => Some(&self.key),
            FileRole::Authorities => self.authorities.as_ref(),
            FileRole::Revocations => self.revocations.as_ref(),
        };
        FileProblem { role, path: path.cloned().unwrap_or_default(), what: what.into() }
    }
}
