//! Counts the active requests, and decides whether another request may start.

use ombak_stats::{SHARDS, shard};
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

/// Requests are admitted.
const OPEN: u8 = 0;
/// Requests are refused, because the data directory is older than the cluster knows it.
const REFUSING_OLDER: u8 = 1;
/// Requests are refused, because the node was removed from its cluster.
const REFUSING_REMOVED: u8 = 2;
/// The node stops.
const CLOSED: u8 = 3;
/// Requests are refused until the peers of a new node have said that it may serve.
const REFUSING_NEW: u8 = 4;

/// Why a node takes no part in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPart {
    /// Its data directory is older than the cluster knows it.
    OlderDirectory,
    /// It was removed from the cluster.
    Removed,
    /// It is new, and its peers have not said yet that it may serve.
    AwaitsPeers,
}

impl NoPart {
    /// Why requests are refused.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OlderDirectory => {
                "the data directory of this node is older than its cluster knows it, so the node takes no part; its log \
                 says what to do"
            }
            Self::Removed => "this node was removed from its cluster, so it takes no part; its log says what to do",
            Self::AwaitsPeers => {
                "this node is new and waits for its peers (cluster.peers), so it takes no part yet; its log says what to \
                 do"
            }
        }
    }
}

/// Admits up to `max` requests at a time, and none after it is closed.
pub(crate) struct RequestLimiter {
    max: usize,
    /// Each thread counts in one of these, so that threads do not contend for one counter.
    under_way: [Count; SHARDS],
    state: AtomicU8,
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
            state: AtomicU8::new(OPEN),
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
        match self.state.load(Ordering::SeqCst) {
            OPEN => {}
            REFUSING_OLDER => return Err(takes_no_part(NoPart::OlderDirectory)),
            REFUSING_REMOVED => return Err(takes_no_part(NoPart::Removed)),
            REFUSING_NEW => return Err(takes_no_part(NoPart::AwaitsPeers)),
            _ => return Err(Error::Stopping),
        }
        if self.under_way() > self.max { Err(Error::Overload) } else { Ok(request) }
    }

    /// Number of active requests.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.iter().map(|Count(count)| count.load(Ordering::SeqCst)).sum()
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.load(Ordering::SeqCst) == OPEN
    }

    /// Refuses requests from now on, with the error that says why.
    pub(super) fn refuse(&self, why: NoPart) {
        let refusing = match why {
            NoPart::OlderDirectory => REFUSING_OLDER,
            NoPart::Removed => REFUSING_REMOVED,
            NoPart::AwaitsPeers => REFUSING_NEW,
        };
        // The error says that the node has stopped admitting already.
        let _ = self.state.compare_exchange(OPEN, refusing, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Admits requests again that were refused because the node awaited its peers.
    pub(super) fn admit(&self) {
        // The error says that they are admitted, or refused for another reason.
        let _ = self.state.compare_exchange(REFUSING_NEW, OPEN, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Why the node takes no part in its cluster, if it does not.
    pub(super) fn no_part(&self) -> Option<NoPart> {
        match self.state.load(Ordering::SeqCst) {
            REFUSING_OLDER => Some(NoPart::OlderDirectory),
            REFUSING_REMOVED => Some(NoPart::Removed),
            REFUSING_NEW => Some(NoPart::AwaitsPeers),
            _ => None,
        }
    }

    /// The error of requests that are not admitted in the present state; `None` while they are.
    pub(super) fn refusal(&self) -> Option<Error> {
        if self.is_open() {
            return None;
        }
        Some(self.no_part().map_or(Error::Stopping, takes_no_part))
    }

    /// Stops admitting requests. Returns true when this call closed the limiter.
    pub(super) fn close(&self) -> bool {
        self.state.swap(CLOSED, Ordering::SeqCst) != CLOSED
    }

    /// Waits until all requests have ended. Returns false when some are still active after `limit`.
    pub(super) fn wait_empty(&self, limit: Duration) -> bool {
        let mut guard = self.drained.lock();
        let drained = self.left.wait_while_for(&mut guard, |()| self.under_way() > 0, limit);
        !drained.timed_out() || self.under_way() == 0
    }
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let Self { limiter, count } = self;
        count.fetch_sub(1, Ordering::SeqCst);
        if limiter.state.load(Ordering::SeqCst) == CLOSED {
            // Taking the lock makes sure that a waiting thread is either before its check or
            // asleep.
            drop(limiter.drained.lock());
            limiter.left.notify_all();
        }
    }
}

#[cold]
fn takes_no_part(why: NoPart) -> Error {
    StoreFailure::new(StoreFailureKind::Closed, why.text()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn a_node_that_takes_no_part_refuses_requests_and_can_still_close() {
        for (why, text) in [(NoPart::OlderDirectory, "is older than"), (NoPart::Removed, "was removed")] {
            let limiter = RequestLimiter::new(1);
            limiter.refuse(why);
            let refused = limiter.enter().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("takes no part") && !limiter.is_open(), "{refused}");
            assert!(refused.contains(text), "{refused}");
            assert_eq!(limiter.refusal().map(|error| error.to_string()), Some(refused));
            assert!(limiter.close());
            limiter.refuse(why);
            assert_eq!(limiter.enter().err(), Some(Error::Stopping));
            assert_eq!(limiter.refusal(), Some(Error::Stopping));
        }
    }

    #[test]
    fn a_new_node_admits_requests_when_its_peers_have_said_so_and_no_other_refusal_ends() {
        let limiter = RequestLimiter::new(1);
        limiter.refuse(NoPart::AwaitsPeers);
        assert_eq!(limiter.no_part(), Some(NoPart::AwaitsPeers));
        let refused = limiter.enter().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("waits for its peers"), "{refused}");
        limiter.admit();
        assert!(limiter.enter().is_ok() && limiter.no_part().is_none());
        limiter.refuse(NoPart::OlderDirectory);
        limiter.admit();
        assert!(limiter.enter().is_err());
        assert_eq!(limiter.no_part(), Some(NoPart::OlderDirectory));
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

    proptest! {
        /// Riak's scenario: whatever comes and goes, requests are refused exactly while as many as
        /// are allowed are under way, and admitted again when they have ended.
        #[test]
        fn proxy_overload_recovery(max in 1usize..20, comes in prop::collection::vec(any::<bool>(), 0..200)) {
            let limiter = RequestLimiter::new(max);
            let mut inside = Vec::new();
            for comes in comes {
                if comes {
                    let entered = limiter.enter();
                    prop_assert_eq!(entered.is_ok(), inside.len() < max);
                    prop_assert!(entered.as_ref().err().is_none_or(|error| *error == Error::Overload));
                    inside.extend(entered.ok());
                } else {
                    drop(inside.pop());
                }
                prop_assert_eq!(limiter.under_way(), inside.len());
            }
            inside.clear();
            let all: Vec<_> = (0..max).map(|_| limiter.enter()).collect();
            prop_assert!(all.iter().all(Result::is_ok), "a drained node admits as many as before");
        }
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
