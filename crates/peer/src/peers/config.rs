//! The limits and times of a node's connections.

use crate::mux::{InvalidConfig, MuxConfig};
use std::time::Duration;

/// The limits and times of a node's connections.
#[derive(Clone, Debug)]
pub struct PeersConfig {
    /// The limits of each connection.
    pub mux: MuxConfig,
    /// How long connecting and the handshake may take together.
    pub connect_max: Duration,
    /// How many accepted connections may be in the handshake. Beyond that, the oldest is closed:
    /// a node that knows the secret needs only a few round trips.
    pub unproved_max: usize,
    /// The pause after the first failure to connect. It doubles with each further failure.
    pub backoff_min: Duration,
    /// The longest pause.
    pub backoff_max: Duration,
    /// How many requests may wait for a connection to one peer.
    pub waiting_max: usize,
}

impl PeersConfig {
    /// Checks that the limits make sense.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        self.mux.check()?;
        if self.unproved_max == 0 {
            return Err(InvalidConfig { name: "unproved_max", at_least: 1 });
        }
        Ok(())
    }
}

impl Default for PeersConfig {
    fn default() -> Self {
        Self {
            mux: MuxConfig::default(),
            connect_max: Duration::from_secs(2),
            unproved_max: 256,
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(2),
            waiting_max: 1024,
        }
    }
}
