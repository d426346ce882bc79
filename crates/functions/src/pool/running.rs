//! What a thread is doing, for those who watch it.

use super::Shared;
use crate::process::Killer;
use crate::{FunctionError, Owner};
use ombak_script::Limits;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a caller learns that its work will not be done.
type Fail = Arc<dyn Fn(FunctionError) + Send + Sync>;

/// Why the process of a thread was ended during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The call did not end when its time was over.
    Overdue,
    /// Others wait, and this call has run for long.
    Displaced,
    /// The pool stops.
    Stopped,
}

/// What a thread of a pool is doing.
pub(crate) struct Running {
    shared: Arc<Shared>,
    /// The count of the lane.
    died_total: Arc<AtomicU64>,
    now: Mutex<Now>,
}

/// What a thread is doing now.
#[derive(Default)]
struct Now {
    work: Option<CurrentWork>,
    /// When the call has to be over; `None` without a call.
    call_ends_at: Option<Instant>,
    /// Ends the process of the thread.
    killer: Option<Killer>,
    /// Why the process was ended. It stays until the thread has seen it.
    ended: Option<Ended>,
    /// Whether the process has been given the lowest priority.
    gives_way: bool,
    sessions: usize,
}

struct CurrentWork {
    owner: Owner,
    began_at: Instant,
    fail: Fail,
}

/// Work that runs, as the watcher sees it.
pub(super) struct Seen {
    pub(super) owner: Owner,
    pub(super) age: Duration,
    /// Whether its process is being ended.
    pub(super) is_ending: bool,
}

impl Running {
    pub(super) fn new(shared: Arc<Shared>, died_total: Arc<AtomicU64>) -> Self {
        Self { shared, died_total, now: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.runtime.now()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.shared.config.limits
    }

    /// Says that a call begins, and when it has to be over. Returns whether it may begin.
    pub(crate) fn begin_call(&self, ends_at: Instant) -> bool {
        let mut now = self.now.lock();
        now.call_ends_at = Some(ends_at);
        // Who stops the pool says so first and looks for calls afterwards.
        !self.is_stopping()
    }

    /// Says that a call is over. Returns why the process was ended, if it was; then the thread
    /// needs another one.
    pub(crate) fn end_call(&self) -> Option<Ended> {
        let mut now = self.now.lock();
        now.call_ends_at = None;
        now.ended
    }

    /// Keeps the way to end the process of this thread. `None`: it has none.
    pub(crate) fn set_process(&self, killer: Option<Killer>) {
        let mut now = self.now.lock();
        if now.ended.is_some() {
            killer.iter().for_each(Killer::kill);
        }
        if killer.is_none() {
            (now.ended, now.gives_way) = (None, false);
        }
        now.killer = killer;
    }

    /// Whether the thread should have another process for the work that comes.
    pub(super) fn needs_new_process(&self) -> bool {
        let now = self.now.lock();
        now.ended.is_some() || now.gives_way
    }

    /// Ends the process if a call runs in it.
    pub(super) fn end_process(&self, why: Ended) {
        let mut now = self.now.lock();
        if now.call_ends_at.is_some() && now.ended.is_none() {
            now.ended = Some(why);
            now.killer.iter().for_each(Killer::kill);
        }
    }

    /// Ends the process if a call should have been over for a while. Returns whether it did.
    pub(super) fn end_overdue(&self, at: Instant, overdue_max: Duration) -> bool {
        let mut now = self.now.lock();
        let is_overdue = now.call_ends_at.is_some_and(|ends_at| at > ends_at + overdue_max) && now.ended.is_none();
        if is_overdue {
            now.ended = Some(Ended::Overdue);
            now.killer.iter().for_each(Killer::kill);
        }
        is_overdue
    }

    /// Gives the process the lowest priority until the end of the work.
    pub(super) fn let_give_way(&self) {
        let mut now = self.now.lock();
        if !now.gives_way {
            now.gives_way = true;
            now.killer.iter().for_each(Killer::give_way);
        }
    }

    /// Keeps whose work begins, and the way to its caller.
    pub(super) fn begin_work(&self, owner: Owner, fail: Fail) {
        self.now.lock().work = Some(CurrentWork { owner, began_at: self.shared.runtime.now(), fail });
    }

    /// Takes the way to the caller. Whoever takes it is the only one who uses it.
    pub(super) fn end_work(&self) -> Option<Fail> {
        self.now.lock().work.take().map(|work| work.fail)
    }

    /// The work that runs.
    pub(super) fn seen(&self, at: Instant) -> Option<Seen> {
        let now = self.now.lock();
        let work = now.work.as_ref()?;
        let age = at.saturating_duration_since(work.began_at);
        Some(Seen { owner: work.owner.clone(), age, is_ending: now.ended.is_some() })
    }

    /// Counts that the process has ended by itself.
    pub(super) fn note_died(&self) {
        self.died_total.fetch_add(1, Ordering::Relaxed);
    }

    /// Says how many sessions the thread has.
    pub(super) fn set_sessions(&self, sessions: usize) {
        self.now.lock().sessions = sessions;
    }

    /// How many sessions the thread has.
    pub(super) fn sessions(&self) -> usize {
        self.now.lock().sessions
    }
}
