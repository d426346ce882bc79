//! Makes the sums of this node's classes exact, and compares them with what the stores hold.
//!
//! One class after the other is walked, in steps with pauses between them. A class is walked before
//! it takes part in exchanges, and once in an interval from then on (`sums_schedule`).
//!
//! What it is not: it answers nothing, and compares no replicas.
//!
//! Invariant: a difference without a known reason is noted durably before the sums are corrected,
//! and no exchange of the class is answered between.

use super::exchanges::Exchanges;
use super::pairs::Basis;
use super::sums_difference;
use crate::Host;
use ombak_kv::repair_host::{RepairHost, Transfers};
use ombak_kv::{ClassId, SumsStep, SumsWalk, WalkEnd};
use ombak_runtime::{Runtime, RuntimeExt};
use ombak_types::Error;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracing::debug;

/// The time between two looks for changes.
const LOOK: Duration = Duration::from_millis(200);
/// The longest time between two looks at all classes: sums may be behind at any moment, and a check
/// becomes due.
const LOOK_AT_ALL: Duration = Duration::from_secs(5);
/// Number of versions of one step.
const STEP_VERSIONS: usize = 10_000;

/// Walks the sums of one node.
pub(super) struct Walker {
    exchanges: Arc<Exchanges>,
    runtime: Arc<dyn Runtime>,
    /// It outlives the engine's requests, but keeps no store open.
    transfers: Arc<Transfers>,
    basis: Option<Basis>,
    /// When all classes are looked at again, if nothing changes before.
    look_at_all: Instant,
}

impl Walker {
    pub(super) fn new(exchanges: Arc<Exchanges>, host: &dyn RepairHost) -> Self {
        let (runtime, transfers) = (host.runtime().clone(), host.transfers().clone());
        let look_at_all = runtime.now();
        Self { exchanges, runtime, transfers, basis: None, look_at_all }
    }

    /// Runs until the engine closes or is gone.
    pub(super) async fn run(mut self, host: Weak<dyn RepairHost>) {
        while !self.transfers.is_stopped() {
            let next = {
                let Some(host) = host.upgrade() else { return };
                self.next(&host)
            };
            let Some((class, doublings)) = next else {
                self.runtime.sleep(LOOK).await;
                continue;
            };
            let begun = self.runtime.now();
            let walked = self.walk(&host, class, doublings).await;
            let now = self.runtime.now();
            let mut schedule = self.exchanges.sums_schedule.lock();
            match walked {
                // The class has changed meanwhile, so its sums are not known: it is walked at once.
                Ok(Some(end)) if end.is_current => schedule.ended(class, begun, now),
                Ok(Some(_)) => {}
                Ok(None) => schedule.failed(class, now),
                Err(why) => {
                    schedule.failed(class, now);
                    let (partition, n) = (class.partition, class.n);
                    debug!(partition, n, %why, "a walk over the sums of a class has failed; it is tried again");
                }
            }
        }
    }

    /// The class that is to be walked now, and how often the pace is doubled for it.
    fn next(&mut self, host: &Host) -> Option<(ClassId, u32)> {
        let now = self.runtime.now();
        let basis = Basis::of(&**host);
        let mut schedule = self.exchanges.sums_schedule.lock();
        if self.basis.as_ref().is_none_or(|before| !before.is_same(&basis)) {
            let is_alone = host.is_alone_in(&host.placement());
            let classes = if is_alone { Vec::new() } else { basis.classes(host.node_id()) };
            // Without randomness the phases are equal, and nothing else is wrong.
            schedule.set_classes(&classes, now, || self.runtime.random_u64().unwrap_or_default());
            self.basis = Some(basis);
        }
        if !schedule.takes_change() && now < self.look_at_all {
            return None;
        }
        let partitions = host.partitions();
        let is_known = |class: ClassId| {
            // A partition that is not here, or keeps no sums, has nothing to walk.
            partitions.get(class.partition).is_none_or(|found| !found.keeps_sums() || found.has_checked_sums(class.n))
        };
        let next = schedule.next(now, is_known);
        // After a walk comes the next one at once. One that has failed waits for its pause.
        let is_waiting = next.is_none() && schedule.is_waiting(now);
        self.look_at_all = if next.is_some() || is_waiting { now } else { now + LOOK_AT_ALL };
        next
    }

    /// Walks a class. None if no walk can begin at this moment. The engine is not kept between two
    /// steps.
    async fn walk(
        &self,
        host: &Weak<dyn RepairHost>,
        class: ClassId,
        doublings: u32,
    ) -> Result<Option<WalkEnd>, Error> {
        let Some(begun) = self.begin(host, class).await? else { return Ok(None) };
        let mut walk = begun;
        let end = loop {
            let step = move || {
                let step = walk.step(STEP_VERSIONS);
                (walk, step)
            };
            let step_done;
            (walk, step_done) = self.transfers.fold_pool.run(step).await?;
            match step_done? {
                SumsStep::Ended(end) => break end,
                SumsStep::More if self.transfers.is_stopped() => return Ok(None),
                SumsStep::More => self.runtime.sleep(self.pause(doublings)).await,
            }
        };
        if end.differences > 0 {
            let Some(host) = host.upgrade() else { return Ok(None) };
            let note = move || {
                sums_difference::note(&*host, class, end.seq)?;
                walk.accept();
                Ok::<_, Error>(())
            };
            self.transfers.pool.run(note).await??;
        }
        Ok(Some(end))
    }

    async fn begin(&self, host: &Weak<dyn RepairHost>, class: ClassId) -> Result<Option<SumsWalk>, Error> {
        let Some(host) = host.upgrade() else { return Ok(None) };
        let begin = move || Ok(host.partitions().find(class.partition)?.begin_sums_walk(class.n)?);
        self.transfers.pool.run(begin).await?
    }

    /// The pause after a step.
    fn pause(&self, doublings: u32) -> Duration {
        let versions_per_second = self.exchanges.config.sums_versions_per_second.max(1);
        Duration::from_secs(1).mul_f64(STEP_VERSIONS as f64 / versions_per_second as f64) / (1 << doublings.min(16))
    }
}
