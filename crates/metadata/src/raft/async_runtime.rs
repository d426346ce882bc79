//! openraft's runtime, over [`ombak_runtime::Runtime`].
//!
//! openraft asks a type for its clock, timers, tasks and random numbers, not a value: the functions
//! of its trait are static. So each thread remembers the runtime of the task that it polls just
//! now. [`InRuntime`] sets it for the duration of each poll, and [`OmbakRuntime::spawn`] wraps each
//! new task in it. A caller of openraft wraps its own future with [`in_runtime`].

use futures_util::FutureExt;
use ombak_runtime::{BoxFuture, Runtime, RuntimeExt};
use openraft::AsyncRuntime;
use openraft::async_runtime::AsyncOneshotSendExt;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Runtime>>> = const { RefCell::new(None) };
}

/// The runtime of the task that this thread polls.
#[expect(clippy::expect_used, reason = "every future of openraft is polled inside InRuntime: this module sees to it")]
fn current() -> Arc<dyn Runtime> {
    CURRENT.with_borrow(Clone::clone).expect("a future of openraft is polled outside of its runtime")
}

/// Puts the previous runtime back when a poll ends, also by a panic.
struct Restore(Option<Arc<dyn Runtime>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// A future during whose polls the static functions of [`OmbakRuntime`] reach a certain runtime.
pub(crate) struct InRuntime<F> {
    runtime: Arc<dyn Runtime>,
    future: Pin<Box<F>>,
}

/// Lets `future` find `runtime`.
pub(crate) fn in_runtime<F: Future>(runtime: &Arc<dyn Runtime>, future: F) -> InRuntime<F> {
    InRuntime { runtime: runtime.clone(), future: Box::pin(future) }
}

impl<F: Future> Future for InRuntime<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let _restore = Restore(CURRENT.replace(Some(this.runtime.clone())));
        this.future.as_mut().poll(cx)
    }
}

/// The type that openraft asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OmbakRuntime;

/// A time of the current runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RaftInstant(Instant);

impl openraft::Instant for RaftInstant {
    fn now() -> Self {
        Self(current().now())
    }
}

impl Add<Duration> for RaftInstant {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0 + by)
    }
}

impl AddAssign<Duration> for RaftInstant {
    fn add_assign(&mut self, by: Duration) {
        self.0 += by;
    }
}

impl Sub<Duration> for RaftInstant {
    type Output = Self;
    fn sub(self, by: Duration) -> Self {
        Self(self.0 - by)
    }
}

impl Sub for RaftInstant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }
}

impl SubAssign<Duration> for RaftInstant {
    fn sub_assign(&mut self, by: Duration) {
        self.0 -= by;
    }
}

/// A timer. The lock is never contended: it makes the timer `Sync`, which openraft asks for.
pub(crate) struct Sleep(Mutex<BoxFuture<'static, ()>>);

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.get_mut().as_mut().poll(cx)
    }
}

/// The time limit passed before the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time limit has passed")]
pub(crate) struct Elapsed;

/// Work with a time limit.
pub(crate) struct Timeout<F> {
    work: Pin<Box<F>>,
    limit: Sleep,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(done) = this.work.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        Pin::new(&mut this.limit).poll(cx).map(|()| Err(Elapsed))
    }
}

/// Why a task has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JoinError {
    /// The task panicked.
    #[error("the task panicked")]
    Panicked,
    /// The runtime dropped the task.
    #[error("the task was dropped before it ended")]
    Dropped,
}

/// The result of a task, when it has ended.
pub(crate) struct JoinHandle<T>(oneshot::Receiver<Result<T, JoinError>>);

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|end| end.unwrap_or(Err(JoinError::Dropped)))
    }
}

/// The random numbers of the current runtime.
pub(crate) struct RaftRng(Arc<dyn Runtime>);

impl rand_core::RngCore for RaftRng {
    fn next_u32(&mut self) -> u32 {
        self.next_u64() as u32
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    #[expect(clippy::expect_used, reason = "the trait has no error; nothing that a node does works without randomness")]
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_random(bytes).expect("the machine gives random bytes");
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

/// The sending half of a channel for one value.
pub(crate) struct OneshotSender<T>(oneshot::Sender<T>);

impl<T> fmt::Debug for OneshotSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneshotSender")
    }
}

