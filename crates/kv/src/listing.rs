//! A listing of keys or buckets, in batches.

use bytes::Bytes;
use ombak_types::Error;

/// Names in bounded batches. Dropping it ends the work behind it.
pub struct Listing {}

impl Listing {
    /// The next batch, never empty; `None` at the end. An error is the last thing it gives.
    pub async fn next(&mut self) -> Option<Result<Vec<Bytes>, Error>> {
        None
    }
}
