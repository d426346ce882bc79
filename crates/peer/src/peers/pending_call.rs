//! A request that has begun.

use crate::connection::Call;
use crate::mux::Response;
use ombak_runtime::BoxFuture;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A request that has begun. It ends with its answer. Dropping it cancels the request on both
/// sides.
pub struct PendingCall {
    state: State,
}

enum State {
    /// It is queued on a connection.
    Sent(Call),
    /// It was refused at once.
    Ended(Option<Response>),
    /// It waits for a connection.
    Other(BoxFuture<'static, Response>),
}

impl fmt::Debug for PendingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCall").finish_non_exhaustive()
    }
}

impl PendingCall {
    pub(super) const fn sent(call: Call) -> Self {
        Self { state: State::Sent(call) }
    }

    pub(super) const fn ended(response: Response) -> Self {
        Self { state: State::Ended(Some(response)) }
    }

    /// A request that counts its end by itself.
    pub(super) const fn other(call: BoxFuture<'static, Response>) -> Self {
        Self { state: State::Other(call) }
    }
}

impl Future for PendingCall {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        match &mut self.state {
            State::Sent(call) => {
                let response = Pin::new(&mut *call).poll(cx);
                if let Poll::Ready(response) = &response {
                    call.counters().called(response);
                }
                response
            }
            State::Ended(response) => response.take().map_or(Poll::Pending, Poll::Ready),
            State::Other(call) => call.as_mut().poll(cx),
        }
    }
}
