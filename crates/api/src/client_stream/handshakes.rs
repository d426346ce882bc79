//! The bounds of handshakes.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The bounds of handshakes with clients, for all listeners of a node together.
///
/// The first step of a handshake computes for up to a few milliseconds without a pause, on a thread
/// that serves other connections, too. So only some of these steps run at a time, in the order in
/// which their clients came. Between two of them, a thread serves what has become ready.
#[derive(Clone, Debug)]
pub struct Handshakes {
    time_limit: Duration,
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Handshakes {
    /// At most `under_way_max` handshakes are under way, counted from the first message of the
    /// client, and at most `at_once_max` compute their first step at a time; at least one each. A
    /// client has `time_limit` for the whole handshake. It may spend a part of it waiting for
    /// others.
    pub fn new(time_limit: Duration, under_way_max: usize, at_once_max: usize) -> Self {
        let bound = |max: usize| Arc::new(Semaphore::new(max.clamp(1, Semaphore::MAX_PERMITS)));
        Self { time_limit, places: bound(under_way_max), turns: bound(at_once_max) }
    }

    pub(super) const fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Waits for a place among the handshakes that are under way.
    pub(super) async fn place(&self) -> io::Result<SemaphorePermit<'_>> {
        self.places.acquire().await.map_err(io::Error::other)
    }

    /// Waits for the turn to compute.
    pub(super) async fn turn(&self) -> io::Result<SemaphorePermit<'_>> {
        self.turns.acquire().await.map_err(io::Error::other)
    }
}
