//! The configuration of exchanges. A node has them only when [`Repair::start_exchanges`] is called,
//! as members of a cluster do.
//!
//! [`Repair::start_exchanges`]: crate::Repair::start_exchanges

use std::time::Duration;

/// How often exchanges run, and what they may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeConfig {
    /// Whether the node begins exchanges from its start on. Without it, it only answers those of
    /// others until an operator lets its own go on.
    pub begins: bool,
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
    /// In this time the sums of each class are compared once with what the store holds.
    pub check_sums_every: Duration,
    /// How long a class that is filled waits for a primary that does not answer, before it takes
    /// from the others what they leave to exchanges: nobody can say then whether it was removed.
    pub takes_early_after: Duration,
    /// How many versions are visited in a second to sum up a class, or to compare its sums, at
    /// most.
    pub sums_versions_per_second: u64,
}

impl Default for ExchangeConfig {
    fn default() -> Self {
        Self {
            begins: true,
            interval: Duration::from_secs(8 * 60),
            look_again_after: Duration::from_secs(2),
            concurrency: 2,
            bytes_per_second: 4 << 20,
            check_sums_every: Duration::from_secs(24 * 60 * 60),
            takes_early_after: Duration::from_secs(5 * 60),
            sums_versions_per_second: 1_000_000,
        }
    }
}
