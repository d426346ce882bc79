//! How far a change of the ring is, as operators see it.

use serde::{Deserialize, Serialize};

/// How far a change of the ring is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingChangeFacts {
    /// The name of the member that drives the change; `None` while there is no such member, or
    /// while it does not answer.
    pub driver: Option<String>,
    /// The number of home partitions.
    pub homes: u32,
    /// How many of them have the ring that is wanted.
    pub done: u32,
    /// How many are on their way.
    pub changing: u32,
    /// Why homes wait.
    pub obstacles: Vec<RingObstacle>,
    /// How long the member has driven this change, in seconds.
    pub driven_secs: u64,
    /// How many homes got the ring that is wanted meanwhile.
    pub done_meanwhile: u32,
}

/// Why some homes wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingObstacle {
    /// The words for the operator.
    pub why: String,
    /// The number of homes.
    pub homes: u32,
}

impl RingChangeFacts {
    /// How many homes do not have the ring that is wanted.
    pub const fn left(&self) -> u32 {
        self.homes.saturating_sub(self.done)
    }

    /// How long the rest takes if it goes on as so far, in seconds; `None` while nothing is known.
    pub fn seconds_left(&self) -> Option<u64> {
        let done = u64::from(self.done_meanwhile);
        (done > 0).then(|| self.driven_secs.saturating_mul(self.left().into()).div_ceil(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_follows_from_what_was_done() {
        let facts = RingChangeFacts { homes: 64, done: 16, done_meanwhile: 0, driven_secs: 9, ..Default::default() };
        assert_eq!((facts.left(), facts.seconds_left()), (48, None));
        assert_eq!(RingChangeFacts { done_meanwhile: 5, ..facts.clone() }.seconds_left(), Some(87));
        assert_eq!(RingChangeFacts { done: 64, done_meanwhile: 5, ..facts }.seconds_left(), Some(0));
    }
}
