//! Why a node does not start.

use ombak_kv::OpenError;
use ombak_peer::connection::TwoServices;
use ombak_peer::mux::InvalidConfig;
use std::io;
use std::net::SocketAddr;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The engine does not open.
    #[error(transparent)]
    Engine(#[from] OpenError),
    /// A limit of the transport makes no sense.
    #[error(transparent)]
    Transport(#[from] InvalidConfig),
    /// Failure detection does not start.
    #[error(transparent)]
    FailureDetection(#[from] ombak_failure_detection::StartError),
    /// Two services have one number.
    #[error(transparent)]
    Services(#[from] TwoServices),
    /// The machine gives no random bytes.
    #[error("no random bytes: {0}")]
    Random(#[source] io::Error),
    /// The node cannot listen for its peers.
    #[error("cannot listen on {address} for other nodes: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
}
