//! The threads on which passwords are compared with stored hashes.
//!
//! What it is: a stored hash is slow on purpose, so it is computed neither on a network thread nor
//! beside many others. What waits is bounded, in number and in time, and clients take turns
//! ([`WaitingChecks`]).
//!
//! What it is not: it knows neither passwords nor hashes.
//!
//! Invariants:
//! * A check that ends in a panic is an answer of its own, never a yes, and its thread goes on.
//! * A check whose client has gone waits no more.

use super::waiting_checks::{Added, Client, Ticket, WaitingChecks};
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a check waits at most.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// How many threads there are at most.
const THREADS_MAX: usize = 4;
/// The stack of a thread, in bytes. The memory of a hash is on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// Work whose answer somebody waits for.
type Check = Box<dyn FnOnce() + Send>;

/// The threads on which passwords are compared with stored hashes. They start with the first check.
#[derive(Debug)]
pub(super) struct PasswordChecks {
    shared: Arc<Shared>,
    /// How long a check waits at most.
    wait_max: Duration,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        Self { shared: Arc::default(), wait_max: WAIT_MAX }
    }
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// How many threads there are. What the machine allows may change while the node runs.
    threads_max: usize,
}

impl Default for Shared {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: Condvar::default(), threads_max: threads_max() }
    }
}

#[derive(Default)]
struct State {
    waiting: WaitingChecks<Check>,
    threads: usize,
    /// Threads end when nobody can ask for a check any more.
    has_ended: bool,
}

/// Why there is no answer to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckFailed {
    /// Too many wait.
    NoPlace,
    /// It ended in a panic.
    Panicked,
}

/// A check that waits. It waits no more when this is dropped.
struct Waits<'a> {
    shared: &'a Shared,
    ticket: Ticket,
}

impl PasswordChecks {
    /// Runs a check on one of the threads. If this future is dropped before the check has begun, it
    /// does not begin.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        client: Client,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CheckFailed> {
        let (tell, told) = oneshot::channel();
        let job = Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(check)).map_err(|_| {
                tracing::error!("a check of a password panicked: its client is refused");
                CheckFailed::Panicked
            });
            // The client may have gone meanwhile.
            let _ = tell.send(outcome);
        });
        let _waits = self.shared.add(client, job)?;
        match timeout(self.wait_max, told).await {
            Ok(Ok(outcome)) => outcome,
            // Its place went to another client, or it has waited for too long.
            Ok(Err(_)) | Err(_) => Err(CheckFailed::NoPlace),
        }
    }

    /// How many checks wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.shared.state.lock().waiting.len()
    }
}

impl Shared {
    fn add(self: &Arc<Self>, client: Client, check: Check) -> Result<Waits<'_>, CheckFailed> {
        let mut state = self.state.lock();
        let added = state.waiting.add(client, check);
        let missing = self.threads_max.saturating_sub(state.threads);
        state.threads += missing;
        drop(state);
        (0..missing).for_each(|number| self.start_thread(number));
        self.changed.notify_one();
        // What a check has with it is dropped here, and not under the lock.
        match added {
            Added::Waits(ticket, _displaced) => Ok(Waits { shared: self, ticket }),
            Added::Refused(_) => Err(CheckFailed::NoPlace),
        }
    }

    /// Starts a thread. If that fails, the next check tries again.
    fn start_thread(self: &Arc<Self>, number: usize) {
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("ombak-login-{number}")).stack_size(STACK_BYTES);
        if let Err(error) = thread.spawn(move || shared.work()) {
            tracing::error!(%error, "a thread that compares passwords cannot be created");
            self.state.lock().threads -= 1;
        }
    }

    fn work(&self) {
        while let Some(check) = self.next() {
            check();
        }
    }

    fn next(&self) -> Option<Check> {
        let mut state = self.state.lock();
        loop {
            if state.has_ended {
                return None;
            }
            if let Some(check) = state.waiting.take() {
                return Some(check);
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Half of the processors, so that the others serve those who have logged in.
fn threads_max() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2).min(THREADS_MAX)
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let taken_back = self.shared.state.lock().waiting.remove(&self.ticket);
        // It is dropped without the lock.
        drop(taken_back);
    }
}

