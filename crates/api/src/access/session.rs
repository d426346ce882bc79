//! Who is at the other end of a connection.

use ombak_audit::Place;
use std::net::SocketAddr;
use std::sync::Arc;

/// Who has sent a request, from where, and how that was proved.
///
/// A connection has one from its beginning. A proof that comes later makes a new one: a handshake
/// of TLS for the rest of the connection, the token of administration for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The address of the client.
    pub peer: SocketAddr,
    /// The listener that took the connection, by its key in the configuration.
    pub listener: Arc<str>,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// What the client has proved.
    pub proof: Proof,
    /// The user who has logged in; `None` if nobody has.
    pub user: Option<SessionUser>,
}

/// A user who has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionUser {
    /// The name.
    pub name: Arc<str>,
    /// Tells the user from an earlier one with the same name.
    pub id: u64,
}

/// What a client has proved about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// Nothing.
    #[default]
    Nothing,
    /// It knows the node's admin token.
    AdminToken,
    /// It comes from an address from which its user is trusted.
    Address,
    /// It knows the password of its user.
    Password,
    /// It owns the key of a certificate that an authority of the listener has issued.
    Certificate {
        /// The name in the certificate.
        name: Arc<str>,
    },
}

impl Proof {
    /// The name in the audit log.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::AdminToken => "admin_token",
            Self::Address => "trust",
            Self::Password => "password",
            Self::Certificate { .. } => "certificate",
        }
    }
}

impl Session {
    /// The session of a connection that has just been taken. Nothing is proved and nothing is
    /// encrypted.
    pub fn new(peer: SocketAddr, listener: Arc<str>) -> Self {
        Self { peer, listener, is_encrypted: false, proof: Proof::Nothing, user: None }
    }

    /// Where the requests come from, for the audit log.
    pub(crate) fn place(&self) -> Place<'_> {
        Place { peer: self.peer, listener: &self.listener, is_encrypted: self.is_encrypted }
    }

    /// Whether the client has the certificate of a user.
    pub fn has_certificate_of(&self, user: &str) -> bool {
        matches!(&self.proof, Proof::Certificate { name } if **name == *user)
    }

    /// The same client with a proof.
    #[must_use]
    pub fn with_proof(&self, proof: Proof) -> Self {
        Self { proof, ..self.clone() }
    }
}

#[cfg(test)]
impl Session {
    /// A session for tests that need any.
    pub(crate) fn sample() -> Arc<Self> {
        Arc::new(Self::new(SocketAddr::from(([127, 0, 0, 1], 1)), "test".into()))
    }
}
