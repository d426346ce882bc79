//! The end of plain sessions when security is switched on.

use super::node_security::NodeSecurity;
use crate::stop::Stop;
use std::future::{Future, pending};
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
        tokio::select! {
            biased;
            served = serving => Some(served),
            () = self.is_over() => None,
        }
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
