//! The times and limits of failure detection.
//!
//! With the default times, on a network whose packets take a few milliseconds:
//!
//! * A node that was killed is down for all others after at most about 3 s. In the worst case it is
//!   probed three probe periods after its last answer (1.05 s, in a cluster of three), the probe
//!   fails after one period more, and the suspicion lasts 1.4 s.
//! * A node that returned is up within about 0.5 s: it announces itself at once and then every
//!   announcement interval, and so do the others to it.
//! * A node that answers nothing for less than the time of suspicion stays up. A pause of 200 ms
//!   is far below that.
//!
//! A node compares nothing but its own readings of a clock that never goes back. If it notices that
//! it ran late itself (a loaded machine, a stopped process), it subtracts the delay: its waits go
//! on where they were. So its own pause is not taken for the silence of others.

use std::time::Duration;

/// The times and limits of failure detection. All nodes of a cluster should have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectionConfig {
    /// How often a node probes one of the others.
    pub probe_period: Duration,
    /// After how long without an answer it asks others to probe the same node. It must be shorter
    /// than the period.
    pub probe_rtt: Duration,
    /// How many others it asks.
    pub indirect_probes: usize,
    /// How long a node that failed a probe may refute the suspicion before it is down.
    pub suspicion: Duration,
    /// How often news of the detector is passed on, to three nodes each time.
    pub gossip_interval: Duration,
    /// How often a node calls members that are down for it.
    pub announce_interval: Duration,
    /// How many of them it calls each time.
    pub announce_max: usize,
    /// The shortest time between two versions of a node's soft state.
    pub state_interval: Duration,
    /// After how long an unacknowledged version of the soft state is sent again.
    pub state_retry: Duration,
    /// A node that wakes up this late or later subtracts the delay from its waits.
    pub late_after: Duration,
}

impl Default for DetectionConfig {
    fn default() -> Self {
        Self {
            probe_period: Duration::from_millis(350),
            probe_rtt: Duration::from_millis(150),
            indirect_probes: 3,
            suspicion: Duration::from_millis(1400),
            gossip_interval: Duration::from_millis(100),
            announce_interval: Duration::from_millis(300),
            announce_max: 16,
            state_interval: Duration::from_secs(1),
            state_retry: Duration::from_millis(500),
            late_after: Duration::from_millis(50),
        }
    }
}

/// Times that make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidTimes(pub &'static str);

impl DetectionConfig {
    /// Checks that the times make sense together.
    pub fn check(&self) -> Result<(), InvalidTimes> {
        let demands = [
            (!self.probe_rtt.is_zero(), "probe_rtt must not be zero"),
            (self.probe_rtt < self.probe_period, "probe_rtt must be shorter than probe_period"),
            (self.probe_period <= self.suspicion, "suspicion must be at least as long as probe_period"),
            (!self.gossip_interval.is_zero(), "gossip_interval must not be zero"),
            (!self.announce_interval.is_zero(), "announce_interval must not be zero"),
            (self.announce_max > 0, "announce_max must not be zero"),
            (!self.state_interval.is_zero(), "state_interval must not be zero"),
            (!self.state_retry.is_zero(), "state_retry must not be zero"),
        ];
        match demands.iter().find(|(holds, _)| !holds) {
            Some((_, demand)) => Err(InvalidTimes(demand)),
            None => Ok(()),
        }
    }
}
