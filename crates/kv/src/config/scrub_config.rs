//! The configuration of scrubbing.

use std::time::Duration;

/// How fast the stores of a node are read and checked although nobody asks for what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubConfig {
    /// Whether they are. The default is off, so that a node in a test reads only what it is asked
    /// for; the program `ombak` and the simulator switch it on.
    pub is_enabled: bool,
    /// How long a round over everything takes. Less than a minute counts as a minute.
    pub interval: Duration,
    /// Maximum of the bytes that are read in a second; 0: no limit.
    pub bytes_per_second_max: u64,
}

impl Default for ScrubConfig {
    fn default() -> Self {
        Self { is_enabled: false, interval: Duration::from_secs(30 * 86_400), bytes_per_second_max: 20 << 20 }
    }
}
