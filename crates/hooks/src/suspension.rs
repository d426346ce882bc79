//! Hooks that keep reaching their time limit rest for a while.
//!
//! Such a hook costs the node the limit for each put, and its clients wait so long for an error.
//! While it is suspended its puts are refused at once. Only the hook of that bucket is suspended.

use ombak_stats::Sum;
use ombak_types::{Bucket, ShownKey};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tracing::warn;

/// How often a hook may reach its limit in one window.
const LIMITS_MAX: u64 = 3;
/// A hook that reaches its limit in a smaller share of its calls is not suspended.
const CALLS_FOR_EACH_LIMIT: u64 = 10;
/// For how long calls are counted together.
const WINDOW: Duration = Duration::from_secs(60);
/// The first suspension; each one that follows soon is twice as long, up to the longest.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
/// How many hooks of buckets are remembered.
const REMEMBERED_MAX: usize = 1000;

/// A hook of a bucket.
type HookOfBucket = (Bucket, String);

/// The hooks of buckets that have reached their limit not long ago.
#[derive(Debug, Default)]
pub(crate) struct Suspensions {
    /// A hook is added when it reaches its limit, so this is empty on a healthy node.
    hooks: Mutex<HashMap<HookOfBucket, Record>>,
    /// How often a hook was suspended.
    pub(crate) total: Sum,
    /// How many calls were refused.
    pub(crate) refused: Sum,
}

#[derive(Debug)]
struct Record {
    window_began_at: Instant,
    calls: u64,
    limits: u64,
    /// The last suspension, if there was one in this window or the one before.
    last: Option<Suspended>,
}

#[derive(Clone, Copy, Debug)]
struct Suspended {
    ends_at: Instant,
    time: Duration,
}

impl Suspensions {
    /// Whether a hook may be called. A call that may be is counted.
    pub(crate) fn admits(&self, bucket: &Bucket, hook: &str, now: Instant) -> bool {
        let mut hooks = self.hooks.lock();
        if hooks.is_empty() {
            return true;
        }
        let Some(record) = hooks.get_mut(&(bucket.clone(), hook.to_owned())) else { return true };
        if record.is_suspended(now) {
            self.refused.add(1);
            return false;
        }
        record.begin_window_if_due(now);
        record.calls += 1;
        true
    }

    /// Whether a hook was suspended after a call was admitted. Such a call counts as refused.
    pub(crate) fn is_suspended(&self, bucket: &Bucket, hook: &str, now: Instant) -> bool {
        let hooks = self.hooks.lock();
        if hooks.is_empty() {
            return false;
        }
        let record = hooks.get(&(bucket.clone(), hook.to_owned()));
        let is_suspended = record.is_some_and(|record| record.is_suspended(now));
        self.refused.add(u64::from(is_suspended));
        is_suspended
    }

    /// Notes that a call has reached its limit. Suspends the hook if that happens too often.
    pub(crate) fn note_limit(&self, bucket: &Bucket, hook: &str, now: Instant) {
        let mut hooks = self.hooks.lock();
        if hooks.len() >= REMEMBERED_MAX {
            hooks.retain(|_, record| !record.is_forgotten(now));
        }
        if hooks.len() >= REMEMBERED_MAX {
            return;
        }
        let record = hooks.entry((bucket.clone(), hook.to_owned())).or_insert_with(|| Record::new(now));
        let Some(time) = record.note_limit(now) else { return };
        self.total.add(1);
        let ShownKey { bucket_type, bucket, .. } = ShownKey::of_bucket(bucket);
        warn!(
            hook,
            %bucket_type,
            %bucket,
            suspended_s = time.as_secs(),
            "a hook is suspended, because it keeps reaching its time limit; its puts are refused with `overload`"
        );
    }

    /// How many hooks are suspended.
    pub(crate) fn suspended(&self, now: Instant) -> usize {
        self.hooks.lock().values().filter(|record| record.is_suspended(now)).count()
    }
}

impl Record {
    const fn new(now: Instant) -> Self {
        // The call that has reached its limit was made before anybody counted.
        Self { window_began_at: now, calls: 1, limits: 0, last: None }
    }

