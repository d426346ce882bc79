//! A thread that repeats its work at an interval.

use crate::runtime::Periodic;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tracing::error;

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Sleeps for `interval` or until stopped. Returns whether it was stopped.
    fn sleep(&self, interval: Duration) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, interval);
        }
        *stopped
    }
}

/// A running thread.
pub(super) struct PeriodicThread {
    stop: Arc<Stop>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl PeriodicThread {
    pub(super) fn start(name: &str, interval: Duration, mut round: Box<dyn FnMut() + Send>) -> io::Result<Self> {
        let stop = Arc::<Stop>::default();
        let (seen, what) = (stop.clone(), name.to_owned());
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            while !seen.sleep(interval) {
                if catch_unwind(AssertUnwindSafe(&mut round)).is_err() {
                    error!(thread = what, "a round of background work panicked; the next one follows");
                }
            }
        })?;
        Ok(Self { stop, thread: Mutex::new(Some(thread)) })
    }
}

impl Periodic for PeriodicThread {
    fn stop(&self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread.filter(|t| t.thread().id() != thread::current().id()) {
            // A panic was already caught and logged.
            let _ = thread.join();
        }
    }
}

impl Drop for PeriodicThread {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn repeats_its_work_after_a_panic_and_until_it_is_stopped() {
        let (tell, told) = sync_channel(0);
        let mut rounds = 0;
        let work = PeriodicThread::start(
            "test",
            Duration::from_millis(1),
            Box::new(move || {
                rounds += 1;
                assert_ne!(rounds, 2, "on purpose");
                // The receiver is gone when the test ends.
                let _ = tell.send(rounds);
            }),
        )
        .unwrap();
        assert_eq!((told.recv_timeout(LIMIT), told.recv_timeout(LIMIT)), (Ok(1), Ok(3)));
        drop(told);
        work.stop();
        work.stop();
        assert_eq!(Arc::strong_count(&work.stop), 1, "the thread has ended");
    }
}
