//! Runs exchanges: chooses what is due, and keeps a bounded number under way.
//!
//! An exchange that waits for its second look has no place among those that work, so a round over
//! many classes with differences takes no longer for the pauses. Of one class a node runs one
//! exchange at a time: what the first one repairs need not be compared by the second one.

use super::exchanges::Exchanges;
use super::kept_sums::has_checked_sums;
use super::machine::{Ended, Tally};
use super::pairs::Pair;
use super::steps::{Progress, Run};
use super::waiting::{words_of, words_of_end};
use crate::Host;
use crate::work::Work;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_kv::repair_host::{RepairHost, Transfers};
use ombak_ring::RingVersion;
use ombak_runtime::{BoxFuture, within};
use ombak_types::time::UnixMicros;
use ombak_types::{Error, NodeId, StoreFailureKind};
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracing::{debug, warn};

/// The longest time between two looks for work.
const LOOK: Duration = Duration::from_millis(200);
/// Maximum number of exchanges that wait for their second look.
const PAUSED_MAX: usize = 256;

/// An exchange that has stopped, for a while or for good.
struct Stopped {
    pair: Pair,
    is_way_back: bool,
    how: Result<Progress, Error>,
}

struct Paused {
    until: Instant,
    run: Box<Run>,
}

/// Runs the exchanges of one node.
pub(super) struct Runner {
    exchanges: Arc<Exchanges>,
    work: Arc<Work>,
    /// It outlives the engine's requests, but keeps no store open.
    transfers: Arc<Transfers>,
    running: FuturesUnordered<BoxFuture<'static, Stopped>>,
    paused: Vec<Paused>,
    /// The nodes that were up at the last look; none before the first one.
    up: Option<BTreeSet<NodeId>>,
    /// The placement for which needless marks were forgotten.
    tidied_for: Option<RingVersion>,
}

impl Runner {
    pub(super) fn new(exchanges: Arc<Exchanges>, work: Arc<Work>, transfers: Arc<Transfers>) -> Self {
        Self {
            exchanges,
            work,
            transfers,
            running: FuturesUnordered::new(),
            paused: Vec::new(),
            up: None,
            tidied_for: None,
        }
    }

    /// Runs until the engine closes or is gone.
    pub(super) async fn run(mut self, host: Weak<dyn RepairHost>) {
        while !self.transfers.is_stopped() {
            let Some(host) = host.upgrade() else { return };
            self.look(&host).await;
            drop(host);
            if let Some(stopped) = self.wait().await {
                self.stopped(stopped);
            }
        }
    }

    /// Waits until an exchange has stopped, or some time has passed.
    async fn wait(&mut self) -> Option<Stopped> {
        let at = Some(self.work.runtime.now() + LOOK);
        if self.running.is_empty() {
            // The limit ends the wait.
            let _ = within(&*self.work.runtime, at, pending::<()>()).await;
            return None;
        }
        within(&*self.work.runtime, at, self.running.next()).await.ok().flatten()
    }

    async fn look(&mut self, host: &Host) {
        if let Err(why) = self.tidy(host).await {
            warn!(%why, "the marks of exchanges could not be saved, so no exchange begins");
            return;
        }
        let placement = host.placement();
        self.exchanges.refresh(&**host, &placement);
        let peers = placement.nodes().into_iter().filter(|node| *node != host.node_id());
        let up: BTreeSet<NodeId> = peers.filter(|node| host.peers().is_up(*node)).collect();
        let come_up: BTreeSet<NodeId> =
            self.up.as_ref().map_or_else(BTreeSet::new, |before| up.difference(before).copied().collect());
        let now = self.work.runtime.now();
        self.exchanges.asked_keys.refresh(&**host, now, |node| up.contains(&node));
        self.up = Some(up);
        if self.exchanges.takes_all_due() {
            self.exchanges.schedule.lock().all_due(now);
        } else if !come_up.is_empty() {
            self.exchanges.schedule.lock().have_come_up(&come_up, now);
        }
        let is_suspended = self.exchanges.control.is_suspended();
        while self.running.len() < self.exchanges.config.concurrency && self.start_one(host, is_suspended) {}
    }

    /// Forgets marks and doubt that are not needed any more. A node that starts has a ring of its
    /// own until it knows that of its cluster. By its own ring none of them would be needed.
    async fn tidy(&mut self, host: &Host) -> Result<(), Error> {
        if host.is_alone_in(&host.placement()) {
            return Ok(());
        }
        self.exchanges.doubt_rounds.end_needless(&**host);
        let version = host.placement().version();
        if self.tidied_for == Some(version) {
            return Ok(());
        }
        let (exchanges, there) = (self.exchanges.clone(), host.clone());
        let tidied = self.transfers.pool.run(move || exchanges.forget_needless(&*there));
        tidied.await?.map_err(|why| super::exchanges::not_saved(&why))?;
        self.tidied_for = Some(version);
        Ok(())
    }

