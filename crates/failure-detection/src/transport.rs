//! What the failure detector needs from the network.

use bytes::Bytes;
use ombak_runtime::BoxFuture;
use ombak_types::NodeId;

/// Sends packets to other nodes. The transport knows their addresses.
pub trait DetectionTransport: Send + Sync {
    /// Sends a packet, which may be lost, arrive late or arrive twice. The call returns at once.
    /// The transport bounds what waits to be sent, and drops what is more.
    fn send(&self, to: NodeId, packet: Bytes);
}

/// Sends a small request to another node over the path that requests of clients take.
pub trait HealthProbe: Send + Sync {
    /// Whether the node answered the probe. The failure detector gives up after
    /// [`HealthConfig::probe_limit`](crate::HealthConfig::probe_limit) and drops the future.
    fn probe(&self, node: NodeId) -> BoxFuture<'static, bool>;
}
