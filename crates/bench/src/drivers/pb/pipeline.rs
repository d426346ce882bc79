//! The operations in flight on one connection. They end in the order in which they began.
//!
//! Invariant: if the connection is lost, all operations in flight on it fail. None of them is sent
//! again.

use crate::drivers::Outcome;
use crate::drivers::network::ExchangeError;
use std::collections::VecDeque;
use tokio::time::Instant;

/// The operations in flight.
#[derive(Debug)]
pub struct Pipeline {
    in_flight: VecDeque<(usize, Instant)>,
    depth: usize,
    /// How many of the oldest operations were on a connection that was lost.
    lost: usize,
}

impl Pipeline {
    /// Creates a pipeline for at most `depth` operations.
    pub fn new(depth: usize) -> Self {
        Self { in_flight: VecDeque::with_capacity(depth), depth, lost: 0 }
    }

    /// Whether an operation must end before the next one can begin.
    pub fn is_full(&self) -> bool {
        self.in_flight.len() >= self.depth
    }

    /// Adds an operation that has begun, with the time by which it must end.
    pub fn push(&mut self, operation: usize, deadline: Instant) {
        self.in_flight.push_back((operation, deadline));
    }

    /// The operation that ends next.
    pub fn oldest(&self) -> Option<(usize, Instant)> {
        self.in_flight.front().copied()
    }

    /// Ends the oldest operation if it was on a connection that was lost.
    pub fn pop_lost(&mut self) -> Option<Outcome> {
        self.lost = self.lost.checked_sub(1)?;
        self.in_flight.pop_front();
        Some(Outcome::Failed(ExchangeError::Disconnected.reason()))
    }

    /// Ends the oldest operation with this result. If the connection is not open any more, the
    /// other operations are lost.
    pub fn pop(&mut self, received: Result<Outcome, ExchangeError>, is_open: bool) -> Outcome {
        self.in_flight.pop_front();
        if !is_open {
            self.lost = self.in_flight.len();
        }
        received.unwrap_or_else(|error| Outcome::Failed(error.reason()))
    }
}