impl<T: Send> AsyncOneshotSendExt<T> for OneshotSender<T> {
    fn send(self, value: T) -> Result<(), T> {
        self.0.send(value)
    }
}

impl AsyncRuntime for OmbakRuntime {
    type JoinError = JoinError;
    type JoinHandle<T: Send + 'static> = JoinHandle<T>;
    type Sleep = Sleep;
    type Instant = RaftInstant;
    type TimeoutError = Elapsed;
    type Timeout<R, T: Future<Output = R> + Send> = Timeout<T>;
    type ThreadLocalRng = RaftRng;
    type OneshotSender<T: Send> = OneshotSender<T>;
    type OneshotReceiver<T: Send> = oneshot::Receiver<T>;
    type OneshotReceiverError = oneshot::error::RecvError;

    fn spawn<T>(future: T) -> JoinHandle<T::Output>
    where
        T: Future + Send + 'static,
        T::Output: Send + 'static,
    {
        let runtime = current();
        let (give, take) = oneshot::channel();
        let task = async move {
            let end = AssertUnwindSafe(future).catch_unwind().await;
            // Nobody may wait for the end.
            let _ = give.send(end.map_err(|_| JoinError::Panicked));
        };
        runtime.spawn(Box::pin(in_runtime(&runtime, task)));
        JoinHandle(take)
    }

    fn sleep(duration: Duration) -> Sleep {
        Sleep(Mutex::new(current().sleep(duration)))
    }

    fn sleep_until(deadline: RaftInstant) -> Sleep {
        Sleep(Mutex::new(current().sleep_until(deadline.0)))
    }

    fn timeout<R, F: Future<Output = R> + Send>(duration: Duration, future: F) -> Timeout<F> {
        Timeout { work: Box::pin(future), limit: Self::sleep(duration) }
    }

    fn timeout_at<R, F: Future<Output = R> + Send>(deadline: RaftInstant, future: F) -> Timeout<F> {
        Timeout { work: Box::pin(future), limit: Self::sleep_until(deadline) }
    }

    fn is_panic(error: &JoinError) -> bool {
        *error == JoinError::Panicked
    }

    fn thread_rng() -> RaftRng {
        RaftRng(current())
    }

    fn oneshot<T: Send>() -> (OneshotSender<T>, oneshot::Receiver<T>) {
        let (give, take) = oneshot::channel();
        (OneshotSender(give), take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_runtime::TokioRuntime;

    fn run<F: Future>(future: F) -> F::Output {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        tokio.block_on(in_runtime(&runtime, future))
    }

    #[test]
    fn a_task_finds_the_runtime_of_its_parent() {
        let deep = run(async { OmbakRuntime::spawn(async { OmbakRuntime::spawn(async { 7 }).await }).await });
        assert_eq!(deep, Ok(Ok(7)));
        assert!(CURRENT.with_borrow(Option::is_none), "nothing stays behind");
    }

    #[test]
    fn a_panic_is_told_from_a_dropped_task() {
        let end = run(async { OmbakRuntime::spawn(async { panic!("on purpose") }).await });
        let end: Result<(), JoinError> = end;
        assert!(OmbakRuntime::is_panic(&end.unwrap_err()));
        let handle = run(futures_util::future::lazy(|_| OmbakRuntime::spawn(std::future::pending::<()>())));
        let end = run(handle);
        assert_eq!(end, Err(JoinError::Dropped));
    }

    #[test]
    fn a_time_limit_passes_only_when_the_work_is_slower() {
        run(async {
            let slow = OmbakRuntime::sleep(Duration::from_secs(3600));
            assert_eq!(OmbakRuntime::timeout(Duration::from_millis(1), slow).await, Err(Elapsed));
            let quick = OmbakRuntime::sleep(Duration::from_millis(1));
            assert_eq!(OmbakRuntime::timeout(Duration::from_secs(3600), quick).await, Ok(()));
        });
    }
}
