//! Until when a write may begin (docs/design/replication.md §12).
//!
//! A write that came late would undo what its client did after it was told that the time was over. So a write asks its
//! deadline under the key's lock, immediately before it stamps an event or stores a copy: past that point it is executed to
//! its end, and its outcome is the answer, however long the call to the store takes. Only the wait for a sync can still time
//! out then. Whoever is answered `timeout` knows: the write was executed before the answer, or it never will be.

use crate::clock::MonotonicClock;
use ombak_types::Error;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Decides between a write that begins on another thread and a caller whose patience ends: one of the two happens.
#[derive(Debug, Default)]
pub(crate) struct Turn(AtomicU8);

impl Turn {
    /// False when the caller has given up.
    fn begin(&self) -> bool {
        self.change(BEGUN)
    }

    /// False when the write has begun: it goes on to its end.
    pub(crate) fn give_up(&self) -> bool {
        self.change(GIVEN_UP)
    }

    fn change(&self, to: u8) -> bool {
        match self.0.compare_exchange(WAITING, to, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(is) => is == to,
        }
    }
}

/// Until when a write may begin.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'a> {
    clock: &'a MonotonicClock,
    /// None: there is no limit.
    at: Option<Instant>,
    /// Of a write that runs on another thread than the one that waits for it.
    turn: Option<&'a Turn>,
}

impl<'a> Deadline<'a> {
    /// `limit` after `began`; a limit of zero is none.
    pub(crate) fn after(began: Instant, limit: Duration, clock: &'a MonotonicClock) -> Self {
        let at = if limit.is_zero() { None } else { began.checked_add(limit) };
        Self { clock, at, turn: None }
    }

    /// The moment itself, to be handed to another thread.
    pub(crate) const fn at(&self) -> Option<Instant> {
        self.at
    }

    /// The deadline of a write whose caller waits for it on another thread, and gives up by `turn`.
    pub(crate) const fn elsewhere(at: Option<Instant>, clock: &'a MonotonicClock, turn: &'a Turn) -> Self {
        Self { clock, at, turn: Some(turn) }
    }

    /// How long is left; none when there is no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.at.map(|at| at.saturating_duration_since((self.clock)()))
    }

    /// Fails with [`Error::Timeout`] when the time is over.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_over = self.at.is_some_and(|at| (self.clock)() >= at);
        if is_over { Err(Error::Timeout) } else { Ok(()) }
    }

    /// Begins the write: called under the key's lock, immediately before an event is stamped or a copy is stored.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        self.check()?;
        match self.turn {
            Some(turn) if !turn.begin() => Err(Error::Timeout),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    fn clock() -> (MonotonicClock, Arc<Mutex<Instant>>) {
        let now = Arc::new(Mutex::new(Instant::now()));
        let read = now.clone();
        (Arc::new(move || *read.lock()), now)
    }

    #[test]
    fn a_write_begins_before_its_deadline_only() {
        let (clock, now) = clock();
        let deadline = Deadline::after(clock(), Duration::from_secs(2), &clock);
        let unlimited = Deadline::after(clock(), Duration::ZERO, &clock);
        assert_eq!((deadline.left(), unlimited.left()), (Some(Duration::from_secs(2)), None));
        *now.lock() += Duration::from_millis(1999);
        assert_eq!(deadline.begin(), Ok(()));
        *now.lock() += Duration::from_millis(1);
        assert_eq!(deadline.begin(), Err(Error::Timeout));
        assert_eq!((deadline.left(), unlimited.begin()), (Some(Duration::ZERO), Ok(())));
    }

    #[test]
    fn either_the_write_begins_or_its_caller_gives_up() {
        let (clock, _) = clock();
        let at = Some(clock() + Duration::from_secs(2));
        let (given_up, begun) = (Turn::default(), Turn::default());
        assert!(given_up.give_up());
        let late = Deadline::elsewhere(at, &clock, &given_up).begin();
        assert_eq!(late, Err(Error::Timeout), "whatever the clock says");
        assert_eq!(Deadline::elsewhere(at, &clock, &begun).begin(), Ok(()));
        assert!(!begun.give_up());
    }
}
