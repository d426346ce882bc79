//! The bounds of handshakes.

use super::places::{Place, Places};
use std::io;
use std::net::IpAddr;
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
    places: Arc<Places>,
    turns: Arc<Semaphore>,
}

impl Handshakes {
    /// At most `under_way_max` handshakes are under way, counted from the first message of the
    /// client, and at most `at_once_max` compute their first step at a time; at least one each.
    /// Addresses share the places. A client has `time_limit` for the whole handshake, and half of
    /// it from its place on. It may spend the rest waiting for others.
    pub fn new(time_limit: Duration, under_way_max: usize, at_once_max: usize) -> Self {
        let turns = Arc::new(Semaphore::new(at_once_max.clamp(1, Semaphore::MAX_PERMITS)));
        Self { time_limit, places: Arc::new(Places::new(under_way_max)), turns }
    }

    /// How long a handshake may take.
    pub(super) const fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// How long a handshake may keep its place. Nearly all of it is the time in which the client
    /// answers the hello of the node.
    pub(super) fn place_limit(&self) -> Duration {
        self.time_limit / 2
    }

    /// Waits for a place among the handshakes that are under way.
    pub(super) async fn place(&self, address: IpAddr) -> Place {
        self.places.take(address).await
    }

    /// Waits for the turn to compute.
    pub(super) async fn turn(&self) -> io::Result<SemaphorePermit<'_>> {
        self.turns.acquire().await.map_err(io::Error::other)
    }
}
