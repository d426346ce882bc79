//! Limits the bytes that are pushed in a second.

use ombak_runtime::{Runtime, RuntimeExt};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What may be pushed at once after a pause.
const BURST: Duration = Duration::from_millis(100);
/// How often whoever waits looks whether the rate has changed.
const LOOK: Duration = Duration::from_secs(1);

/// Delays whoever pushes, so that all together stay below a rate.
pub(crate) struct Throttle {
    runtime: Arc<dyn Runtime>,
    bytes_per_second: AtomicU64,
    /// When everything that was admitted so far has been paid for.
    paid_at: Mutex<Instant>,
}

impl Throttle {
    /// A throttle for a rate; 0 means no limit.
    pub(crate) fn new(runtime: Arc<dyn Runtime>, bytes_per_second: u64) -> Self {
        let paid_at = Mutex::new(runtime.now());
        Self { runtime, bytes_per_second: AtomicU64::new(bytes_per_second), paid_at }
    }

    /// The rate.
    pub(crate) fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second.load(Ordering::Relaxed)
    }

    /// Sets another rate. What waits at the former one goes on within a second.
    pub(crate) fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
        let mut paid_at = self.paid_at.lock();
        *paid_at = (*paid_at).min(self.runtime.now());
    }

    /// Waits until `bytes` may be pushed, or until the rate is another one.
    pub(crate) async fn admit(&self, bytes: u64) {
        let rate = self.bytes_per_second();
        let Some(at) = self.reserve(bytes) else { return };
        while self.bytes_per_second() == rate {
            let left = at.saturating_duration_since(self.runtime.now());
            if left.is_zero() {
                return;
            }
            self.runtime.sleep(left.min(LOOK)).await;
        }
    }

    /// Reserves the place of `bytes` in the order of all pushes. Returns the time of that place, if
    /// it is not now.
    fn reserve(&self, bytes: u64) -> Option<Instant> {
        let price_us = bytes.saturating_mul(1_000_000).checked_div(self.bytes_per_second())?;
        let now = self.runtime.now();
        let mut paid_at = self.paid_at.lock();
        let begins = (*paid_at).max(now.checked_sub(BURST).unwrap_or(now));
        *paid_at = begins + Duration::from_micros(price_us);
        (begins > now).then_some(begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_runtime::{OtherClocks, TokioRuntime};

    #[test]
    fn pushes_stay_below_the_rate() {
        let now = Arc::new(Mutex::new(Instant::now()));
        let read = now.clone();
        let clock = OtherClocks::of(Arc::new(TokioRuntime)).with_monotonic_clock(move || *read.lock());
        let throttle = Throttle::new(Arc::new(clock), 1_000);
        let began = *now.lock();
        let mut admitted = 0;
        while *now.lock() < began + Duration::from_secs(20) {
            let place = throttle.reserve(500);
            admitted += 500;
            if let Some(at) = place {
                *now.lock() = at;
            }
        }
        assert!((20_000..=21_100).contains(&admitted), "{admitted}");
        *now.lock() += Duration::from_secs(3_600);
        assert_eq!((throttle.reserve(100), throttle.reserve(100)), (None, None), "the pause allows a burst");
        assert!(throttle.reserve(100).is_some(), "and no more than that");
        throttle.set_bytes_per_second(0);
        assert_eq!((throttle.reserve(u64::MAX), throttle.bytes_per_second()), (None, 0));
        throttle.set_bytes_per_second(100);
        assert_eq!(throttle.reserve(100), None, "a new rate begins without debts");
        let place = throttle.reserve(100).expect("the first one has used the second up");
        assert_eq!(place.duration_since(*now.lock()), Duration::from_secs(1));
        let unlimited = Throttle::new(Arc::new(TokioRuntime), 0);
        assert_eq!((unlimited.reserve(u64::MAX), unlimited.reserve(u64::MAX)), (None, None));
    }
}
