//! Memory of a caller: asked for before a large version is read.

use ombak_types::Error;
use std::future::Future;
use std::pin::Pin;

/// Versions up to this many bytes are read without asking: the caller counts them afterwards.
pub(crate) const UNASKED_BYTES_MAX: u64 = 256 << 10;

/// Where a caller keeps what it reads.
pub trait Room: Send {
    /// Makes room for `bytes` in all. May wait; an error refuses the request.
    fn reserve(&mut self, bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>>;
}

/// The room of callers whose memory is not counted.
pub(crate) struct Unlimited;

impl Room for Unlimited {
    fn reserve(&mut self, _bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
