//! What a thread is doing, for those who watch it.

use super::Shared;
use crate::FunctionError;
use ombak_runtime::pause_if_due;
use ombak_script::{Clock, ErrorKind, Limits, ScriptError};
use parking_lot::Mutex;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// No call is running.
const NO_CALL: u64 = u64::MAX;

/// How a caller learns that its work will not be done.
type Fail = Arc<dyn Fn(FunctionError) + Send + Sync>;

/// What a thread of a pool is doing.
pub(crate) struct Running {
    shared: Arc<Shared>,
    /// When the call has to be over, in milliseconds since the pool began.
    call_ends_ms: AtomicU64,
    /// Set under the lock of the state, when the thread counts as stuck.
    is_abandoned: AtomicBool,
    fail: Mutex<Option<Fail>>,
    sessions: AtomicUsize,
}

/// A call that is running. Dropping it says that the thread came back.
pub(crate) struct Timed<'a>(&'a Running);

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        self.0.call_ends_ms.store(NO_CALL, Ordering::Release);
    }
}

impl Running {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (call_ends_ms, is_abandoned) = (AtomicU64::new(NO_CALL), AtomicBool::new(false));
        Self { shared, call_ends_ms, is_abandoned, fail: Mutex::new(None), sessions: AtomicUsize::new(0) }
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.runtime.now()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    /// What the error of a call means for work with this deadline, if it says only that a stop of
    /// the pool or the deadline has ended the call.
    pub(crate) fn end_of_work(&self, error: &ScriptError, deadline: Instant) -> Option<FunctionError> {
        match error.kind {
            ErrorKind::Time if self.is_stopping() => Some(FunctionError::Stopped),
            ErrorKind::Time if self.now() >= deadline => Some(FunctionError::Late),
            _ => None,
        }
    }

    /// Says that a call begins, and when it has to be over.
    pub(crate) fn begin_call(&self, ends_at: Instant) -> Timed<'_> {
        self.call_ends_ms.store(self.since_began_ms(ends_at), Ordering::Release);
        Timed(self)
    }

    /// Whether a call should have been over for a while.
    pub(super) fn is_overdue(&self) -> bool {
        let ends_ms = self.call_ends_ms.load(Ordering::Acquire);
        let overdue_ms = u64::try_from(self.shared.config.overdue_max.as_millis()).unwrap_or(NO_CALL);
        self.since_began_ms(self.now()) > ends_ms.saturating_add(overdue_ms)
    }

    fn since_began_ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.shared.began).as_millis()).unwrap_or(NO_CALL - 1)
    }

    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire)
    }

    /// Keeps the way to the caller of the work that begins.
    pub(super) fn begin_work(&self, fail: Fail) {
        *self.fail.lock() = Some(fail);
    }

    /// Takes the way to the caller. Whoever takes it is the only one who uses it.
    pub(super) fn take_fail(&self) -> Option<Fail> {
        self.fail.lock().take()
    }

    /// Says how many sessions the thread has.
    pub(super) fn set_sessions(&self, sessions: usize) {
        self.sessions.store(sessions, Ordering::Relaxed);
    }

    /// How many sessions the thread has.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// The clock of a session on this thread. When the pool stops, the time of every call is over.
    pub(super) fn clock(self: &Arc<Self>) -> Clock {
        let running = self.clone();
        Rc::new(move || {
            // The engine asks for the time after some thousand calls and jumps back, so long calls
            // pause here.
            pause_if_due();
            match running.is_stopping() {
                true => Duration::MAX,
                false => running.now().saturating_duration_since(running.shared.began),
            }
        })
    }

    pub(super) fn limits(&self) -> Limits {
        self.shared.config.limits
    }
}