    /// Starts one exchange, or lets one go on. Returns whether there was one. While exchanges are
    /// suspended, those of the keys that reads have left to them begin nevertheless: nothing else
    /// repairs such a key.
    fn start_one(&mut self, host: &Host, is_suspended: bool) -> bool {
        if !self.work.gives_pushes() {
            return false;
        }
        let now = self.work.runtime.now();
        if let Some(place) = self.paused.iter().position(|paused| paused.until <= now) {
            let run = self.paused.swap_remove(place).run;
            let (pair, is_way_back) = (run.pair(), run.is_way_back());
            let host = host.clone();
            self.running.push(Box::pin(async move { Stopped { pair, is_way_back, how: run.resume(&host).await } }));
            return true;
        }
        let may_begin = |pair: Pair| self.may_begin(pair) && has_checked_sums(&**host, pair.0);
        if let Some((pair, keys)) = self.exchanges.asked_keys.take(may_begin) {
            self.exchanges.working_on.lock().insert(pair.0, pair.1);
            let (exchanges, work, host) = (self.exchanges.clone(), self.work.clone(), host.clone());
            self.running.push(Box::pin(async move {
                let how = Run::begin_with_keys(exchanges, work, &host, pair, keys).await;
                // As with a way back, the exchange of its own turn makes up for it.
                Stopped { pair, is_way_back: true, how }
            }));
            return true;
        }
        if is_suspended {
            return false;
        }
        let Some((pair, is_way_back)) = self.next(&**host, now) else { return false };
        self.exchanges.working_on.lock().insert(pair.0, pair.1);
        let (exchanges, work, host) = (self.exchanges.clone(), self.work.clone(), host.clone());
        let back = is_way_back.then(|| self.exchanges.ways_back.take(pair));
        self.running.push(Box::pin(async move {
            let how = Run::begin(exchanges, work, &host, pair, back).await;
            Stopped { pair, is_way_back, how }
        }));
        true
    }

    fn may_begin(&self, (class, node): Pair) -> bool {
        let is_up = self.up.as_ref().is_some_and(|up| up.contains(&node));
        is_up && !self.exchanges.working_on.lock().contains_key(&class)
    }

    /// The exchange that is to begin, and whether it is a way back. Ways back come first.
    fn next(&self, host: &dyn RepairHost, now: Instant) -> Option<(Pair, bool)> {
        if self.paused.len() >= PAUSED_MAX {
            return None;
        }
        let working_on = self.exchanges.working_on.lock();
        let is_up = |node| self.up.as_ref().is_some_and(|up| up.contains(&node));
        let may_begin = |(class, node): Pair| is_up(node) && !working_on.contains_key(&class);
        // A node with a lower number takes nothing before its own exchange of the class has ended.
        let is_taken =
            |(class, node): Pair| node > host.node_id() || !self.exchanges.visits.is_visited_by(class, node, now);
        let back = self.exchanges.ways_back.open().into_iter().find(|pair| may_begin(*pair) && is_taken(*pair));
        let is_held_back = |pair: Pair, due: Instant| self.exchanges.visits.hold_back(pair, due, now);
        let may_be_next =
            |pair: Pair, due: Instant| may_begin(pair) && has_checked_sums(host, pair.0) && !is_held_back(pair, due);
        let due = || self.exchanges.schedule.lock().next(now, may_be_next).map(|pair| (pair, false));
        back.map(|pair| (pair, true)).or_else(due)
    }

    fn stopped(&mut self, Stopped { pair, is_way_back, how }: Stopped) {
        let now = self.work.runtime.now();
        // A node that is busy refuses. That is no failure, but the next attempt waits as long.
        let mut is_refusal = false;
        let failed = match how {
            Ok(Progress::Paused(run)) => {
                let until = now + self.exchanges.config.look_again_after;
                return self.paused.push(Paused { until, run });
            }
            Ok(Progress::Ended { ended, tally, bytes, at }) => {
                self.exchanges.counts.did(pair, tally, bytes);
                !self.ended((pair, is_way_back), (ended, tally), (now, at))
            }
            Err(why) => {
                let (partition, n, node) = (pair.0.partition, pair.0.n, pair.1);
                debug!(partition, n, %node, %why, "an exchange has failed; it is tried again");
                if !is_way_back {
                    self.exchanges.obstacles.note(pair, words_of(&why));
                }
                is_refusal = is_busy(&why);
                true
            }
        };
        self.exchanges.working_on.lock().remove(&pair.0);
        if failed {
            if !is_refusal {
                self.exchanges.counts.failed(pair);
            }
            // The exchange of its own turn makes up for a way back.
            if !is_way_back {
                self.exchanges.schedule.lock().failed(pair, now);
            }
        }
    }

    /// Notes how an exchange has ended. Returns whether it has done what it could.
    fn ended(
        &self,
        (pair, is_way_back): (Pair, bool),
        (ended, tally): (Ended, Tally),
        (now, at): (Instant, UnixMicros),
    ) -> bool {
        if tally != Tally::default() {
            let (partition, n, node) = (pair.0.partition, pair.0.n, pair.1);
            debug!(partition, n, %node, ?tally, "an exchange has found differences");
        }
        match words_of_end(ended, tally) {
            None => self.exchanges.obstacles.clear(pair),
            // It is no exchange of its own: the next one tells more.
            Some(_) if is_way_back => {}
            Some(why) => self.exchanges.obstacles.note(pair, why),
        }
        let mut schedule = self.exchanges.schedule.lock();
        match ended {
            Ended::Included => {
                self.exchanges.counts.included(pair, at);
                if schedule.ended(pair, now) {
                    self.exchanges.counts.round_ended(at);
                }
                true
            }
            Ended::Partly if is_way_back => true,
            Ended::Partly if tally.repaired + tally.dropped > 0 => {
                schedule.goes_on(pair, now);
                true
            }
            Ended::Partly | Ended::Unproved | Ended::NotFull | Ended::Confused => false,
        }
    }
}

fn is_busy(why: &Error) -> bool {
    matches!(why, Error::Storage(failure) if failure.kind == StoreFailureKind::Busy)
}
