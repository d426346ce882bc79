//! The deadline by which a write must begin (docs/design/replication.md §12).
//!
//! A write that executed late would undo what its client did after a timeout was reported to it.
//! Therefore a write checks its deadline under the key's lock, immediately before it stamps an
//! event or stores a copy. After that point it executes to its end, and its outcome is the answer,
//! however long the call to the store takes. From then on only the wait for a sync can time out. A
//! client that receives `timeout` therefore knows that the write either was executed before the
//! answer, or will never be executed.

use super::write_gate::WritePass;
use ombak_runtime::Runtime;
use ombak_types::Error;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Decides between a write on another thread and its waiting caller: either the write begins or the
/// caller gives up, never both.
#[derive(Debug, Default)]
pub(crate) struct BeginOrGiveUp(AtomicU8);

impl BeginOrGiveUp {
    /// Returns false when the caller has given up.
    fn begin(&self) -> bool {
        self.change(BEGUN)
    }

    /// Returns false when the write has begun; the write then executes to its end.
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

/// The deadline by which a write must begin.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'a> {
    runtime: &'a dyn Runtime,
    /// `None` means that there is no limit.
    at: Option<Instant>,
    /// Set when the write runs on another thread than its waiting caller.
    turn: Option<&'a BeginOrGiveUp>,
    /// Set for the write of a client.
    pass: Option<WritePass<'a>>,
}

impl<'a> Deadline<'a> {
    /// The deadline `limit` after `began`; a `limit` of zero means that there is no deadline.
    pub(crate) fn after(began: Instant, limit: Duration, runtime: &'a dyn Runtime) -> Self {
        let at = if limit.is_zero() { None } else { began.checked_add(limit) };
        Self { runtime, at, turn: None, pass: None }
    }

    /// The deadline at `at`; `None` means that there is no deadline.
    pub(crate) const fn at_time(at: Option<Instant>, runtime: &'a dyn Runtime) -> Self {
        Self { runtime, at, turn: None, pass: None }
    }

    /// The same deadline for a write that must also begin before the gate closes.
    pub(crate) const fn with_pass(self, pass: WritePass<'a>) -> Self {
        Self { pass: Some(pass), ..self }
    }

    /// The deadline later by some time, but not later than `end`.
    pub(crate) fn postponed(self, by: Duration, end: Option<Instant>) -> Self {
        let later = self.at.map(|at| at + by);
        Self { at: later.map(|at| end.map_or(at, |end| end.min(at))), ..self }
    }

    /// The same deadline with the pass of another one.
    pub(crate) const fn with_pass_of(self, other: Deadline<'a>) -> Self {
        Self { pass: other.pass, ..self }
    }

    /// The pass of the write.
    pub(crate) const fn pass(&self) -> Option<WritePass<'a>> {
        self.pass
    }

    /// The moment itself, to be passed to another thread.
    pub(crate) const fn at(&self) -> Option<Instant> {
        self.at
    }

    /// The deadline of a write that runs on another thread than its waiting caller; the caller
    /// gives up through `turn`.
    pub(crate) const fn on_other_thread(
        at: Option<Instant>,
        runtime: &'a dyn Runtime,
        turn: &'a BeginOrGiveUp,
    ) -> Self {
        Self { runtime, at, turn: Some(turn), pass: None }
    }

    /// The time by the clock of the deadline.
    pub(super) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Fails with [`Error::Timeout`] when the deadline has passed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_over = self.at.is_some_and(|at| self.runtime.now() >= at);
        if is_over { Err(Error::Timeout) } else { Ok(()) }
    }

    /// Fails if the gate was closed to a write of this storage key since the write got its pass.
    pub(crate) fn check_pass(&self, key: &[u8]) -> Result<(), Error> {
        self.pass.map_or(Ok(()), |pass| pass.check(key))
    }

    /// Begins the write of a storage key. Called under the key's lock, immediately before an event
    /// is stamped or a copy is stored.
    pub(crate) fn begin(&self, key: &[u8]) -> Result<(), Error> {
        self.check()?;
        self.check_pass(key)?;
        match self.turn {
            Some(turn) if !turn.begin() => Err(Error::Timeout),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_runtime::{OtherClocks, TokioRuntime};
    use parking_lot::Mutex;
    use std::sync::Arc;

    fn clock() -> (OtherClocks, Arc<Mutex<Instant>>) {
        let now = Arc::new(Mutex::new(Instant::now()));
        let read = now.clone();
        (OtherClocks::of(Arc::new(TokioRuntime)).with_monotonic_clock(move || *read.lock()), now)
    }

    #[test]
    fn a_write_begins_before_its_deadline_only() {
        let (clock, now) = clock();
        let deadline = Deadline::after(clock.now(), Duration::from_secs(2), &clock);
        let unlimited = Deadline::after(clock.now(), Duration::ZERO, &clock);
        assert_eq!((deadline.at(), unlimited.at()), (Some(clock.now() + Duration::from_secs(2)), None));
        *now.lock() += Duration::from_millis(1999);
        assert_eq!(deadline.begin(b"k"), Ok(()));
        *now.lock() += Duration::from_millis(1);
        assert_eq!(deadline.begin(b"k"), Err(Error::Timeout));
        assert_eq!(unlimited.begin(b"k"), Ok(()));
    }

    #[test]
    fn either_the_write_begins_or_its_caller_gives_up() {
        let (clock, _) = clock();
        let at = Some(clock.now() + Duration::from_secs(2));
        let (given_up, begun) = (BeginOrGiveUp::default(), BeginOrGiveUp::default());
        assert!(given_up.give_up());
        let late = Deadline::on_other_thread(at, &clock, &given_up).begin(b"k");
        assert_eq!(late, Err(Error::Timeout), "whatever the clock says");
        assert_eq!(Deadline::on_other_thread(at, &clock, &begun).begin(b"k"), Ok(()));
        assert!(!begun.give_up());
    }
}
