//! How long threads pause between bursts of work that no get or put of a client waits for.
//!
//! Nobody knows how busy the machine is: other processes share it. But a thread that comes back
//! late from a short sleep has waited for a processor, as requests do. So whoever comes back late
//! makes the pauses of the whole process twice as long, and whoever does not makes them a little
//! shorter. On an idle machine work takes about three quarters of each of its threads. On a busy
//! one it takes less, until about one pause in twelve ends late.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest pause. Linux adds up to 50 µs, the slack of timers. After a much shorter sleep (5
/// µs without slack) the scheduler treats the thread as if it had not slept.
const PAUSE_MIN: Duration = Duration::from_micros(20);
/// The longest one of folds, listings and queries, for which only their clients wait.
pub const PAUSE_MAX: Duration = Duration::from_millis(1);
/// The longest one of all other work, for which a cluster waits: however busy the machine is, a
/// thread has a third of its time, so that copies which move arrive soon.
pub const PAUSE_MAX_OF_TRANSFERS: Duration = Duration::from_micros(400);
/// How much later than asked a thread comes back that has waited for a processor.
const LATE: Duration = Duration::from_micros(150);
/// A pause that did not end late makes the next one shorter by this part of it.
const SHORTENED_BY: u64 = 16;

/// The pauses of the process.
pub(super) static PAUSES: Pauses = Pauses::new();

/// How long threads pause at present; see the module.
pub(super) struct Pauses {
    nanos: AtomicU64,
}

impl Pauses {
    const fn new() -> Self {
        Self { nanos: AtomicU64::new(nanos(PAUSE_MIN)) }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Relaxed))
    }

    /// Lets the calling thread sleep for a pause that is not longer than this.
    pub(super) fn pause(&self, longest: Duration) {
        let (asked, took) = sleep(self.now().min(longest));
        self.learn(asked, took);
    }

    /// Lets the calling thread sleep for the shortest pause, and returns how much longer it would
    /// be at present.
    pub(super) fn short_pause(&self) -> Duration {
        let (asked, took) = sleep(PAUSE_MIN);
        self.learn(asked, took);
        self.now().saturating_sub(PAUSE_MIN)
    }

    fn learn(&self, asked: Duration, took: Duration) {
        let before = self.nanos.load(Relaxed);
        let next = match took > asked + LATE {
            true => before.saturating_mul(2),
            false => before - before / SHORTENED_BY,
        };
        // Of two threads that learn at a time, one may be forgotten.
        self.nanos.store(next.clamp(nanos(PAUSE_MIN), nanos(PAUSE_MAX)), Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause is for the scheduler, and waits for nothing")]
fn sleep(asked: Duration) -> (Duration, Duration) {
    let began = Instant::now();
    thread::sleep(asked);
    (asked, began.elapsed())
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds of pauses are short")]
const fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_get_longer_while_threads_come_back_late_and_shorter_again() {
        let pauses = Pauses::new();
        let (on_time, late) = (PAUSE_MIN + LATE, PAUSE_MIN + LATE + Duration::from_nanos(1));
        pauses.learn(PAUSE_MIN, on_time);
        assert_eq!(pauses.now(), PAUSE_MIN);
        pauses.learn(PAUSE_MIN, late);
        assert_eq!(pauses.now(), 2 * PAUSE_MIN);
        for _ in 0..20 {
            pauses.learn(PAUSE_MIN, late);
        }
        assert_eq!(pauses.now(), PAUSE_MAX);
        // One that is late among twenty does not keep them long.
        for round in 0..2_000 {
            pauses.learn(PAUSE_MIN, if round % 20 == 0 { late } else { on_time });
        }
        assert!(pauses.now() < 4 * PAUSE_MIN, "{:?}", pauses.now());
        // One among five does.
        for round in 0..2_000 {
            pauses.learn(PAUSE_MIN, if round % 5 == 0 { late } else { on_time });
        }
        assert!(pauses.now() > PAUSE_MAX / 4, "{:?}", pauses.now());
    }
}