    fn is_suspended(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| last.ends_at > now)
    }

    fn begin_window_if_due(&mut self, now: Instant) {
        if now.saturating_duration_since(self.window_began_at) < WINDOW {
            return;
        }
        (self.window_began_at, self.calls, self.limits) = (now, 0, 0);
        self.last = self.last.filter(|last| now.saturating_duration_since(last.ends_at) < WINDOW);
    }

    /// Returns for how long the hook is suspended from now on, if it is.
    fn note_limit(&mut self, now: Instant) -> Option<Duration> {
        // Calls that were under way when the hook was suspended tell nothing new.
        if self.is_suspended(now) {
            return None;
        }
        self.begin_window_if_due(now);
        self.limits += 1;
        // A hook that was suspended not long ago has shown nothing since.
        let limits_max = if self.last.is_some() { 1 } else { LIMITS_MAX };
        if self.limits < limits_max || self.limits * CALLS_FOR_EACH_LIMIT < self.calls {
            return None;
        }
        let time = self.last.map_or(FIRST, |last| (last.time * 2).min(LONGEST));
        self.last = Some(Suspended { ends_at: now + time, time });
        (self.window_began_at, self.calls, self.limits) = (now + time, 0, 0);
        Some(time)
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.window_began_at) >= WINDOW * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: &str = "slow";

    fn bucket() -> Bucket {
        Bucket::untyped("b")
    }

    struct World {
        suspensions: Suspensions,
        now: Instant,
    }

    impl World {
        fn new() -> Self {
            Self { suspensions: Suspensions::default(), now: Instant::now() }
        }

        fn is_admitted(&self) -> bool {
            self.suspensions.admits(&bucket(), HOOK, self.now)
        }

        /// Makes a call that reaches its limit. Returns whether it was admitted.
        fn reach_limit(&self) -> bool {
            let is_admitted = self.is_admitted();
            if is_admitted {
                self.suspensions.note_limit(&bucket(), HOOK, self.now);
            }
            is_admitted
        }

        /// For how many seconds no call is admitted.
        fn suspended_s(&mut self) -> u64 {
            let began = self.now;
            while !self.is_admitted() {
                self.now += Duration::from_secs(1);
            }
            (self.now - began).as_secs()
        }
    }

    #[test]
    fn a_hook_is_suspended_at_its_third_limit_and_only_in_its_bucket() {
        let world = World::new();
        assert_eq!([(); 4].map(|()| world.reach_limit()), [true, true, true, false]);
        assert!(world.suspensions.admits(&Bucket::untyped("c"), HOOK, world.now));
        assert!(world.suspensions.admits(&bucket(), "other", world.now));
        assert_eq!((world.suspensions.total.get(), world.suspensions.refused.get()), (1, 1));
        assert_eq!(world.suspensions.suspended(world.now), 1);
    }

    #[test]
    fn a_hook_that_goes_on_so_is_suspended_for_longer_each_time() {
        let mut world = World::new();
        let mut times = Vec::new();
        for _ in 0..3 {
            world.reach_limit();
        }
        for _ in 0..6 {
            times.push(world.suspended_s());
            world.reach_limit();
        }
        assert_eq!(times, [5, 10, 20, 40, 60, 60]);
    }

    #[test]
    fn a_hook_that_behaves_for_a_while_is_as_good_as_new() {
        let mut world = World::new();
        for _ in 0..3 {
            world.reach_limit();
        }
        world.suspended_s();
        world.now += WINDOW;
        assert!(world.is_admitted());
        world.now += WINDOW;
        assert_eq!([(); 4].map(|()| world.reach_limit()), [true, true, true, false]);
        assert_eq!(world.suspended_s(), FIRST.as_secs());
    }

    #[test]
    fn a_hook_that_seldom_reaches_its_limit_is_not_suspended() {
        let mut world = World::new();
        world.reach_limit();
        for call in 1..500 {
            world.now += Duration::from_millis(100);
            assert!(if call % 15 == 0 { world.reach_limit() } else { world.is_admitted() }, "{call}");
        }
        assert_eq!(world.suspensions.total.get(), 0);
    }

    #[test]
    fn a_bounded_number_of_hooks_is_remembered() {
        let world = World::new();
        for number in 0..REMEMBERED_MAX + 10 {
            world.suspensions.note_limit(&Bucket::untyped(number.to_string()), HOOK, world.now);
        }
        assert_eq!(world.suspensions.hooks.lock().len(), REMEMBERED_MAX);
        let later = world.now + WINDOW * 2;
        world.suspensions.note_limit(&bucket(), HOOK, later);
        assert_eq!(world.suspensions.hooks.lock().len(), 1);
    }
}
