//! Operations in flight on one connection, which end in the order in which they began.
//!
//! Invariant: when the connection goes, what was in flight on it fails; nothing of it is sent again.

use crate::drivers::Outcome;
use crate::drivers::network::Trouble;
use std::collections::VecDeque;
use tokio::time::Instant;

/// What is in flight.
#[derive(Debug)]
pub struct Pipeline {
    in_flight: VecDeque<(usize, Instant)>,
    depth: usize,
    /// So many of the oldest were on a connection that went.
    lost: usize,
}

impl Pipeline {
    /// At most so many.
    pub fn new(depth: usize) -> Self {
        Self { in_flight: VecDeque::with_capacity(depth), depth, lost: 0 }
    }

    /// Whether one has to end before the next can begin.
    pub fn is_full(&self) -> bool {
        self.in_flight.len() >= self.depth
    }

    /// One has begun, and is to have ended by then.
    pub fn push(&mut self, operation: usize, deadline: Instant) {
        self.in_flight.push_back((operation, deadline));
    }

    /// The one that ends next.
    pub fn oldest(&self) -> Option<(usize, Instant)> {
        self.in_flight.front().copied()
    }

    /// The oldest has ended if it was on a connection that went.
    pub fn pop_lost(&mut self) -> Option<Outcome> {
        self.lost = self.lost.checked_sub(1)?;
        self.in_flight.pop_front();
        Some(Outcome::Failed(Trouble::Disconnected.reason()))
    }

    /// The oldest has ended like this. Without the connection the others have, too.
    pub fn pop(&mut self, received: Result<Outcome, Trouble>, is_open: bool) -> Outcome {
        self.in_flight.pop_front();
        if !is_open {
            self.lost = self.in_flight.len();
        }
        received.unwrap_or_else(|trouble| Outcome::Failed(trouble.reason()))
    }
}
