//! The memory that one connection holds.

use super::ALLOWANCE_BYTES;
use super::budget::{MemoryBudget, OutOfMemory};
use super::peer::Peer;
use futures_util::future::BoxFuture;
use ombak_kv::MemoryReservation;
use ombak_runtime::Tenant;
use ombak_types::Error;
use parking_lot::Mutex;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A peer makes progress when it has moved this many bytes, or this share of the bytes that its
/// connection holds, whichever is more. A peer that moves a byte now and then counts as stalled.
const PROGRESS_BYTES_MIN: u64 = 4 << 10;
const PROGRESS_SHARE: u64 = 1024;

/// What an address counts as. A client of version 6 usually has all addresses with the same first
/// half.
pub(crate) fn address_group(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => u64::try_from(u128::from(address) >> 64).unwrap_or(u64::MAX),
    }
}

/// The account of one connection. Only the bytes beyond [`ALLOWANCE_BYTES`] are taken from the
/// budget.
pub struct Account {
    budget: MemoryBudget,
    number: u64,
    /// What the address of the client counts as, where addresses have shares.
    address_group: u64,
    peer: Arc<Peer>,
    /// The bytes that the connection holds, including the allowance.
    held: Mutex<u64>,
    /// The bytes that the peer has moved since its last progress.
    moved: AtomicU64,
    /// The part of `held` that belongs to the answer to the current request. It is used where
    /// requests are answered one after the other.
    answers: AtomicU64,
}

impl Account {
    pub(super) fn new(budget: MemoryBudget, number: u64) -> Self {
        Self {
            budget,
            number,
            address_group: 0,
            peer: Arc::default(),
            held: Mutex::new(0),
            moved: AtomicU64::new(0),
            answers: AtomicU64::new(0),
        }
    }

    /// The account of a connection from this address.
    #[must_use]
    pub fn of_address(mut self, address: IpAddr) -> Self {
        self.address_group = address_group(address);
        self
    }

    /// Who the connection is, where connections and addresses have shares of work.
    pub fn tenant(&self) -> Tenant {
        Tenant { group: self.address_group, member: self.number }
    }

    /// Creates a lease for a part of the connection. It holds no bytes yet.
    pub fn lease(&self) -> Lease<'_> {
        Lease { account: self, bytes: 0 }
    }

    /// Creates a reservation for an object that is read to answer the current request.
    pub fn answer_room(&self) -> AnswerRoom<'_> {
        AnswerRoom { account: self, bytes: 0 }
    }

    /// Adds bytes to those that the answer to the current request holds.
    pub async fn hold_answer(&self, bytes: u64) -> Result<(), OutOfMemory> {
        self.grow(bytes).await?;
        self.answers.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back the bytes of the answer after it has been sent.
    #[inline]
    pub fn release_answer(&self) {
        if self.answers.load(Ordering::Relaxed) > 0 {
            self.shrink(self.answers.swap(0, Ordering::Relaxed));
        }
    }

    /// Notes that the node waits for the peer from now on, either for the rest of a request or
    /// until the peer accepts an answer.
    pub fn waits_for_peer(&self) {
        if !self.peer.is_waited_for() {
            self.moved.store(0, Ordering::Relaxed);
            self.peer.stalls_since(self.budget.now_ms());
        }
    }

    /// Notes that the peer has sent or accepted this many bytes.
    pub fn peer_moved(&self, bytes: usize) {
        if !self.peer.is_waited_for() {
            return;
        }
        let moved = self.moved.load(Ordering::Relaxed) + bytes as u64;
        let counts = moved >= PROGRESS_BYTES_MIN.max(*self.held.lock() / PROGRESS_SHARE);
        self.moved.store(if counts { 0 } else { moved }, Ordering::Relaxed);
        if counts {
            self.peer.stalls_since(self.budget.now_ms());
        }
    }

    /// Notes that the node works on a request of the peer, or waits for the next request.
    pub fn serves_peer(&self) {
        self.peer.is_served();
    }

    /// Completes when the connection has to end, because other connections need the memory that it
    /// holds.
    pub async fn evicted(&self) {
        self.peer.evicted().await;
    }

    fn try_grow(&self, bytes: u64) -> bool {
        let mut held = self.held.lock();
        let beyond = beyond_allowance(*held + bytes) - beyond_allowance(*held);
        let taken = beyond == 0 || self.budget.take(self.number, &self.peer, beyond);
        if taken {
            *held += bytes;
        }
        taken
    }

    async fn grow(&self, bytes: u64) -> Result<(), OutOfMemory> {
        if self.try_grow(bytes) {
            return Ok(());
        }
        let beyond = {
            let held = self.held.lock();
            beyond_allowance(*held + bytes) - beyond_allowance(*held)
        };
        self.budget.wait_for(self.number, &self.peer, beyond, || self.try_grow(bytes)).await
    }

    fn shrink(&self, bytes: u64) {
        let mut held = self.held.lock();
        let beyond = beyond_allowance(*held) - beyond_allowance(*held - bytes);
        *held -= bytes;
        if beyond > 0 {
            self.budget.give(self.number, beyond);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.release_answer();
    }
}

fn beyond_allowance(bytes: u64) -> u64 {
    bytes.saturating_sub(ALLOWANCE_BYTES as u64)
}

/// The bytes that one part of a connection holds. Dropping the lease gives them back.
pub struct Lease<'a> {
    account: &'a Account,
    bytes: u64,
}

