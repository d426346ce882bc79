//! Reading request bodies: not too much, not too slowly, not too many at once.

use super::context::HttpLimits;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::{Instant, timeout_at};

/// The memory that request bodies may take, shared by all connections.
pub struct BodyBudget {
    free_bytes: AtomicUsize,
}

/// A share of the budget, given back when dropped.
pub struct BodyShare<'a> {
    budget: &'a BodyBudget,
    bytes: usize,
}

impl BodyBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { free_bytes: AtomicUsize::new(bytes) }
    }

    fn share(&self) -> BodyShare<'_> {
        BodyShare { budget: self, bytes: 0 }
    }

    fn take(&self, bytes: usize) -> bool {
        let take = |free: usize| free.checked_sub(bytes);
        self.free_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

impl BodyShare<'_> {
    fn grow(&mut self, bytes: usize) -> Result<(), StatusCode> {
        if !self.budget.take(bytes) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BodyShare<'_> {
    fn drop(&mut self) {
        self.budget.free_bytes.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// Reads a body to its end. The status of the refusal otherwise: 413 if it is too large, 408 if it is too slow, 503 if
/// too many are under way, 400 if it is cut short.
pub async fn read<'a>(
    mut body: Incoming,
    limits: &HttpLimits,
    budget: &'a BodyBudget,
) -> Result<(Bytes, BodyShare<'a>), StatusCode> {
    let mut share = budget.share();
    if body.is_end_stream() {
        return Ok((Bytes::new(), share));
    }
    if body.size_hint().lower() > limits.body_bytes_max as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let deadline = Instant::now() + limits.body_timeout;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let pause_end = (Instant::now() + limits.body_pause_timeout).min(deadline);
        let frame = match timeout_at(pause_end, body.frame()).await {
            Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(StatusCode::BAD_REQUEST),
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers are not looked at.
        let Ok(data) = frame.into_data() else { continue };
        if first.len().max(rest.len()) + data.len() > limits.body_bytes_max {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        share.grow(data.len())?;
        if first.is_empty() {
            // Most bodies come in one piece, which is then not copied.
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve(first.len() + data.len());
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok((if rest.is_empty() { first } else { rest.freeze() }, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_given_back() {
        let budget = BodyBudget::new(10);
        let mut one = budget.share();
        assert_eq!(one.grow(8), Ok(()));
        assert_eq!(budget.share().grow(3), Err(StatusCode::SERVICE_UNAVAILABLE));
        drop(one);
        assert_eq!(budget.share().grow(10), Ok(()));
    }
}
