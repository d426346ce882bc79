//! A clock that does not run while its node was not running.

use std::time::Duration;

/// Readings of the node's clock, less the times by which the node woke up late.
#[derive(Debug)]
pub(crate) struct LocalClock {
    late_after: Duration,
    lost: Duration,
    latest: Duration,
}

impl LocalClock {
    pub(crate) const fn new(late_after: Duration) -> Self {
        Self { late_after, lost: Duration::ZERO, latest: Duration::ZERO }
    }

    /// The local time at a reading of the node's clock, when the next thing to do is due at the
    /// local time `due`. If that is long past, the node did not run, and neither did local time.
    /// Local time never goes back.
    pub(crate) fn read(&mut self, now: Duration, due: Option<Duration>) -> Duration {
        let local = now.saturating_sub(self.lost);
        let late = due.map_or(Duration::ZERO, |due| local.saturating_sub(due));
        if late > self.late_after {
            self.lost += late;
        }
        self.latest = self.latest.max(now.saturating_sub(self.lost));
        self.latest
    }

    /// The reading of the node's clock at a local time.
    pub(crate) fn reading_at(&self, local: Duration) -> Duration {
        local.saturating_add(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_taken_out_and_small_delays_are_not() {
        let ms = Duration::from_millis;
        let mut clock = LocalClock::new(ms(50));
        assert_eq!(clock.read(ms(130), Some(ms(100))), ms(130));
        assert_eq!(clock.read(ms(5_200), Some(ms(200))), ms(200), "the node was paused");
        assert_eq!(clock.reading_at(ms(300)), ms(5_300));
        assert_eq!(clock.read(ms(5_250), Some(ms(300))), ms(250));
        assert_eq!(clock.read(ms(5_000), None), ms(250), "time never goes back");
    }
}
