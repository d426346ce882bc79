//! A counter with a total since the start and a value for the last minute.

use crate::shard::Sum;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// The length of one window in seconds.
pub(crate) const WINDOW_SECS: u64 = 5;
/// Number of finished windows that are kept. Together with the current window they cover 55 to 60
/// seconds.
pub(crate) const WINDOWS: usize = 11;
/// The length of "the last minute" in seconds, the current window included.
pub const MINUTE_SECS: u64 = WINDOW_SECS * (WINDOWS as u64 + 1);

/// Riak's spiral: `NAME` is the value of the last minute, `NAME_total` the total since the start.
#[derive(Debug, Default)]
pub struct Spiral {
    total: Sum,
    /// The total at the start of each kept window, oldest first.
    starts: Mutex<VecDeque<u64>>,
}

impl Spiral {
    /// Counts `n` more.
    pub fn add(&self, n: u64) {
        self.total.add(n);
    }

    /// The total since the start.
    pub fn total(&self) -> u64 {
        self.total.get()
    }

    /// The sum of the last minute.
    pub fn last_minute(&self) -> u64 {
        let before = self.starts.lock().front().copied().unwrap_or(0);
        self.total().saturating_sub(before)
    }

    /// Ends the current window and begins the next. `windows` is larger than one when windows have
    /// passed without a call.
    pub(crate) fn rotate(&self, windows: usize) {
        let total = self.total();
        let mut starts = self.starts.lock();
        if starts.is_empty() {
            starts.push_back(0);
        }
        for _ in 0..windows.min(WINDOWS + 1) {
            starts.push_back(total);
            if starts.len() > WINDOWS + 1 {
                starts.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_passes() {
        let spiral = Spiral::default();
        spiral.add(2);
        assert_eq!((spiral.last_minute(), spiral.total()), (2, 2), "the window under way counts");
        for _ in 0..WINDOWS {
            spiral.rotate(1);
            spiral.add(1);
        }
        assert_eq!((spiral.last_minute(), spiral.total()), (13, 13));
        spiral.rotate(1);
        assert_eq!((spiral.last_minute(), spiral.total()), (11, 13), "the first window went");
        spiral.rotate(usize::MAX);
        assert_eq!((spiral.last_minute(), spiral.total()), (0, 13));
    }
}
