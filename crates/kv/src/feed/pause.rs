//! How long a consumer waits in a partition in which something failed.

use std::time::{Duration, Instant};

/// The pause after the first failure, and the longest after several in a row.
const PAUSE_MIN: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The pause after a failure; see the module. Each failure in a row doubles it, because a consumer
/// that begins anew reads a whole store each time.
pub(super) struct Pause {
    length: Duration,
    until: Instant,
}

impl Pause {
    /// The pause after one more failure.
    pub(super) fn after(before: Option<&Self>, now: Instant) -> Self {
        let length = before.map_or(PAUSE_MIN, |before| (before.length * 2).min(PAUSE_MAX));
        Self { length, until: now + length }
    }

    /// Whether it is not over yet.
    pub(super) fn lasts(&self, now: Instant) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_bound() {
        let now = Instant::now();
        let mut pause = Pause::after(None, now);
        assert!(pause.lasts(now + PAUSE_MIN - Duration::from_millis(1)) && !pause.lasts(now + PAUSE_MIN));
        pause = Pause::after(Some(&pause), now);
        assert!(pause.lasts(now + PAUSE_MIN) && !pause.lasts(now + 2 * PAUSE_MIN));
        for _ in 0..40 {
            pause = Pause::after(Some(&pause), now);
        }
        assert!(pause.lasts(now + PAUSE_MAX / 2) && !pause.lasts(now + PAUSE_MAX));
    }
}
