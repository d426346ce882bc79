//! Timers.

use super::event::Event;
use super::host::HostKey;
use super::state::Inner;
use parking_lot::Mutex;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Where a sleeping task leaves its waker.
#[derive(Default)]
pub(crate) struct Timer {
    waker: Mutex<Option<Waker>>,
}

impl Timer {
    /// Ends the sleep. Returns whether anybody still sleeps.
    pub(super) fn fire(&self) -> bool {
        let waker = self.waker.lock().take();
        waker.map(Waker::wake).is_some()
    }
}

/// Sleeps until a moment.
pub(super) struct Sleep {
    world: Arc<Inner>,
    on: HostKey,
    at_ns: u64,
    timer: Option<Arc<Timer>>,
}

impl Sleep {
    pub(super) const fn new(world: Arc<Inner>, on: HostKey, at_ns: u64) -> Self {
        Self { world, on, at_ns, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.world.clock.now_ns() >= self.at_ns {
            return Poll::Ready(());
        }
        let waker = Some(cx.waker().clone());
        if let Some(timer) = &self.timer {
            *timer.waker.lock() = waker;
            return Poll::Pending;
        }
        let timer = Arc::new(Timer { waker: Mutex::new(waker) });
        self.world.schedule(self.at_ns, Event::Timer(self.on, timer.clone()));
        self.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            drop(timer.waker.lock().take());
        }
    }
}
