//! The end of plain sessions when security is switched on.

use super::node_security::NodeSecurity;
use crate::stop::Stop;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// The plain sessions of one listener that began while security was as it is. They get a stop
/// signal of their own, so they answer what they have begun and end.
pub(crate) struct PlainSessions {
    signal: watch::Sender<bool>,
    turns: Option<watch::Receiver<bool>>,
    of_node: watch::Receiver<bool>,
    drain_timeout: Duration,
}

/// What ends a session.
pub(crate) struct SessionEnd {
    signal: watch::Receiver<bool>,
    of_node: watch::Receiver<bool>,
    drain_timeout: Duration,
}

impl PlainSessions {
    /// `of_node` is the stop signal of the node. A plain session that has something under way when
    /// security is switched on has `drain_timeout` for that.
    pub(crate) fn new(
        security: Option<&NodeSecurity>,
        of_node: watch::Receiver<bool>,
        drain_timeout: Duration,
    ) -> Self {
        let turns = security.map(|security| security.switch().turns());
        Self { signal: watch::Sender::new(false), turns, of_node, drain_timeout }
    }

    /// What ends a session that begins.
    pub(crate) fn session(&self, is_plain: bool) -> SessionEnd {
        let (of_node, drain_timeout) = (self.of_node.clone(), self.drain_timeout);
        let signal = if is_plain { self.signal.subscribe() } else { of_node.clone() };
        SessionEnd { signal, of_node, drain_timeout }
    }

    /// Waits until security is switched on.
    pub(crate) async fn must_end(&mut self) {
        let Some(turns) = &mut self.turns else { return pending().await };
        loop {
            if turns.changed().await.is_err() {
                return pending().await;
            }
            if *turns.borrow_and_update() {
                return;
            }
        }
    }

    /// Ends the sessions that have begun. Those that begin later are others.
    pub(crate) fn end(&mut self) {
        self.signal.send_replace(true);
        self.signal = watch::Sender::new(false);
    }
}

impl SessionEnd {
    /// Becomes true when the session has to end after what it has begun.
    pub(crate) const fn signal(&self) -> &watch::Receiver<bool> {
        &self.signal
    }

    /// The session goes on with TLS. From now on only the end of the node ends it.
    pub(crate) fn goes_on_with_tls(&mut self) {
        self.signal = self.of_node.clone();
    }

    /// Serves a session. Returns nothing if it was plain and has not ended in time after security
    /// was switched on: it may be in the middle of a long answer, which nobody has proved to be
    /// allowed to get.
    pub(crate) async fn serve<T>(&self, serving: impl Future<Output = T>) -> Option<T> {
        if self.signal.same_channel(&self.of_node) {
            return Some(serving.await);
        }
        let (mut serving, mut over) = (pin!(serving), pin!(self.is_over()));
        let mut woken: Option<Waker> = None;
        poll_fn(|context| {
            if let Poll::Ready(served) = serving.as_mut().poll(context) {
                return Poll::Ready(Some(served));
            }
            // This is polled for each request. Once the signal knows whom to wake, there is nothing
            // to look for before it is set.
            if woken.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) && !self.must_end() {
                return Poll::Pending;
            }
            woken = Some(context.waker().clone());
            over.as_mut().poll(context).map(|()| None)
        })
        .await
    }

    /// Whether the signal is set, or may be. It takes no lock.
    fn must_end(&self) -> bool {
        self.signal.has_changed().unwrap_or(true)
    }

    async fn is_over(&self) {
        Stop::new(&self.signal).await;
        sleep(self.drain_timeout).await;
        // A node that stops gives its sessions a time of its own.
        if Stop::new(&self.of_node).is_set() {
            pending().await
        }
    }
}
