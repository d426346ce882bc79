//! The configuration of exchanges. They are off: a node has them only when
//! [`Repair::start_exchanges`] is called.
//!
//! [`Repair::start_exchanges`]: crate::Repair::start_exchanges

use std::time::Duration;

/// How often exchanges run, and what they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeConfig {
    /// In this time each class is exchanged once with each other primary. Riak's exchanges of
    /// active anti-entropy have the same interval by default.
    pub interval: Duration,
    /// The time between the two looks that see a difference. Writes in flight end meanwhile.
    pub look_again_after: Duration,
    /// Maximum number of exchanges that work at the same time. Those that wait for their second
    /// look do not count.
    pub concurrency: usize,
    /// Maximum of the bytes of sums and lists that this node sends and asks for in a second; 0: no
    /// limit. Copies count towards the limit of transfers.
    pub bytes_per_second: u64,
}

impl Default for ExchangeConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(8 * 60),
            look_again_after: Duration::from_secs(2),
            concurrency: 2,
            bytes_per_second: 4 << 20,
        }
    }
}
