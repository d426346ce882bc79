//! What callers, services and the driver of a connection share.

use super::call::{Call, ItemStream, Slot};
use crate::counters::PeerCounters;
use crate::error::PeerError;
use crate::frame::{AnswerStatus, GoodbyeReason, StreamId};
use crate::mux::{Body, ItemRefused, Mux, Request};
use ombak_runtime::Runtime;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A clock does not show later moments than this: ten years after its origin.
const LATEST_US: i64 = 10 * 365 * 86_400_000_000;

/// The monotonic clock of a node as a number, the same for all its connections.
pub(crate) struct NodeClock {
    runtime: Arc<dyn Runtime>,
    origin: Instant,
}

impl NodeClock {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        let origin = runtime.now();
        Self { runtime, origin }
    }

    /// Microseconds since the origin.
    pub(crate) fn now_us(&self) -> i64 {
        self.us_of(self.runtime.now())
    }

    pub(crate) fn us_of(&self, at: Instant) -> i64 {
        let us = |duration: Duration| {
            let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
            seconds.saturating_mul(1_000_000).saturating_add(i64::from(duration.subsec_micros()))
        };
        match at.checked_duration_since(self.origin) {
            Some(after) => us(after),
            None => us(self.origin.duration_since(at)).saturating_neg(),
        }
    }

    /// The moment with this number, or the origin if it lies before that.
    pub(crate) fn instant_of(&self, us: i64) -> Instant {
        // A deadline that lies beyond what the clock can show is as good as a day.
        let us = if us <= LATEST_US { us } else { self.now_us().saturating_add(86_400_000_000).min(us) };
        self.origin + Duration::from_micros(u64::try_from(us).unwrap_or(0))
    }

    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }
}

/// The shared part of a connection.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// It changes once, under the lock of the state.
    is_closed: AtomicBool,
    counters: Arc<PeerCounters>,
}

pub(super) struct State {
    pub(super) mux: Mux<Arc<Slot>>,
    /// Wakes the driver. It is there only while the driver waits: a driver that runs looks for
    /// output before it waits again.
    pub(super) idle_driver: Option<Waker>,
    /// Services that wait for room for an item.
    pub(super) producers: BTreeMap<StreamId, Waker>,
}

impl Shared {
    pub(crate) fn new(mux: Mux<Arc<Slot>>, counters: Arc<PeerCounters>) -> Self {
        let state = State { mux, idle_driver: None, producers: BTreeMap::new() };
        Self { state: Mutex::new(state), is_closed: AtomicBool::new(false), counters }
    }

    /// The counters of the peer.
    pub(crate) fn counters(&self) -> &PeerCounters {
        &self.counters
    }

    /// Changes the state, and wakes the driver if it waits.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, waker) = {
            let mut state = self.state.lock();
            let result = change(&mut state);
            (result, state.idle_driver.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Changes the state on behalf of the driver.
    pub(super) fn drive<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Closes the state, and returns what `end` makes of it.
    pub(super) fn close<R>(&self, end: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        self.is_closed.store(true, Ordering::Release);
        end(&mut state)
    }

    /// Queues a request. The returned future ends with its answer, and cancels it when dropped.
    pub(crate) fn call(self: &Arc<Self>, request: Request) -> Result<Call, PeerError> {
        let (slot, stream) = self.open(request)?;
        Ok(Call::new(Arc::clone(self), slot, stream))
    }

    /// Queues a request with a streamed answer.
    pub(crate) fn call_streamed(self: &Arc<Self>, request: Request) -> Result<ItemStream, PeerError> {
        let (slot, stream) = self.open(request)?;
        Ok(ItemStream::new(Arc::clone(self), slot, stream))
    }

    fn open(&self, request: Request) -> Result<(Arc<Slot>, StreamId), PeerError> {
        let slot = Arc::new(Slot::default());
        let opened = self.change(|state| {
            if self.is_closed() { Err(PeerError::Unreachable) } else { state.mux.call(request, Arc::clone(&slot)) }
        });
        opened.map(|stream| (slot, stream))
    }

    pub(super) fn cancel(&self, stream: StreamId) {
        self.change(|state| state.mux.cancel(stream));
    }

    pub(super) fn consumed(&self, stream: StreamId, item_bytes: usize) {
        self.change(|state| state.mux.consumed(stream, item_bytes));
    }

    pub(super) fn answer(&self, stream: StreamId, status: AnswerStatus, body: Body) {
        self.change(|state| {
            state.producers.remove(&stream);
            state.mux.answer(stream, status, body);
        });
    }

    pub(super) fn is_cancelled(&self, stream: StreamId) -> bool {
        let state = self.state.lock();
        self.is_closed() || state.mux.is_cancelled(stream)
    }

    /// Queues an item, or waits until there is room for it.
    pub(super) fn poll_send_item(
        &self,
        stream: StreamId,
        item: &Body,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ItemRefused>> {
        self.change(|state| {
            if self.is_closed() {
                return Poll::Ready(Err(ItemRefused::NotWanted));
            }
            match state.mux.send_item(stream, item.clone()) {
                Err(ItemRefused::Full) => {
                    state.producers.insert(stream, cx.waker().clone());
                    Poll::Pending
                }
                taken_or_refused => Poll::Ready(taken_or_refused),
            }
        })
    }

    /// How many requests of the peer are under way.
    pub(crate) fn serving(&self) -> usize {
        let state = self.state.lock();
        if self.is_closed() { 0 } else { state.mux.served_under_way() }
    }

    /// Closes the connection after a last frame.
    pub(crate) fn say_goodbye(&self, reason: GoodbyeReason, text: &str) {
        self.change(|state| state.mux.say_goodbye(reason, text));
    }
}