impl Drop for PasswordChecks {
    fn drop(&mut self) {
        self.shared.state.lock().has_ended = true;
        self.shared.changed.notify_all();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::client_network::ClientNetwork;
    use crate::security::guess_key::GuessKey;
    use crate::security::waiting_checks::OF_CLIENT_MAX;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    fn client(last: u8) -> Client {
        let network = ClientNetwork::of(Ipv4Addr::new(10, 0, 0, last).into());
        Client { is_proven: false, key: GuessKey::of_network(network) }
    }

    /// Checks that keep all threads busy until the returned end of the channel is dropped.
    async fn occupied(checks: &Arc<PasswordChecks>) -> mpsc::SyncSender<()> {
        let (closed, gate) = mpsc::sync_channel::<()>(0);
        let (gate, begun) = (Arc::new(Mutex::new(gate)), Arc::new(AtomicUsize::new(0)));
        for number in 0..threads_max() {
            let (checks, gate, begun) = (checks.clone(), gate.clone(), begun.clone());
            let waits = move || {
                begun.fetch_add(1, Ordering::SeqCst);
                let _ = gate.lock().recv();
            };
            tokio::spawn(async move { checks.run(client(100 + number as u8), waits).await });
        }
        while begun.load(Ordering::SeqCst) < threads_max() {
            tokio::task::yield_now().await;
        }
        closed
    }

    #[tokio::test]
    async fn one_address_does_not_take_all_places_and_places_come_back() {
        let checks = Arc::new(PasswordChecks::default());
        let closed = occupied(&checks).await;
        let begin = |last: u8| {
            let checks = checks.clone();
            tokio::spawn(async move { checks.run(client(last), || true).await })
        };
        let of_one: Vec<_> = (0..OF_CLIENT_MAX + 1).map(|_| begin(1)).collect();
        while checks.waiting() < OF_CLIENT_MAX {
            tokio::task::yield_now().await;
        }
        let of_another = begin(2);
        while checks.waiting() < OF_CLIENT_MAX + 1 {
            tokio::task::yield_now().await;
        }
        drop(closed);
        let mut answers = Vec::new();
        for check in of_one {
            answers.push(check.await.unwrap());
        }
        assert_eq!(answers.iter().filter(|answer| **answer == Err(CheckFailed::NoPlace)).count(), 1);
        assert_eq!(of_another.await.unwrap(), Ok(true));
        assert_eq!(checks.run(client(1), || false).await, Ok(false));
        assert_eq!(checks.waiting(), 0);
    }

    #[tokio::test]
    async fn threads_outlive_checks_that_panic() {
        let checks = Arc::new(PasswordChecks::default());
        for _ in 0..3 * THREADS_MAX {
            let broken: Result<bool, _> = checks.run(client(1), || panic!("on purpose")).await;
            assert_eq!(broken, Err(CheckFailed::Panicked));
        }
        assert_eq!(checks.run(client(1), || true).await, Ok(true));
    }

    #[tokio::test]
    async fn a_check_does_not_wait_for_a_client_that_has_gone() {
        let checks = Arc::new(PasswordChecks::default());
        let closed = occupied(&checks).await;
        let (ran, other) = (Arc::new(AtomicUsize::new(0)), checks.clone());
        let counts = ran.clone();
        let gone =
            tokio::spawn(async move { other.run(client(1), move || counts.fetch_add(1, Ordering::SeqCst)).await });
        while checks.waiting() < 1 {
            tokio::task::yield_now().await;
        }
        gone.abort();
        assert!(gone.await.is_err());
        assert_eq!(checks.waiting(), 0);
        drop(closed);
        assert_eq!(checks.run(client(1), || true).await, Ok(true));
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn nobody_waits_for_long() {
        let checks = PasswordChecks { shared: Arc::default(), wait_max: Duration::from_millis(20) };
        let checks = Arc::new(checks);
        let closed = occupied(&checks).await;
        let answer = timeout(Duration::from_secs(10), checks.run(client(1), || true)).await;
        assert_eq!(answer, Ok(Err(CheckFailed::NoPlace)));
        assert_eq!(checks.waiting(), 0);
        drop(closed);
    }
}
