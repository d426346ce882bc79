//! An answer of this node, which may be there at once.

use ombak_runtime::BoxFuture;
use ombak_types::Error;

/// An answer of this node.
pub enum Begun<T> {
    /// It was there at once.
    Done(Result<T, Error>),
    /// It is waited for.
    Waits(BoxFuture<'static, Result<T, Error>>),
}

impl<T> Begun<T> {
    /// Waits for the answer, if it is not there.
    pub async fn finish(self) -> Result<T, Error> {
        match self {
            Self::Done(answer) => answer,
            Self::Waits(answer) => answer.await,
        }
    }
}