impl Lease<'_> {
    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the number of bytes. If the number grows, this may wait for memory. After an error
    /// the lease is unchanged.
    pub async fn resize(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        if bytes > self.bytes {
            self.account.grow(bytes - self.bytes).await?;
        } else if bytes < self.bytes {
            self.account.shrink(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Changes the number of bytes if that is possible without waiting. Returns whether it was.
    pub fn resize_now(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if !self.account.try_grow(more) {
            return false;
        }
        self.account.shrink(self.bytes + more - bytes);
        self.bytes = bytes;
        true
    }

    /// Adds `bytes` to the lease. This may wait for memory.
    pub async fn add(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        self.resize(self.bytes + bytes).await
    }

    /// Takes over the bytes of another lease of the connection.
    pub fn merge(&mut self, mut other: Self) {
        self.bytes += mem::take(&mut other.bytes);
    }

    /// Keeps the bytes until the answer to the current request has been sent
    /// ([`Account::release_answer`]).
    pub fn keep_for_answer(mut self) {
        self.account.answers.fetch_add(mem::take(&mut self.bytes), Ordering::Relaxed);
    }

    /// Keeps the bytes for a part of the answer that is sent after the request was worked on.
    /// `account` is that of the lease.
    pub fn keep_beyond(mut self, account: &Arc<Account>) -> Kept {
        debug_assert!(std::ptr::eq(self.account, &**account), "the lease is of another connection");
        Kept { account: account.clone(), bytes: mem::take(&mut self.bytes) }
    }

    /// Gives all bytes back.
    pub fn clear(&mut self) {
        if self.bytes > 0 {
            self.account.shrink(self.bytes);
            self.bytes = 0;
        }
    }
}

impl MemoryReservation for Lease<'_> {
    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<(), Error>> {
        let bytes = bytes.max(self.bytes);
        Box::pin(async move { self.resize(bytes).await.map_err(|_| Error::Overload) })
    }
}

/// The bytes that a part of an answer holds until it has been sent. Dropping it gives them back.
pub struct Kept {
    account: Arc<Account>,
    bytes: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.account.shrink(self.bytes);
    }
}

/// The memory for one read of the current request. The bytes stay with the answer of the
/// connection.
pub struct AnswerRoom<'a> {
    account: &'a Account,
    bytes: u64,
}

