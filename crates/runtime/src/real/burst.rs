//! Bursts of work: a thread that gives way leaves the processor often, and not only when the
//! scheduler takes it away.
//!
//! Linux ends the turn of a running thread at a tick of its clock, which comes every 4 ms with the
//! usual 250 ticks a second. Beside threads that are busy, a thread with the highest nice value has
//! few turns, but each lasts until the next tick, and requests wait for its end. So a thread that
//! sleeps by itself after 0.2 ms ends its turn early. docs/benchmarks.md compares both.

use super::pauses::{PAUSE_MAX_OF_TRANSFERS, PAUSES};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a thread works before it pauses.
const BURST: Duration = Duration::from_micros(200);

thread_local! {
    /// When the burst of this thread began; none for threads that do not work in bursts.
    static BURST_BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    static PAUSES_MADE: Cell<u64> = const { Cell::new(0) };
    static LONGEST: Cell<Duration> = const { Cell::new(PAUSE_MAX_OF_TRANSFERS) };
}

/// From now on the calling thread never pauses for longer than this at a time.
pub fn pause_at_most(longest: Duration) {
    LONGEST.set(longest);
}

/// From now on the calling thread works in bursts. The first one begins now.
pub fn work_in_bursts() {
    BURST_BEGAN.set(Some(Instant::now()));
}

/// A new burst of the calling thread begins, because it has waited for work. Does nothing on
/// threads that do not give way.
pub fn begin_burst() {
    if BURST_BEGAN.get().is_some() {
        work_in_bursts();
    }
}

/// Lets the calling thread sleep for a moment if it works in bursts, as threads do that give way to
/// others ([`super::give_way`]), and has worked for 200 µs since it last slept here. Does nothing
/// on other threads. Long work on such a thread calls this every few microseconds, and holds no
/// lock meanwhile that others wait for.
pub fn pause_if_due() {
    if BURST_BEGAN.get().is_some_and(|began| began.elapsed() >= BURST) {
        PAUSES.pause(LONGEST.get());
        PAUSES_MADE.set(PAUSES_MADE.get() + 1);
        work_in_bursts();
    }
}

/// Lets the calling thread pause after it has worked for at least as long as a burst. Without it, a
/// thread that is busy keeps its processor until the next tick of the scheduler, and whoever waits
/// for the processor waits that long.
pub fn pause_after(worked: Duration) {
    if worked >= BURST {
        PAUSES.pause(LONGEST.get());
    }
}

/// Like [`pause_after`], for a thread that has other work than this. The pause is a short one. The
/// rest of the time that other work should have follows: for so long the thread should do nothing
/// more of this kind.
pub fn short_pause_after(worked: Duration) -> Duration {
    if worked >= BURST { PAUSES.short_pause() } else { Duration::ZERO }
}

/// How often the calling thread has slept in [`pause_if_due`]; for tests of long work.
pub fn pauses_of_this_thread() -> u64 {
    PAUSES_MADE.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::give_way;
    use std::thread;

    /// How often a new thread pauses while it does this.
    fn pauses_in(prepare: fn(), work: impl FnOnce() + Send + 'static) -> u64 {
        let working = thread::spawn(move || {
            prepare();
            work();
            pauses_of_this_thread()
        });
        working.join().unwrap()
    }

    /// Works for the time of a burst.
    fn burst() {
        let began = Instant::now();
        while began.elapsed() < BURST {}
    }

    fn one_burst() {
        burst();
        pause_if_due();
    }

    #[test]
    fn only_threads_that_give_way_pause() {
        assert_eq!((pauses_in(give_way, one_burst), pauses_in(|| (), one_burst)), (1, 0));
    }

    #[test]
    fn waiting_for_work_is_no_burst() {
        let waiting = thread::spawn(|| {
            give_way();
            burst();
            let before = BURST_BEGAN.get();
            begin_burst();
            before < BURST_BEGAN.get()
        });
        assert!(waiting.join().unwrap());
        begin_burst();
        assert_eq!(BURST_BEGAN.get(), None, "this thread does not give way");
    }

    #[test]
    fn a_thread_pauses_once_for_each_burst_at_most() {
        let bursts = || {
            let until = Instant::now() + BURST * 50;
            while Instant::now() < until {
                pause_if_due();
            }
        };
        assert!(pauses_in(give_way, bursts) <= 50);
        assert_eq!(pauses_in(give_way, || ()), 0);
    }
}
