//! Errors of an exchange with a server.

use ombak_proto::FrameError;
use std::io;
use std::time::Duration;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Connecting failed: nothing listens at the address, or it cannot be reached.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The address of the server.
        address: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Sending or receiving failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The answer did not arrive in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The server refused the request with this text. docs/riak/pb-api.md §1.1 lists the texts.
    #[error("{0}")]
    Server(String),
    /// The answer has another message code than the request asks for.
    #[error("expected an answer with code {expected} and got code {got}")]
    UnexpectedCode {
        /// The expected code.
        expected: u8,
        /// The received code.
        got: u8,
    },
    /// The frame of the answer is invalid.
    #[error("bad answer: {0}")]
    Frame(#[from] FrameError),
    /// The answer cannot be decoded.
    #[error("bad answer: {0}")]
    Decode(#[from] prost::DecodeError),
    /// An earlier exchange on this connection was abandoned, so it is not known to which request
    /// the next answer belongs.
    #[error("an earlier exchange on this connection was not finished; open another connection")]
    OutOfStep,
}