impl MemoryReservation for AnswerRoom<'_> {
    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let more = bytes.saturating_sub(self.bytes);
            self.account.hold_answer(more).await.map_err(|_| Error::Overload)?;
            self.bytes += more;
            Ok(())
        })
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemoryLimits;
    use super::*;
    use futures_util::FutureExt;
    use std::time::Duration;

    const FREE: u64 = ALLOWANCE_BYTES as u64;
    const PATIENCE: Duration = Duration::from_secs(20);

    fn budget(bytes_max: u64, stalled_after: Duration, wait_max: Duration) -> MemoryBudget {
        MemoryBudget::new(MemoryLimits { bytes_max, stalled_after, wait_max })
    }

    #[tokio::test]
    async fn only_what_goes_beyond_the_allowance_is_taken_and_all_of_it_is_given_back() {
        let budget = budget(1000, Duration::ZERO, Duration::ZERO);
        let used = || budget.status().bytes_used;
        let account = budget.open_account();
        let (mut request, mut answer) = (account.lease(), account.lease());
        request.resize(FREE).await.unwrap();
        assert_eq!(used(), 0);
        answer.resize(600).await.unwrap();
        assert_eq!(used(), 600);
        request.resize(FREE + 400).await.unwrap();
        assert_eq!(used(), 1000);
        request.clear();
        assert_eq!(used(), 0);
        drop(answer);
        request.resize(FREE + 1000).await.unwrap();
        assert_eq!((used(), request.resize(FREE + 1001).await), (1000, Err(OutOfMemory)));
        assert_eq!((request.bytes(), budget.status().refused_total), (FREE + 1000, 1));
        drop(request);
        assert_eq!(used(), 0);
    }

    #[tokio::test]
    async fn a_stalled_connection_loses_what_it_holds_to_one_that_asks() {
        let budget = budget(1000, Duration::ZERO, PATIENCE);
        let (stalled, asking) = (budget.open_account(), budget.open_account());
        let mut held = stalled.lease();
        held.resize(FREE + 900).await.unwrap();
        stalled.waits_for_peer();
        let mut wanted = asking.lease();
        let (asked, ()) = tokio::join!(wanted.resize(FREE + 500), async {
            stalled.evicted().await;
            drop(held);
        });
        assert_eq!(asked, Ok(()));
        assert_eq!((budget.status().bytes_used, budget.status().evicted_total), (500, 1));
    }

    #[tokio::test]
    async fn every_part_of_a_connection_sees_that_it_has_to_end() {
        let budget = budget(1000, Duration::ZERO, PATIENCE);
        let (stalled, asking) = (budget.open_account(), budget.open_account());
        let mut held = stalled.lease();
        held.resize(FREE + 900).await.unwrap();
        stalled.waits_for_peer();
        // This part of the connection waits first and is not polled any more.
        let mut other = Box::pin(stalled.evicted());
        assert_eq!((&mut other).now_or_never(), None);
        let mut wanted = asking.lease();
        let (asked, ()) = tokio::join!(wanted.resize(FREE + 500), async {
            stalled.evicted().await;
            drop(held);
        });
        assert_eq!(asked, Ok(()));
    }

    #[tokio::test]
    async fn a_connection_that_is_served_keeps_what_it_holds() {
        let budget = budget(1000, Duration::ZERO, Duration::ZERO);
        let (served, asking) = (budget.open_account(), budget.open_account());
        let mut held = served.lease();
        held.resize(FREE + 900).await.unwrap();
        served.waits_for_peer();
        served.serves_peer();
        assert_eq!(asking.lease().resize(FREE + 500).await, Err(OutOfMemory));
        assert_eq!(served.evicted().now_or_never(), None);
    }

    #[tokio::test]
    async fn a_peer_that_moves_a_byte_now_and_then_stalls_all_the_same() {
        let budget = budget(1 << 20, Duration::from_secs(3600), Duration::ZERO);
        let (slow, quick, asking) = (budget.open_account(), budget.open_account(), budget.open_account());
        let mut held = (slow.lease(), quick.lease());
        for (lease, account) in [(&mut held.0, &slow), (&mut held.1, &quick)] {
            lease.resize(FREE + 400_000).await.unwrap();
            account.waits_for_peer();
        }
        for _ in 0..4 {
            budget.pass(1_000_000);
            slow.peer_moved(1);
            quick.peer_moved(PROGRESS_BYTES_MIN as usize);
        }
        assert_eq!(asking.lease().resize(FREE + 500_000).await, Err(OutOfMemory));
        assert_eq!((slow.evicted().now_or_never(), quick.evicted().now_or_never()), (Some(()), None));
    }

    #[tokio::test]
    async fn a_large_request_is_not_refused_while_another_peer_is_about_to_count_as_stalled() {
        let budget = budget(1000, Duration::from_millis(400), PATIENCE);
        budget.pass(1_000);
        let (honest, stalling) = (budget.open_account(), budget.open_account());
        let (mut wanted, mut held) = (honest.lease(), stalling.lease());
        wanted.resize(FREE + 500).await.unwrap();
        held.resize(FREE + 400).await.unwrap();
        stalling.waits_for_peer();
        let stalls = async {
            // The peer makes its last progress while the honest connection already waits.
            tokio::time::sleep(Duration::from_millis(200)).await;
            stalling.peer_moved(PROGRESS_BYTES_MIN as usize);
            tokio::time::timeout(PATIENCE, stalling.evicted()).await.expect("the other connection still asks");
            drop(held);
        };
        let (asked, ()) = tokio::join!(wanted.resize(FREE + 900), stalls);
        assert_eq!((asked, budget.status().bytes_used), (Ok(()), 900));
    }

    #[tokio::test]
    async fn memory_that_is_given_back_goes_to_one_that_waits() {
        let budget = budget(1000, PATIENCE, PATIENCE);
        let (first, second) = (budget.open_account(), budget.open_account());
        let (mut held, mut wanted) = (first.lease(), second.lease());
        held.resize(FREE + 1000).await.unwrap();
        let (asked, ()) = tokio::join!(wanted.resize(FREE + 1000), async { drop(held) });
        assert_eq!((asked, budget.status().bytes_used), (Ok(()), 1000));
    }

    #[tokio::test]
    async fn more_than_there_is_altogether_is_refused_at_once() {
        let budget = budget(1000, PATIENCE, Duration::from_secs(3600));
        let account = budget.open_account();
        assert_eq!(account.lease().resize(FREE + 1001).now_or_never(), Some(Err(OutOfMemory)));
    }
}
