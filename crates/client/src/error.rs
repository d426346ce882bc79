//! What can go wrong between a client and a server.

use ombak_proto::FrameError;
use std::io;
use std::time::Duration;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there, or the way is blocked.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Where to.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// Sending or receiving failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The server refused the request. Holds its text; docs/riak/pb-api.md §1.1 lists them.
    #[error("{0}")]
    Server(String),
    /// The answer is of another kind than the request asks for.
    #[error("expected an answer with code {expected} and got code {got}")]
    UnexpectedCode {
        /// The code that belongs to the request.
        expected: u8,
        /// The code that came.
        got: u8,
    },
    /// The answer's frame is impossible.
    #[error("bad answer: {0}")]
    Frame(#[from] FrameError),
    /// The answer does not decode.
    #[error("bad answer: {0}")]
    Decode(#[from] prost::DecodeError),
    /// The exchange before this one was given up half-way: what comes next on this connection is not known.
    #[error("an earlier exchange on this connection was not finished; open another connection")]
    OutOfStep,
}
