//! What an operator can set.

/// The limits of the queues of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyQueuesConfig {
    /// How many keys may wait to be erased.
    pub erase_keys_max: u64,
    /// How many keys may wait to be reaped.
    pub reap_keys_max: u64,
    /// How many keys may wait to be repaired.
    pub repair_keys_max: u64,
    /// How many keys a worker takes in a second at most. At least 1.
    pub keys_per_second: u32,
}

impl Default for KeyQueuesConfig {
    fn default() -> Self {
        Self {
            erase_keys_max: 10_000_000,
            reap_keys_max: 10_000_000,
            repair_keys_max: 10_000_000,
            keys_per_second: 2_000,
        }
    }
}
