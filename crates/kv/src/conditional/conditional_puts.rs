//! What a node keeps for conditional puts.

use super::{Ballots, KeyQueue};

/// What a node keeps for conditional puts.
pub(crate) struct ConditionalPuts {
    /// What this node has promised as a primary.
    pub(crate) ballots: Ballots,
    /// The order of the puts that this node coordinates.
    pub(crate) queue: KeyQueue,
}

impl ConditionalPuts {
    /// With what this node has promised before its start.
    pub(crate) fn new(ballots: Ballots) -> Self {
        Self { ballots, queue: KeyQueue::default() }
    }
}
