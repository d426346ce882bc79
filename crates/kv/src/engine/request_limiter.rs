//! Counts the active requests, and decides whether another request may start.

use ombak_stats::{SHARDS, shard};
use ombak_types::Error;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Admits up to `max` requests at a time, and none after it is closed.
pub(crate) struct RequestLimiter {
    max: usize,
    /// Each thread counts in one of these, so that threads do not contend for one counter.
    under_way: [Count; SHARDS],
    closed: AtomicBool,
    drained: Mutex<()>,
    left: Condvar,
}

#[derive(Default)]
#[repr(align(64))]
struct Count(AtomicUsize);

/// An admitted request. Dropping it ends the request.
pub(crate) struct ActiveRequest<'a> {
    limiter: &'a RequestLimiter,
    count: &'a AtomicUsize,
}

impl RequestLimiter {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            under_way: Default::default(),
            closed: AtomicBool::new(false),
            drained: Mutex::new(()),
            left: Condvar::new(),
        }
    }

    pub(super) fn enter(&self) -> Result<ActiveRequest<'_>, Error> {
        let Count(count) = &self.under_way[shard() % SHARDS];
        // The request is counted before the check. So either `close` sees this request, or this
        // request sees that the limiter is closed.
        count.fetch_add(1, Ordering::SeqCst);
        let request = ActiveRequest { limiter: self, count };
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::Stopping);
        }
        if self.under_way() > self.max { Err(Error::Overload) } else { Ok(request) }
    }

    fn under_way(&self) -> usize {
        self.under_way.iter().map(|Count(count)| count.load(Ordering::SeqCst)).sum()
    }

    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::SeqCst)
    }

    /// Stops admitting requests. Returns true when this call closed the limiter.
    pub(super) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::SeqCst)
    }

    /// Waits until all requests have ended. Returns false when some are still active after `limit`.
    pub(super) fn wait_empty(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut guard = self.drained.lock();
        while self.under_way() > 0 {
            if self.left.wait_until(&mut guard, deadline).timed_out() {
                return self.under_way() == 0;
            }
        }
        true
    }
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let Self { limiter, count } = self;
        count.fetch_sub(1, Ordering::SeqCst);
        if limiter.closed.load(Ordering::SeqCst) {
            // Taking the lock makes sure that a waiting thread is either before its check or
            // asleep.
            drop(limiter.drained.lock());
            limiter.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lets_in_up_to_its_number_and_none_after_closing() {
        let limiter = RequestLimiter::new(1);
        let request = limiter.enter().ok();
        assert!(request.is_some());
        assert_eq!(limiter.enter().err(), Some(Error::Overload));
        drop(request);
        assert!(limiter.enter().is_ok());
        assert!(limiter.close());
        assert!(!limiter.close());
        assert_eq!(limiter.enter().err(), Some(Error::Stopping));
        assert!(limiter.wait_empty(Duration::ZERO));
    }

    #[test]
    fn the_number_holds_for_all_threads_together() {
        let limiter = RequestLimiter::new(8);
        let mine: Vec<_> = (0..8).map(|_| limiter.enter().ok().unwrap()).collect();
        std::thread::scope(|scope| {
            for _ in 0..SHARDS {
                scope.spawn(|| assert_eq!(limiter.enter().err(), Some(Error::Overload)));
            }
        });
        drop(mine);
        assert_eq!(limiter.under_way(), 0);
    }

    #[test]
    fn closing_waits_for_those_inside() {
        let limiter = RequestLimiter::new(8);
        let request = limiter.enter().unwrap();
        limiter.close();
        assert!(!limiter.wait_empty(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| limiter.wait_empty(Duration::from_secs(10)));
            drop(request);
            assert!(waiter.join().unwrap());
        });
    }
}
