//! The limits and switches of the Protocol Buffers interface.

use crate::access::AccessPolicy;
use crate::client_stream::ClientTls;
use crate::jobs::JobSwitches;
use crate::security::NodeSecurity;
use ombak_proto::frame::FRAME_BYTES_MAX_DEFAULT;
use std::sync::Arc;
use std::time::Duration;

/// The limits and switches of the Protocol Buffers interface.
#[derive(Clone, Debug)]
pub struct PbConfig {
    /// The highest number of connections at the same time. Further connections are refused with an
    /// error message.
    pub connections_max: usize,
    /// The largest accepted frame, in bytes. It must have room for the largest object.
    pub frame_bytes_max: usize,
    /// How long a frame may take from its first byte to its last. Connections may be idle between
    /// frames for ever.
    pub frame_timeout: Duration,
    /// How long a peer may take to accept one write.
    pub write_timeout: Duration,
    /// The highest number of gets, puts and deletes of one connection that run at the same time.
    pub in_flight_max: usize,
    /// How long connections may take to finish the requests in progress when the node stops.
    pub drain_timeout: Duration,
    /// How long plain connections may take to finish the requests in progress when security is
    /// switched on.
    pub plain_drain_timeout: Duration,
    /// Whether the kernel may hold back small writes (`protobuf.nagle`).
    pub nagle: bool,
    /// Whether the kernel probes idle peers (`protobuf.keepalive`).
    pub keepalive: bool,
    /// The expensive requests that are allowed.
    pub jobs: JobSwitches,
    /// How a connection becomes one with TLS when its client asks for that. Without it, the request
    /// is refused.
    pub start_tls: Option<ClientTls>,
    /// The security of the node. Without it, no client has to prove who it is.
    pub security: Option<Arc<NodeSecurity>>,
    /// Decides which requests are allowed. Without a policy, all are.
    pub policy: Option<Arc<dyn AccessPolicy>>,
}

impl Default for PbConfig {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            frame_bytes_max: FRAME_BYTES_MAX_DEFAULT,
            frame_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            in_flight_max: 32,
            drain_timeout: Duration::from_secs(5),
            plain_drain_timeout: Duration::from_secs(5),
            nagle: false,
            keepalive: true,
            jobs: JobSwitches::default(),
            start_tls: None,
            security: None,
            policy: None,
        }
    }
}
