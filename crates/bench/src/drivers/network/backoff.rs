//! Pauses between attempts to reopen a connection.

use std::time::Duration;

/// The pause before the second attempt. Each further pause is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Pauses that grow with each failure. There is no pause before the first attempt.
#[derive(Debug, Default)]
pub struct Backoff(Duration);

impl Backoff {
    /// How long to wait before the next attempt.
    pub fn pause(&mut self) -> Duration {
        let next = (self.0 * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        std::mem::replace(&mut self.0, next)
    }

    /// Records that the connection works, so that the next failure counts as the first one.
    pub const fn worked(&mut self) {
        self.0 = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_until_it_works() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..10).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        backoff.worked();
        assert_eq!(backoff.pause(), Duration::ZERO);
    }
}
