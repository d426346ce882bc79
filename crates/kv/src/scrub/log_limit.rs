//! Bounds the lines of the log that tell of damage.
//!
//! A disk that has lost a million records would fill the log, and push out what else it says.

use std::time::{Duration, Instant};

/// How many lines may be logged in a minute.
const LINES_MAX: usize = 1_000;
const MINUTE: Duration = Duration::from_secs(60);

/// How many lines were logged in the minute under way.
#[derive(Debug, Default)]
pub(super) struct LogLimit {
    began: Option<Instant>,
    lines: usize,
}

impl LogLimit {
    /// Takes up to `wanted` lines, and returns how many may be logged now.
    pub(super) fn take(&mut self, now: Instant, wanted: usize) -> usize {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= MINUTE) {
            (self.began, self.lines) = (Some(now), 0);
        }
        let taken = wanted.min(LINES_MAX - self.lines);
        self.lines += taken;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_a_limit_and_the_next_one_begins_anew() {
        let (mut limit, now) = (LogLimit::default(), Instant::now());
        assert_eq!((limit.take(now, 3), limit.take(now, 5_000), limit.take(now, 1)), (3, 997, 0));
        assert_eq!(limit.take(now + Duration::from_secs(59), 1), 0);
        assert_eq!(limit.take(now + MINUTE, 2_000), LINES_MAX);
    }
}
