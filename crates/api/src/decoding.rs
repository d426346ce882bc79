//! Decodes what may take much more memory than its message.
//!
//! Before a message is decoded, memory for it is reserved: first as much as is usual, and if that
//! is not enough, as much as the message may take at most. Afterwards only what was built is held.
//! A large message is decoded on a thread for large requests. When nobody waits for it any more,
//! its decoder ends.

use crate::memory::Held;
use bytes::Bytes;
use ombak_kv::Kv;
use ombak_types::{DecodeBudget, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest message that a network thread decodes itself, in bytes. This takes so little time
/// that other connections do not notice.
pub(crate) const IN_PLACE_BYTES_MAX: usize = 128 << 10;

/// What is reserved at first, in multiples of the message. What the first attempt has used may stay
/// with the allocator during the second, so it is little.
const SHARES: [usize; 3] = [1, 16, usize::MAX];

/// What is reserved at least, in bytes.
const RESERVED_BYTES_MIN: usize = 16 << 10;

/// Why something could not be decoded.
pub(crate) trait DecodeError {
    /// Whether the budget was too small.
    fn is_too_large(&self) -> bool;
}

/// Tells a decoder to end when nobody waits for it any more.
#[derive(Default)]
struct EndsWithWait(Arc<AtomicBool>);

impl Drop for EndsWithWait {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Decodes a message with `read`. Afterwards `held` has what was built.
///
/// # Errors
/// [`Error::Overload`]: there is no memory for it.
pub(crate) async fn decode<T: Send + 'static, E: DecodeError + Send + 'static>(
    kv: &Kv,
    held: &mut Held<'_>,
    message: &Bytes,
    read: impl Fn(&Bytes, &mut DecodeBudget) -> Result<T, E> + Clone + Send + 'static,
) -> Result<Result<T, E>, Error> {
    let bytes_max = DecodeBudget::bytes_for(message.len());
    let mut shares = SHARES.into_iter().map(|share| message.len().saturating_mul(share).max(RESERVED_BYTES_MIN));
    loop {
        let bytes = shares.next().unwrap_or(bytes_max).min(bytes_max);
        held.resize(bytes as u64).await?;
        let (outcome, built) = attempt(kv, message, bytes, read.clone()).await?;
        if bytes < bytes_max && matches!(&outcome, Err(error) if error.is_too_large()) {
            continue;
        }
        held.resize(if outcome.is_ok() { built as u64 } else { 0 }).await?;
        return Ok(outcome);
    }
}

/// Decodes a message within this many bytes. Returns how many were used as well.
async fn attempt<T: Send + 'static, E: Send + 'static>(
    kv: &Kv,
    message: &Bytes,
    bytes_max: usize,
    read: impl FnOnce(&Bytes, &mut DecodeBudget) -> Result<T, E> + Send + 'static,
) -> Result<(Result<T, E>, usize), Error> {
    let mut budget = DecodeBudget::new(bytes_max);
    if message.len() <= IN_PLACE_BYTES_MAX {
        return Ok((read(message, &mut budget), budget.bytes_used()));
    }
    let (ends, message) = (EndsWithWait::default(), message.clone());
    let mut budget = budget.until(ends.0.clone());
    kv.offload(move || (read(&message, &mut budget), budget.bytes_used())).await
}
