//! Accepting connections.

use super::establish::{Proved, establish};
use super::peers::{ConnectFailure, Inner};
use crate::connection::Shared;
use crate::frame::GoodbyeReason;
use crate::handshake::{Handshake, HandshakeError};
use crate::identity::Channel;
use crate::mux::Side;
use futures_util::future::{Either, select};
use ombak_runtime::{Listener, RuntimeExt, Stream, within};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// The pause after a failure to accept, which mostly is a lack of file descriptors.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(50);

/// The connections that peers have opened.
#[derive(Default)]
pub(super) struct Accepted {
    /// The connections whose peer is not known yet, in the order of their arrival. One is closed
    /// when its sender is dropped.
    unproved: BTreeMap<u64, oneshot::Sender<()>>,
    next_number: u64,
    proved: BTreeMap<(NodeId, Channel), Arc<Shared>>,
}

impl Accepted {
    /// Makes a place for a connection. If there are too many, the oldest one loses its place.
    fn enter(&mut self, unproved_max: usize) -> (u64, oneshot::Receiver<()>) {
        while self.unproved.len() >= unproved_max {
            self.unproved.pop_first();
        }
        let (keep, evicted) = oneshot::channel();
        let number = self.next_number;
        self.next_number += 1;
        self.unproved.insert(number, keep);
        (number, evicted)
    }

    pub(super) fn open(&self) -> Vec<Arc<Shared>> {
        self.proved.values().cloned().collect()
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.unproved.len(), self.proved.len())
    }
}

/// Accepts connections until the node stops.
pub(super) async fn accept_loop(inner: Arc<Inner>, listener: Box<dyn Listener>, mut stop: watch::Receiver<bool>) {
    let mut stopped = pin!(async move {
        // An error means that the node is gone.
        let _stopped = stop.wait_for(|stop| *stop).await;
    });
    loop {
        let accepted = match select(pin!(listener.accept()), stopped.as_mut()).await {
            Either::Left((accepted, _)) => accepted,
            Either::Right(_) => return,
        };
        match accepted {
            Ok((stream, from)) => {
                let (number, evicted) = inner.accepted.lock().enter(inner.config.unproved_max);
                let serving = serve(Arc::clone(&inner), stream, from, number, evicted);
                inner.runtime().spawn(Box::pin(serving));
            }
            Err(error) => {
                tracing::warn!(%error, "a peer's connection could not be accepted");
                inner.runtime().sleep(PAUSE_AFTER_ERROR).await;
            }
        }
    }
}

/// Lets a peer prove who it is, and runs its connection.
async fn serve(
    inner: Arc<Inner>,
    stream: Box<dyn Stream>,
    from: SocketAddr,
    number: u64,
    evicted: oneshot::Receiver<()>,
) {
    let proving = async {
        let handshake = Handshake::responder(inner.local(), inner.nonce()?);
        let handshake = handshake.with_first_words(inner.sessions.first_words());
        Ok(establish(stream, handshake, &inner.sessions, &inner.clock).await?)
    };
    let give_up_at = inner.runtime().now() + inner.config.connect_max;
    let limited = pin!(within(&**inner.runtime(), Some(give_up_at), proving));
    let outcome = match select(limited, evicted).await {
        Either::Left((outcome, _)) => outcome.unwrap_or(Err(ConnectFailure::Handshake(HandshakeError::TooSlow))),
        Either::Right(_) => Err(ConnectFailure::Handshake(HandshakeError::TooSlow)),
    };
    inner.accepted.lock().unproved.remove(&number);
    let proved = match outcome {
        Ok(proved) => proved,
        Err(failure) => {
            tracing::warn!(%from, %failure, "a connection from a peer was refused");
            return;
        }
    };
    let (peer, channel) = (proved.established.peer.identity.node, proved.established.peer.channel);
    let thread_number = usize::from(channel.thread);
    let serving = run(Arc::clone(&inner), proved, from, peer, channel);
    match thread_number {
        0 => serving.await,
        // The threads of this node share the peer's threads between them.
        thread_number => inner.runtime().spawn_on(thread_number, Box::pin(serving)),
    }
}

/// Runs a connection whose peer is known.
async fn run(inner: Arc<Inner>, proved: Proved, from: SocketAddr, peer: NodeId, channel: Channel) {
    let (driver, shared) = inner.driver(proved, Side::Responder, inner.counters(peer));
    let earlier = inner.accepted.lock().proved.insert((peer, channel), Arc::clone(&shared));
    if let Some(earlier) = earlier {
        earlier.say_goodbye(GoodbyeReason::Replaced, "the peer has opened another connection");
    }
    if inner.is_stopping() {
        shared.say_goodbye(GoodbyeReason::ShuttingDown, "the node is shutting down");
    }
    let end = driver.run().await;
    tracing::info!(%peer, %from, %end, "a connection from a peer has ended");
    let mut accepted = inner.accepted.lock();
    if accepted.proved.get(&(peer, channel)).is_some_and(|current| Arc::ptr_eq(current, &shared)) {
        accepted.proved.remove(&(peer, channel));
    }
}
