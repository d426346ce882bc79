//! One worker: draws an operation, does it when it is due, counts it.
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

/// Numbers of the worker's own, beside those that its keys and values are drawn from.
const SEED_OF_ORDER: u64 = 0x006f_7264_6572;

/// How late the clock of a runtime may ring: it counts in milliseconds, and rounds up.
const CLOCK_LATE_MAX: Duration = Duration::from_millis(2);

/// The reason of operations that the end of the run cut off.
const UNFINISHED: Reason = Reason::Borrowed("unfinished");

/// What a worker needs.
pub(super) struct Job<'a> {
    pub(super) driver: Worker,
    pub(super) draw: Draw,
    pub(super) random: Random,
    pub(super) mix: &'a Mix,
    pub(super) schedule: Schedule,
    /// Of this thread alone; locked by the reporter too, once a second.
    pub(super) tally: &'a Mutex<Tally>,
    pub(super) stop: &'a Stop,
    pub(super) shutdown_on_error: bool,
    pub(super) start: Instant,
}

/// The random numbers that order a worker's operations.
pub(super) fn order_of(seed: [u64; 3], worker: usize) -> Random {
    Random::new([seed[0], seed[1], seed[2] ^ SEED_OF_ORDER], worker as u64)
}

/// When an operation may begin, and from when its latency counts.
#[derive(Clone, Copy)]
struct Turn {
    counted_from: Instant,
    /// How late it began; `None` without a schedule.
    late: Option<Duration>,
}

/// An operation that has begun. If the run is cut off before it ends, it counts as failed: it never vanishes.
struct Begun<'a> {
    operation: usize,
    turn: Turn,
    tally: &'a Mutex<Tally>,
    ended: bool,
}

impl<'a> Begun<'a> {
    fn new(operation: usize, turn: Turn, tally: &'a Mutex<Tally>) -> Self {
        Self { operation, turn, tally, ended: false }
    }

    fn end(mut self) -> Turn {
        self.ended = true;
        self.turn
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.ended {
            lock(self.tally).failed(self.operation, &UNFINISHED);
        }
    }
}

impl Job<'_> {
    pub(super) async fn run(mut self) {
        if self.driver.depth() > 1 {
            self.run_pipelined().await;
        } else {
            self.run_one_by_one().await;
        }
    }

    async fn run_one_by_one(&mut self) {
        while let Some(turn) = self.wait_for_turn().await {
            let operation = self.mix.draw(&mut self.random);
            let begun = Begun::new(operation, turn, self.tally);
            let mut outcome = self.driver.run(operation, &mut self.draw).await;
            while let Outcome::Retry(reason) = outcome {
                self.failed(operation, &reason);
                if self.stop.is_due(Instant::now()) {
                    begun.end();
                    return;
                }
                outcome = self.driver.run(operation, &mut self.draw).await;
            }
            if !self.count(operation, outcome, begun.end()) {
                return;
            }
            // What was over without waiting for anything must not keep the other workers of the thread from their turn.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Keeps as many operations in flight as the driver wants. What is in flight at the end is waited for.
    async fn run_pipelined(&mut self) {
        let depth = self.driver.depth();
        let mut turns: VecDeque<Begun<'_>> = VecDeque::with_capacity(depth);
        // The operation that has its place in the schedule but could not begin yet.
        let mut due = self.next_due();
        let mut exhausted = false;
        loop {
            let now = Instant::now();
            let mut ending = exhausted || self.stop.is_due(now);
            while !ending && turns.len() < depth && due.is_none_or(|due| due <= now) {
                let operation = self.mix.draw(&mut self.random);
                let turn = Turn { counted_from: due.unwrap_or(now), late: due.map(|due| now - due) };
                due = self.next_due();
                match self.driver.send(operation, &mut self.draw) {
                    // What is over at once lets the other workers of the thread have their turn.
                    None => turns.push_back(Begun::new(operation, turn, self.tally)),
                    Some(outcome) => {
                        exhausted = !self.count(operation, outcome, turn);
                        ending |= exhausted;
                        break;
                    }
                }
            }
            if turns.is_empty() {
                if ending {
                    return;
                }
                match due {
                    Some(due) => self.sleep_until(due).await,
                    None => tokio::task::yield_now().await,
                }
                continue;
            }
            let room_at = due.filter(|_| !ending && turns.len() < depth);
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
            // A driver that has nothing in flight has lost count of what it began.
            let (Some((operation, outcome)), Some(begun)) = (received, turns.pop_front()) else { return };
            exhausted |= !self.count(operation, outcome, begun.end());
        }
    }

    fn next_due(&mut self) -> Option<Instant> {
        self.schedule.next(&mut self.random).map(|due| self.start + due)
    }

    /// Waits until the next operation is due; `None` at the end of the run.
    async fn wait_for_turn(&mut self) -> Option<Turn> {
        let Some(due) = self.next_due() else {
            let now = Instant::now();
            return (!self.stop.is_due(now)).then_some(Turn { counted_from: now, late: None });
        };
        let now = Instant::now();
        if self.stop.is_due(now) {
            return None;
        }
        if due <= now {
            return Some(Turn { counted_from: due, late: Some(now - due) });
        }
        self.sleep_until(due).await;
        let now = Instant::now();
        if self.stop.is_due(now) {
            return None;
        }
        let late = now - due;
        // The worker was idle when it was due: that its clock rang late is not the fault of what is measured. What is
        // later than a clock can be is the machine's doing, and counts.
        let punctual = late <= CLOCK_LATE_MAX;
        Some(if punctual {
            Turn { counted_from: now, late: Some(Duration::ZERO) }
        } else {
            Turn { counted_from: due, late: Some(late) }
        })
    }

    async fn sleep_until(&self, at: Instant) {
        let at = self.stop.end().map_or(at, |end| end.min(at));
        tokio::select! {
            () = tokio::time::sleep_until(at.into()) => {}
            () = self.stop.wait() => {}
        }
    }

    /// Whether the worker goes on.
    fn count(&mut self, operation: usize, outcome: Outcome, turn: Turn) -> bool {
        let value_bytes = self.draw.take_value_bytes();
        match outcome {
            Outcome::Done { units } => {
                let latency = turn.counted_from.elapsed();
                let mut tally = self.tally();
                tally.done(operation, units, micros(latency));
                tally.sent(value_bytes);
                if let Some(late) = turn.late {
                    tally.queued(operation, micros(late));
                }
            }
            Outcome::Silent => {}
            Outcome::Failed(reason) | Outcome::Retry(reason) => self.failed(operation, &reason),
            Outcome::Stop => return false,
        }
        true
    }

    #[cold]
    fn failed(&self, operation: usize, reason: &Reason) {
        self.tally().failed(operation, reason);
        if self.shutdown_on_error {
            self.stop.say_for_error();
        }
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(self.tally)
    }
}

/// Counts are whole after every call, whoever panicked.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
