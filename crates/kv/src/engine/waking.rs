//! Whether this node goes on after a pause.
//!
//! The process was stopped, or its machine was suspended. Meanwhile others have written in its
//! place, and it does not know that time has passed. So its copies may lack acknowledged writes
//! that were brought to other nodes, also if every member that it asks has slept as long. Reads
//! wait at such a node, as if its disk were slow, until the other members have told that they hold
//! nothing for it, or for at most [`WAKING_MAX`]. Copies are taken at once.
//!
//! A watcher looks at the clock often. A node that nobody watches is always awake.
//!
//! Hot: each request looks. No lock. Only forwarded puts, promises and coverage read the
//! clock for it.

use super::engine::Engine;
use crate::deliberate_faults::{BrokenRule, is_broken};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a node has not run when it counts as paused. It is about half of the time after which
/// others send no more requests to a node that does not answer.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(500);
/// How long a node waits for the other members after a pause, at most.
pub(crate) const WAKING_MAX: Duration = Duration::from_secs(1);
/// The time between two looks of a request that waits.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What a node knows about its pauses. Times are microseconds since `origin`.
#[derive(Debug)]
pub(crate) struct Waking {
    origin: Instant,
    /// When the watcher looked last; 0: nobody watches.
    looked_at_us: AtomicU64,
    /// Until when the node is not awake.
    until_us: AtomicU64,
}

/// Tells the pauses of a process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseNumber(u64);

impl Waking {
    pub(super) const fn new(origin: Instant) -> Self {
        Self { origin, looked_at_us: AtomicU64::new(0), until_us: AtomicU64::new(0) }
    }

    /// Whether the node goes on after a pause, at the present moment `now`. The watcher may not
    /// have noticed it yet.
    pub(crate) fn is_on(&self, now: Instant) -> bool {
        let looked_at_us = self.looked_at_us.load(Ordering::Acquire);
        if looked_at_us == 0 {
            return false;
        }
        let now_us = self.us_of(now);
        let is_on = now_us >= looked_at_us + us(PAUSE_MIN) || now_us < self.until_us.load(Ordering::Relaxed);
        is_on && !is_broken(BrokenRule::WakingNodesWait)
    }

    /// Notes that the watcher runs. If it finds that the node did not run for long, it returns the
    /// number of this pause.
    pub(crate) fn look(&self, now: Instant) -> Option<PauseNumber> {
        // Zero means that nobody watches.
        let now_us = self.us_of(now).max(1);
        let looked_at_us = self.looked_at_us.load(Ordering::Relaxed);
        let was_paused = looked_at_us != 0 && now_us >= looked_at_us + us(PAUSE_MIN);
        let until_us = now_us + us(WAKING_MAX);
        if was_paused {
            self.until_us.store(until_us, Ordering::Relaxed);
        }
        // Who sees the new look sees the end of the pause, too.
        self.looked_at_us.store(now_us, Ordering::Release);
        was_paused.then_some(PauseNumber(until_us))
    }

    /// Notes that the node is awake after this pause. After a later one it may not be.
    pub(crate) fn end(&self, PauseNumber(until_us): PauseNumber) {
        let _ = self.until_us.compare_exchange(until_us, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Notes that nobody watches any more.
    pub(crate) fn stop(&self) {
        self.looked_at_us.store(0, Ordering::Relaxed);
    }

    fn us_of(&self, at: Instant) -> u64 {
        us(at.saturating_duration_since(self.origin))
    }
}

/// A duration in microseconds. A clock does not show later moments than 500,000 years.
const fn us(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000 + duration.subsec_micros() as u64
}

impl Engine {
    /// Waits until the node is awake, or until the deadline.
    pub(crate) async fn awake(&self, deadline: Option<Instant>) {
        let runtime = &*self.config.runtime;
        let patience = runtime.now() + WAKING_MAX;
        let until = deadline.map_or(patience, |deadline| deadline.min(patience));
        loop {
            let now = runtime.now();
            if now >= until || !self.waking.is_on(now) {
                return;
            }
            runtime.sleep_until(until.min(now + LOOK_AGAIN)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_node_that_did_not_run_is_waking_until_it_knows_more_or_for_a_second() {
        let origin = Instant::now();
        let waking = Waking::new(origin);
        assert!(!waking.is_on(origin + MS(9_000)), "nobody watches");
        assert_eq!(waking.look(origin), None, "the first look says nothing");
        assert_eq!([waking.look(origin + MS(100)), waking.look(origin + MS(599))], [None; 2]);
        assert!(!waking.is_on(origin + MS(1_098)));
        // A request is served before the watcher runs.
        assert!(waking.is_on(origin + MS(1_099)) && waking.is_on(origin + MS(6_000)));
        let first = waking.look(origin + MS(6_001)).unwrap();
        for ms in (6_001..7_001).step_by(100) {
            assert!(waking.is_on(origin + MS(ms)));
            assert_eq!(waking.look(origin + MS(ms)), None);
        }
        assert!(!waking.is_on(origin + MS(7_001)));
        let second = waking.look(origin + MS(9_000)).unwrap();
        waking.end(first);
        assert!(waking.is_on(origin + MS(9_001)), "nobody was asked after this pause");
        waking.end(second);
        assert!(!waking.is_on(origin + MS(9_002)));
        waking.stop();
        assert!(!waking.is_on(origin + MS(90_000)));
    }
}
