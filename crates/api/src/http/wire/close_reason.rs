//! Why a connection ends.

use super::head::HeadError;
use std::io;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub enum CloseReason {
    /// The client has closed the connection.
    #[error("the client closed it")]
    Closed,
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopping,
    /// A head was not complete in time, or no request arrived in time.
    #[error("no request came in time")]
    SlowHead,
    /// The client does not read its answers.
    #[error("the client does not take its answers")]
    SlowReader,
    /// The client made no progress while other connections needed its memory.
    #[error("the client made no progress while others needed the memory")]
    Evicted,
    /// The last answer ends the connection.
    #[error("an answer ended it")]
    Answered,
    /// The head of a request was refused, and the client was told.
    #[error("a request head was refused: {0:?}")]
    Refused(HeadError),
    /// The socket has failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}
