//! The times of a job on another thread.

use super::slow_log::SlowLog;
use super::spent::{Spent, micros_between};
use ombak_runtime::Runtime;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// When a job was queued and when it began, if requests can be slow. Otherwise nothing reads a
/// clock. The job and the one who waits for it share this.
#[derive(Clone)]
pub(crate) struct JobTimes(Option<Arc<Times>>);

struct Times {
    queued: Instant,
    begun: OnceLock<Instant>,
}

impl JobTimes {
    /// A job that is queued now.
    pub(crate) fn queued(log: &SlowLog, runtime: &dyn Runtime) -> Self {
        Self(log.is_on().then(|| Arc::new(Times { queued: runtime.now(), begun: OnceLock::new() })))
    }

    /// The job begins. Called by the job, once.
    pub(crate) fn begin(&self, runtime: &dyn Runtime) {
        if let Some(times) = &self.0 {
            // Only a second call would find a value.
            let _ = times.begun.set(runtime.now());
        }
    }

    /// Adds the wait for a thread and the time of the job, which has ended by now or is waited for
    /// no longer.
    pub(crate) fn add_to(&self, spent: &mut Spent, runtime: &dyn Runtime) {
        let Some(times) = &self.0 else { return };
        let now = runtime.now();
        match times.begun.get() {
            Some(begun) => {
                spent.waiting_us += micros_between(times.queued, *begun);
                spent.store_us += micros_between(*begun, now);
            }
            None => spent.waiting_us += micros_between(times.queued, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_runtime::{OtherClocks, TokioRuntime};
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::time::Duration;

    #[test]
    fn the_time_before_the_begin_is_waiting_and_the_rest_is_of_the_store() {
        let (start, ms) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let passed = ms.clone();
        let runtime = OtherClocks::of(Arc::new(TokioRuntime))
            .with_monotonic_clock(move || start + Duration::from_millis(passed.load(SeqCst)));
        let spent = |times: &JobTimes| {
            let mut spent = Spent::default();
            times.add_to(&mut spent, &runtime);
            spent
        };
        let log = SlowLog::new(Some(Duration::from_secs(1)));
        let times = JobTimes::queued(&log, &runtime);
        ms.store(7, SeqCst);
        assert_eq!(spent(&times), Spent { waiting_us: 7_000, ..Spent::default() });
        ms.store(10, SeqCst);
        times.clone().begin(&runtime);
        ms.store(15, SeqCst);
        assert_eq!(spent(&times), Spent { waiting_us: 10_000, store_us: 5_000, ..Spent::default() });
        log.set_limit(None);
        let off = JobTimes::queued(&log, &runtime);
        ms.store(20, SeqCst);
        assert_eq!(spent(&off), Spent::default());
    }
}
