//! The state of a connection that outlasts a request.

use crate::access::Session;
use bytes::Bytes;
use std::sync::Arc;

/// The state of a connection that outlasts a request, and its change to TLS.
pub(super) struct PbSession {
    /// Who the client is, for the gate.
    pub(super) client: Arc<Session>,
    /// The client id that the client has set.
    pub(super) client_id: Bytes,
    /// Whether the client has asked for TLS, which begins after the answer to that request.
    pub(super) begins_tls: bool,
    /// How often the client has failed to prove who it is.
    pub(super) login_attempts: u32,
}

impl PbSession {
    pub(super) fn new(client: Session) -> Self {
        Self { client: Arc::new(client), client_id: Bytes::from_static(&[0; 4]), begins_tls: false, login_attempts: 0 }
    }

    /// Goes on with what the client has proved in a handshake of TLS. What was set before is
    /// forgotten: somebody between the client and the node may have set it.
    pub(super) fn goes_on_as(&mut self, client: Session) {
        *self = Self::new(client);
    }
}
