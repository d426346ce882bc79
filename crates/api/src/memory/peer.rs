//! The state of a connection's peer, as far as the budget needs it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

/// This value means that the node does not wait for the peer.
const NOT_WAITING: u64 = u64::MAX;

/// The peer of a connection. The connection updates this state without a lock.
#[derive(Debug)]
pub(super) struct Peer {
    /// The time since which the node has waited for the peer without progress, in milliseconds of
    /// the budget's clock.
    stalled_since_ms: AtomicU64,
    /// Whether the budget has told the connection to end.
    told_to_end: AtomicBool,
    wake: Notify,
}

impl Default for Peer {
    fn default() -> Self {
        let stalled_since_ms = AtomicU64::new(NOT_WAITING);
        Self { stalled_since_ms, told_to_end: AtomicBool::new(false), wake: Notify::new() }
    }
}

impl Peer {
    /// Notes that the node waits for the peer and that the peer has made progress now.
    pub(super) fn stalls_since(&self, now_ms: u64) {
        self.stalled_since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Notes that the node works on a request, so that the peer cannot make progress.
    pub(super) fn is_served(&self) {
        self.stalled_since_ms.store(NOT_WAITING, Ordering::Relaxed);
    }

    /// Whether the node waits for the peer.
    pub(super) fn is_waited_for(&self) -> bool {
        self.waited_for_since_ms().is_some()
    }

    /// The time since which the node has waited for the peer without progress.
    pub(super) fn waited_for_since_ms(&self) -> Option<u64> {
        let since_ms = self.stalled_since_ms.load(Ordering::Relaxed);
        (since_ms != NOT_WAITING).then_some(since_ms)
    }

    /// Tells the connection to give back the bytes that it holds.
    pub(super) fn tell_to_end(&self) {
        self.told_to_end.store(true, Ordering::Release);
        // Several parts of the connection may wait, and not all of them may be polled.
        self.wake.notify_waiters();
    }

    /// Notes that the connection has given back the bytes that it held.
    pub(super) fn has_given_back(&self) {
        self.told_to_end.store(false, Ordering::Release);
    }

    /// Whether the connection has been told to give back its bytes and still holds some of them.
    pub(super) fn is_told_to_end(&self) -> bool {
        self.told_to_end.load(Ordering::Acquire)
    }

    /// Completes when the connection has been told to give back the bytes that it holds.
    pub(super) async fn evicted(&self) {
        loop {
            let mut told = pin!(self.wake.notified());
            // This comes before the check, so that a notification after the check is not missed.
            told.as_mut().enable();
            if self.is_told_to_end() {
                return;
            }
            told.await;
        }
    }
}
