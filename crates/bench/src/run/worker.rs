//! One worker: chooses an operation, runs it when it is due, and counts it.
//!
//! Hot path.

use super::mix::Mix;
use super::schedule::Schedule;
use super::stop::Stop;
use crate::drivers::{Outcome, Reason, Worker};
use crate::generators::{Draw, Random};
use crate::stats::Tally;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Separates the random numbers for the order of operations from those for keys and values.
const SEED_OF_ORDER: u64 = 0x006f_7264_6572;

/// How late a timer of the runtime may fire. It has a resolution of a millisecond and rounds up.
const CLOCK_LATE_MAX: Duration = Duration::from_millis(2);

/// The reason for operations that were cut off by the end of the run.
const UNFINISHED: Reason = Reason::Borrowed("unfinished");

/// The reason for operations whose worker panicked, as in basho_bench (docs/riak/basho-bench.md
/// §5).
const CRASH: Reason = Reason::Borrowed("crash");

/// Everything that a worker needs.
pub(super) struct Job<'a> {
    pub(super) driver: Worker,
    pub(super) draw: Draw,
    pub(super) random: Random,
    pub(super) mix: &'a Mix,
    pub(super) schedule: Schedule,
    /// The time when the next operation, which has not begun, is due. `None` without a schedule.
    pub(super) due: Option<Instant>,
    /// Whether the driver or its generators have ended.
    pub(super) exhausted: bool,
    /// The tally of this thread. Only the observer also locks it, once a second.
    pub(super) tally: &'a Mutex<Tally>,
    pub(super) stop: &'a Stop,
    pub(super) shutdown_on_error: bool,
    pub(super) start: Instant,
}

/// The random numbers for the order of a worker's operations.
pub(super) fn order_of(seed: [u64; 3], worker: usize) -> Random {
    Random::new([seed[0], seed[1], seed[2] ^ SEED_OF_ORDER], worker as u64)
}

/// The time from which the latency of an operation is measured, and how late it began.
#[derive(Clone, Copy)]
struct Timing {
    counted_from: Instant,
    /// How late the operation began; `None` without a schedule.
    late: Option<Duration>,
}

/// An operation that has begun. If the run is cut off before it ends, or if its worker panics, it
/// counts as failed, so that no operation is lost from the counts.
struct InFlight<'a> {
    operation: usize,
    timing: Timing,
    /// The bytes of the value that was sent at the beginning. It is 0 if operations run one at a
    /// time.
    value_bytes: u64,
    tally: &'a Mutex<Tally>,
    ended: bool,
}

impl<'a> InFlight<'a> {
    fn new(operation: usize, timing: Timing, value_bytes: u64, tally: &'a Mutex<Tally>) -> Self {
        Self { operation, timing, value_bytes, tally, ended: false }
    }

    fn end(mut self) -> (Timing, u64) {
        self.ended = true;
        (self.timing, self.value_bytes)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let reason = if std::thread::panicking() { &CRASH } else { &UNFINISHED };
            lock(self.tally).failed(self.operation, reason);
        }
    }
}

