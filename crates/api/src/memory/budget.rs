//! The budget that all connections share.

use super::account::Account;
use super::holders::Holders;
use super::peer::Peer;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How often a connection that waits for memory checks whether peers have stalled meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The shortest time between two such checks of all connections together, in milliseconds.
const LOOK_PAUSE_MS: u64 = 5;

/// The size of a budget, and the time limits of the connections that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The highest number of bytes of all requests and answers in flight.
    pub bytes_max: u64,
    /// How long a peer may make no progress before its connection may be ended.
    pub stalled_after: Duration,
    /// How long a connection waits for memory before it is refused.
    pub wait_max: Duration,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { bytes_max: 1 << 30, stalled_after: Duration::from_secs(1), wait_max: Duration::from_secs(5) }
    }
}

/// There was no memory for a request or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("overload: the memory for requests in flight is exhausted")]
pub struct OutOfMemory;

/// The state of a budget, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// The size of the budget, in bytes.
    pub bytes_max: u64,
    /// The bytes that connections hold.
    pub bytes_used: u64,
    /// The number of connections that wait for memory.
    pub waiting: u64,
    /// The number of connections that were ended because others needed the memory that they held.
    pub evicted_total: u64,
    /// The number of requests that were refused because there was no memory.
    pub refused_total: u64,
}

/// A budget. Cloning is cheap, and clones share one budget.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Shared>);

struct Shared {
    limits: MemoryLimits,
    holders: Mutex<Holders>,
    /// Notified when bytes are given back.
    released: Notify,
    began: Instant,
    /// The time that tests add to the clock.
    #[cfg(test)]
    skew_ms: AtomicU64,
    accounts: AtomicU64,
    /// When a connection that waits may look for stalled peers again, in milliseconds of the
    /// budget's clock.
    next_look_ms: AtomicU64,
    evicted: AtomicU64,
    refused: AtomicU64,
}

/// A connection waits for memory until this is dropped.
struct Asking<'a> {
    budget: &'a Shared,
    account: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.budget.holders.lock().ask_no_more(self.account);
        // What was kept for this one is free for others.
        self.budget.released.notify_waiters();
    }
}

impl MemoryBudget {
    /// Creates a budget of which nothing is in use.
    pub fn new(limits: MemoryLimits) -> Self {
        Self(Arc::new(Shared {
            limits,
            holders: Mutex::new(Holders::new(limits.bytes_max)),
            released: Notify::new(),
            began: Instant::now(),
            #[cfg(test)]
            skew_ms: AtomicU64::new(0),
            accounts: AtomicU64::new(0),
            next_look_ms: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }))
    }

    /// Opens an account for a new connection.
    pub fn open_account(&self) -> Account {
        Account::new(self.clone(), self.0.accounts.fetch_add(1, Ordering::Relaxed))
    }

    /// The sizes and counts of the budget.
    pub fn status(&self) -> MemoryStatus {
        let holders = self.0.holders.lock();
        MemoryStatus {
            bytes_max: self.0.limits.bytes_max,
            bytes_used: holders.bytes_used(),
            waiting: holders.waiting() as u64,
            evicted_total: self.0.evicted.load(Ordering::Relaxed),
            refused_total: self.0.refused.load(Ordering::Relaxed),
        }
    }

    /// The milliseconds since the budget was created.
    pub(super) fn now_ms(&self) -> u64 {
        let now_ms = self.0.began.elapsed().as_millis() as u64;
        #[cfg(test)]
        let now_ms = now_ms + self.0.skew_ms.load(Ordering::Relaxed);
        now_ms
    }

    #[cfg(test)]
    pub(super) fn pass(&self, ms: u64) {
        self.0.skew_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(super) fn take(&self, account: u64, peer: &Arc<Peer>, bytes: u64) -> bool {
        self.0.holders.lock().take(account, peer, bytes)
    }

    pub(super) fn give(&self, account: u64, bytes: u64) {
        self.0.holders.lock().give(account, bytes);
        self.0.released.notify_waiters();
    }

    /// Calls `take` until it succeeds. Between two calls, connections are ended according to the
    /// rule (`holders.rs`), so that `bytes` become free.
    pub(super) async fn wait_for(
        &self,
        account: u64,
        peer: &Arc<Peer>,
        bytes: u64,
        take: impl Fn() -> bool,
    ) -> Result<(), OutOfMemory> {
        let mut got = Err(OutOfMemory);
        if self.0.holders.lock().ask(account, peer, bytes) {
            let _asking = Asking { budget: &self.0, account };
            got = self.wait(account, peer, bytes, take).await;
        }
        // A connection that was ended has already been counted.
        if got.is_err() && !peer.is_told_to_end() {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
        }
        got
    }

    async fn wait(&self, account: u64, peer: &Peer, bytes: u64, take: impl Fn() -> bool) -> Result<(), OutOfMemory> {
        let deadline = Instant::now() + self.0.limits.wait_max;
        // An account that itself holds most of the budget could wait for ever.
        while self.0.holders.lock().held(account).saturating_add(bytes) <= self.0.limits.bytes_max {
            let mut released = pin!(self.0.released.notified());
            // This comes before the attempt, so that bytes that are given back after it are not
            // missed.
            released.as_mut().enable();
            if take() {
                return Ok(());
            }
            self.relieve();
            let now = Instant::now();
            if now >= deadline {
                break;
            }
            tokio::select! {
                () = released => {}
                () = peer.evicted() => break,
                () = sleep_until(deadline.min(now + LOOK_INTERVAL)) => {}
            }
        }
        Err(OutOfMemory)
    }

    fn relieve(&self) {
        // Many connections may wait, and each check goes over all holders.
        let (now_ms, next_ms) = (self.now_ms(), self.0.next_look_ms.load(Ordering::Relaxed));
        if now_ms < next_ms {
            return;
        }
        self.0.next_look_ms.store(now_ms + LOOK_PAUSE_MS, Ordering::Relaxed);
        let stalled_ms = u64::try_from(self.0.limits.stalled_after.as_millis()).unwrap_or(u64::MAX);
        let told = self.0.holders.lock().relieve(now_ms, stalled_ms);
        if told > 0 {
            self.0.evicted.fetch_add(told as u64, Ordering::Relaxed);
            tracing::debug!(connections = told, "memory is short: connections are ended");
        }
    }
}
