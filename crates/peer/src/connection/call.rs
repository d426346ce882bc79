//! Waiting for the answer to a request.

use super::shared::Shared;
use crate::counters::PeerCounters;
use crate::error::PeerError;
use crate::frame::StreamId;
use crate::mux::Response;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Where the driver puts what has arrived for a caller.
#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    items: VecDeque<Bytes>,
    response: Option<Response>,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn end(&self, response: Response) {
        self.change(|state| state.response = Some(response));
    }

    pub(super) fn push_item(&self, item: Bytes) {
        self.change(|state| state.items.push_back(item));
    }

    fn change(&self, change: impl FnOnce(&mut SlotState)) {
        let waker = {
            let mut state = self.state.lock();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll<R>(&self, cx: &mut Context<'_>, take: impl FnOnce(&mut SlotState) -> Option<R>) -> Poll<R> {
        let mut state = self.state.lock();
        match take(&mut state) {
            Some(taken) => Poll::Ready(taken),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// An own request. Dropping it cancels the request on both sides.
struct Open {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    stream: StreamId,
    has_ended: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.has_ended {
            self.shared.cancel(self.stream);
        }
    }
}

/// The answer to a request, to be awaited.
pub(crate) struct Call {
    open: Open,
}

impl Call {
    pub(super) fn new(shared: Arc<Shared>, slot: Arc<Slot>, stream: StreamId) -> Self {
        Self { open: Open { shared, slot, stream, has_ended: false } }
    }

    /// The counters of the peer.
    pub(crate) fn counters(&self) -> &PeerCounters {
        self.open.shared.counters()
    }
}

impl Future for Call {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let ended = self.open.slot.poll(cx, |state| state.response.take());
        self.open.has_ended |= ended.is_ready();
        ended
    }
}

/// A part of a streamed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamPart {
    /// An item.
    Item(Bytes),
    /// The body that ends the answer. Without it, the answer is not complete.
    End(Bytes),
}

/// A streamed answer. The peer sends no more than a window ahead of what [`ItemStream::next`] has
/// returned. Dropping it cancels the request.
pub struct ItemStream {
    open: Open,
    end: Option<Response>,
}

impl ItemStream {
    pub(super) fn new(shared: Arc<Shared>, slot: Arc<Slot>, stream: StreamId) -> Self {
        Self { open: Open { shared, slot, stream, has_ended: false }, end: None }
    }

    /// Waits for the next part. After the end it returns the end again.
    pub async fn next(&mut self) -> Result<StreamPart, PeerError> {
        if let Some(end) = &self.end {
            return end.clone().map(StreamPart::End);
        }
        let open = &self.open;
        let part = poll_fn(|cx| {
            open.slot.poll(cx, |state| match state.items.pop_front() {
                Some(item) => Some(Ok(StreamPart::Item(item))),
                None => state.response.take().map(|response| response.map(StreamPart::End)),
            })
        })
        .await;
        if let Ok(StreamPart::Item(item)) = &part {
            open.shared.consumed(open.stream, item.len());
            return part;
        }
        self.open.has_ended = true;
        self.end = Some(part.clone().map(|part| match part {
            StreamPart::Item(body) | StreamPart::End(body) => body,
        }));
        part
    }
}