impl Job<'_> {
    pub(super) async fn run(mut self) {
        self.due = self.next_due();
        if self.driver.depth() > 1 {
            self.run_pipelined().await;
        } else {
            self.run_one_by_one().await;
        }
    }

    async fn run_one_by_one(&mut self) {
        while let Some(timing) = self.wait_until_due().await {
            let operation = self.mix.draw(&mut self.random);
            let current = InFlight::new(operation, timing, 0, self.tally);
            let mut outcome = self.driver.run(operation, &mut self.draw).await;
            while let Outcome::Retry(reason) = outcome {
                self.failed(operation, &reason);
                if self.stop.is_due(Instant::now()) {
                    current.end();
                    return;
                }
                outcome = self.driver.run(operation, &mut self.draw).await;
            }
            let (timing, _) = current.end();
            let value_bytes = self.draw.take_value_bytes();
            self.count(operation, outcome, timing, value_bytes);
            if self.exhausted {
                return;
            }
            // An operation that ended without waiting must not prevent the thread's other workers
            // from running.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Keeps as many operations in flight as the driver asks for. At the end, waits for the
    /// operations in flight.
    async fn run_pipelined(&mut self) {
        let depth = self.driver.depth();
        let mut in_flight: VecDeque<InFlight<'_>> = VecDeque::with_capacity(depth);
        loop {
            let now = Instant::now();
            let mut ending = self.exhausted || self.stop.is_due(now);
            while !ending && in_flight.len() < depth && self.due.is_none_or(|due| due <= now) {
                let operation = self.mix.draw(&mut self.random);
                let timing = Timing { counted_from: self.due.unwrap_or(now), late: self.due.map(|due| now - due) };
                self.due = self.next_due();
                let outcome = self.driver.send(operation, &mut self.draw);
                let value_bytes = self.draw.take_value_bytes();
                match outcome {
                    None => in_flight.push_back(InFlight::new(operation, timing, value_bytes, self.tally)),
                    // After an operation that ended at once, the thread's other workers get their
                    // turn.
                    Some(outcome) => {
                        self.count(operation, outcome, timing, value_bytes);
                        ending |= self.exhausted;
                        break;
                    }
                }
            }
            if in_flight.is_empty() {
                if ending {
                    return;
                }
                match self.due {
                    Some(due) => self.sleep_until(due).await,
                    None => tokio::task::yield_now().await,
                }
                continue;
            }
            let room_at = self.due.filter(|_| !ending && in_flight.len() < depth);
            let received = match room_at {
                None => self.driver.receive().await,
                Some(at) => {
                    tokio::select! {
                        biased;
                        received = self.driver.receive() => received,
                        () = tokio::time::sleep_until(at.into()) => continue,
                    }
                }
            };
            // The driver has lost count of the operations that were begun if it has none in flight.
            let (Some((operation, outcome)), Some(current)) = (received, in_flight.pop_front()) else { return };
            let (timing, value_bytes) = current.end();
            self.count(operation, outcome, timing, value_bytes);
        }
    }

    fn next_due(&mut self) -> Option<Instant> {
        self.schedule.next(&mut self.random).map(|due| self.start + due)
    }

    /// Waits until the next operation is due; `None` at the end of the run.
    async fn wait_until_due(&mut self) -> Option<Timing> {
        let now = Instant::now();
        if self.stop.is_due(now) {
            return None;
        }
        let Some(due) = self.due else { return Some(Timing { counted_from: now, late: None }) };
        if due <= now {
            self.due = self.next_due();
            return Some(Timing { counted_from: due, late: Some(now - due) });
        }
        self.sleep_until(due).await;
        let now = Instant::now();
        if self.stop.is_due(now) {
            return None;
        }
        self.due = self.next_due();
        let late = now - due;
        // The worker was idle when the operation was due, so a small delay of its timer must not
        // count against the measured system. A longer delay is caused by the machine and counts.
        let punctual = late <= CLOCK_LATE_MAX;
        Some(if punctual {
            Timing { counted_from: now, late: Some(Duration::ZERO) }
        } else {
            Timing { counted_from: due, late: Some(late) }
        })
    }

    async fn sleep_until(&self, at: Instant) {
        let at = self.stop.end().map_or(at, |end| end.min(at));
        tokio::select! {
            () = tokio::time::sleep_until(at.into()) => {}
            () = self.stop.wait() => {}
        }
    }

    fn count(&mut self, operation: usize, outcome: Outcome, timing: Timing, value_bytes: u64) {
        match outcome {
            Outcome::Done { units } => {
                let latency = timing.counted_from.elapsed();
                let mut tally = self.tally();
                tally.done(operation, units, micros(latency));
                tally.sent(value_bytes);
                if let Some(late) = timing.late {
                    tally.queued(operation, micros(late));
                }
            }
            Outcome::Uncounted => {}
            Outcome::Failed(reason) | Outcome::Retry(reason) => self.failed(operation, &reason),
            Outcome::Stop => self.exhausted = true,
        }
    }

    #[cold]
    fn failed(&self, operation: usize, reason: &Reason) {
        self.tally().failed(operation, reason);
        if self.shutdown_on_error {
            self.stop.request_for_error();
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(self.tally)
    }
}

/// With a schedule, counts the operations that were due before the end of the run but did not
/// begin, because their worker was busy. They were late all the same.
impl Drop for Job<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        let end = self.stop.end().map_or(now, |end| end.min(now));
        while let Some(due) = self.due.filter(|due| !self.exhausted && *due + CLOCK_LATE_MAX < end) {
            let operation = self.mix.draw(&mut self.random);
            self.tally().never_began(operation, micros(end - due));
            self.due = self.next_due();
        }
    }
}

/// Locks the tally. A panic cannot leave it inconsistent, because the counts are complete after
/// every call.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Mode;
    use crate::drivers::testing;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn reasons(tally: &Mutex<Tally>) -> Vec<(String, u64)> {
        lock(tally).errors().iter().map(|error| (error.reason.to_string(), error.count)).collect()
    }

    #[test]
    fn what_a_panic_or_the_end_cuts_off_is_counted() {
        let tally = Mutex::new(Tally::new(1));
        let timing = Timing { counted_from: Instant::now(), late: None };
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _current = InFlight::new(0, timing, 0, &tally);
            panic!("a bug of a driver");
        }));
        assert!(panicked.is_err());
        assert_eq!(reasons(&tally), [("crash".into(), 1)]);
        drop(InFlight::new(0, timing, 0, &tally));
        InFlight::new(0, timing, 0, &tally).end();
        assert_eq!(reasons(&tally), [("crash".into(), 1), ("unfinished".into(), 1)]);
    }

    #[tokio::test]
    async fn what_was_due_and_never_began_is_late() {
        let tally = Mutex::new(Tally::new(1));
        let plan = testing::plan("basho_bench_driver_null", "", &["absolutely_nothing"]).unwrap();
        let end = Instant::now();
        let start = end.checked_sub(Duration::from_secs(1)).unwrap();
        let mix = Mix::new(&testing::operations(&["absolutely_nothing"]), |_| false).unwrap();
        let stop = Stop::new(Some(end));
        let job = Job {
            driver: plan.connect(1).await.unwrap(),
            draw: testing::draw("{uniform_int, 10}", "{fixed_bin, 10}"),
            random: order_of([1, 2, 3], 1),
            mix: &mix,
            schedule: Schedule::new(Mode::Rate(1000.0)),
            due: None,
            exhausted: false,
            tally: &tally,
            stop: &stop,
            shutdown_on_error: false,
            start,
        };
        job.run().await;
        let never_began = lock(&tally).count_never_began();
        assert!((980..=1000).contains(&never_began), "{never_began}");
        let queue = lock(&tally).summaries()[0].queue.unwrap();
        assert!((900_000..=1_000_000).contains(&queue.max_us), "{queue:?}");
    }
}
