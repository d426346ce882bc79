//! The state of a connection that outlasts a request.

use bytes::Bytes;

/// The state of a connection that outlasts a request.
pub(super) struct Session {
    /// The client id that the client has set.
    pub(super) client_id: Bytes,
}

impl Default for Session {
    fn default() -> Self {
        Self { client_id: Bytes::from_static(&[0; 4]) }
    }
}
