//! Engines on one thread, with a time that passes when nothing is left to do.

use ombak_runtime::{BoxFuture, JobQueue, JobsAtOnce, NoRandomBytes, Periodic, Runtime};
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Numbers that a seed decides.
pub(super) struct Random(Mutex<u64>);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    pub(super) fn next(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn once_in(&self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// One thread, and a time that passes when nothing is left to do.
pub(super) struct OneThread(pub(super) Arc<Random>);

struct Rounds(Arc<AtomicBool>);

impl Periodic for Rounds {
    fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

thread_local! {
    /// What the wall clock of this thread has told last.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

impl Runtime for OneThread {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn wall_clock(&self) -> UnixMicros {
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        let began = *BEGAN.get_or_init(|| self.now());
        let now = 1_700_000_000_000_000 + self.now().saturating_duration_since(began).as_micros() as u64;
        // Two writes one after the other have different times.
        let now = now.max(LAST.get() + 1);
        LAST.set(now);
        UnixMicros(now)
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        bytes.iter_mut().for_each(|byte| *byte = self.0.next() as u8);
        Ok(())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep_until(at.into()))
    }

    fn work_in_bursts(&self) {}

    fn start_pool(&self, _: &str, _: usize, _: usize) -> io::Result<Arc<dyn JobQueue>> {
        Ok(Arc::new(JobsAtOnce))
    }

    fn start_periodic(
        &self,
        _: &str,
        interval: Duration,
        mut round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = stopped.clone();
        drop(tokio::spawn(async move {
            while !seen.load(Ordering::SeqCst) {
                tokio::time::sleep(interval).await;
                round();
            }
        }));
        Ok(Box::new(Rounds(stopped)))
    }
}
