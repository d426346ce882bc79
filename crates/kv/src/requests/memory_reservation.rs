//! Memory of a caller, which the engine reserves before it reads a large version.

use ombak_types::Error;
use std::future::Future;
use std::pin::Pin;

/// Versions up to this many bytes are read without a reservation; the caller counts them
/// afterwards.
pub(crate) const READ_WITHOUT_RESERVATION_BYTES_MAX: u64 = 256 << 10;

/// The memory in which a caller keeps what it reads.
pub trait MemoryReservation: Send {
    /// Reserves `bytes` in total. May wait; an error refuses the request.
    fn reserve(&mut self, bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>>;
}

/// The memory of callers that do not count it, because something else bounds what they read.
pub struct UncountedMemory;

impl MemoryReservation for UncountedMemory {
    fn reserve(&mut self, _bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
