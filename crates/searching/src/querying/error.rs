//! Why a query has no answer.

use ombak_types::Error;

/// Why a query has no answer. `Display` has Riak's texts where Riak has one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SearchError {
    /// There is no such index.
    #[error("No index <<\"{0}\">> found.")]
    NoIndex(String),
    /// The request is wrong. Holds what is wrong and what would be right.
    #[error("{0}")]
    BadRequest(String),
    /// Some home partition has no replica that can answer.
    #[error("Not enough nodes are up to service this request.")]
    NotEnoughNodes,
    /// The answer would lack something, and the caller needs all of it.
    #[error("the search lacks a part of the objects, because no node has indexed it completely; try again later")]
    Partial,
    /// It took too long.
    #[error("the search took too long; let it find less, or give it more time")]
    TimedOut,
    /// Something else. It can be tried again.
    #[error("Query unsuccessful check the logs.")]
    Failed(Error),
}

impl From<Error> for SearchError {
    fn from(error: Error) -> Self {
        match error {
            Error::Timeout => Self::TimedOut,
            Error::InsufficientVnodesAvailable => Self::NotEnoughNodes,
            error => Self::Failed(error),
        }
    }
}
