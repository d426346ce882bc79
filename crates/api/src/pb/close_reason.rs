//! Why a connection ends.

use ombak_proto::FrameError;
use std::io;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum CloseReason {
    #[error("the peer closed it")]
    Closed,
    #[error("it goes on with TLS")]
    BeginsTls,
    #[error("bytes without TLS followed the request for TLS")]
    PlainBytesBeforeTls,
    #[error("its client has sent a login without a user")]
    EmptyLogin,
    #[error("its client has failed too often to prove who it is")]
    LoginsFailed,
    #[error("it is plain, and was not finished in time when security was switched on")]
    NotSecured,
    #[error("the node is stopping")]
    Stopping,
    #[error("a frame was begun and not finished in time")]
    SlowFrame,
    #[error("the peer did not take its answers in time")]
    SlowPeer,
    #[error("there was no memory for its request")]
    OutOfMemory,
    #[error("it did not take its answers while others needed the memory")]
    Evicted,
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Io(#[from] io::Error),
}
