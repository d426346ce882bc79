//! Drives rounds: chooses the classes whose tombstones this node is to remove now.
//!
//! The first primary of a class that is up drives its rounds. Another primary does when a tombstone
//! has waited for a minute. Two drivers at once do no harm, so nothing elects one. A class of a
//! home that is changing waits until the change has ended (docs/design/ring-changes.md).

use super::round::{Outcome, ReapingRound};
use crate::Host;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_kv::repair_host::{BrokenRule, Class, DueVersions, Ending, REAP_BYTES_MAX, RepairHost, is_broken};
use ombak_kv::replica::REAP_KEYS_MAX;
use ombak_ring::RingVersion;
use ombak_ring::placement::{HomePlacement, Placement};
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, NodeId, StoreFailureKind};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tracing::debug;

/// The longest time between two looks for work.
const LOOK: Duration = Duration::from_millis(100);
/// How long a version waits before a primary that is not the first one drives a round for it.
const OTHER_DRIVER_AFTER: Duration = Duration::from_secs(60);
/// Maximum number of rounds that this node drives at a time.
const ROUNDS_MAX: usize = 4;

/// The driver of one node.
pub(crate) struct Driver {
    due: Arc<DueVersions>,
    running: FuturesUnordered<BoxFuture<'static, (Class, Result<Outcome, Error>)>>,
    active: BTreeSet<Class>,
    up: BTreeSet<NodeId>,
    /// Whether all members were up at the last look.
    all_are_up: bool,
    placement: Option<RingVersion>,
}

impl Driver {
    pub(crate) fn new(due: Arc<DueVersions>) -> Self {
        let (running, active, up) = (FuturesUnordered::new(), BTreeSet::new(), BTreeSet::new());
        Self { due, running, active, up, all_are_up: true, placement: None }
    }

    /// Runs until the engine is closed or gone.
    pub(crate) async fn run(mut self, host: Weak<dyn RepairHost>) {
        loop {
            let Some(host) = host.upgrade().filter(|host| host.is_open()) else { return };
            let runtime = host.runtime().clone();
            self.look(&host);
            drop(host);
            let until = Some(runtime.now() + LOOK);
            if self.running.is_empty() {
                let due = self.due.clone();
                // The limit or the wake-up ends the wait.
                let _ = within(&*runtime, until, due.work.notified()).await;
            } else if let Ok(Some((class, ended))) = within(&*runtime, until, self.running.next()).await {
                self.ended(class, ended);
            }
        }
    }

    fn ended(&mut self, class: Class, ended: Result<Outcome, Error>) {
        self.active.remove(&class);
        match ended {
            Ok(outcome) => {
                self.due.counts.round_ended(!outcome.some_stay);
                self.due.forget(class, &outcome.done);
                self.due.voted(class, &outcome.lacked, &outcome.agreed);
                self.due.ended(class, if outcome.some_stay { Ending::SomeStay } else { Ending::Done });
            }
            Err(why) => {
                debug!(partition = class.0, n_val = class.1, %why, "a round of reaping ended early");
                self.due.counts.round_ended(false);
                self.due.ended(class, self.ending_of(&why));
            }
        }
    }

    /// How a round has ended that came to nothing. What disturbs it while all members are up is
    /// soon over, and so is what makes a member refuse.
    fn ending_of(&self, why: &Error) -> Ending {
        let is_refused = matches!(why, Error::Storage(failure) if failure.kind == StoreFailureKind::Busy);
        if is_refused || self.all_are_up { Ending::Disturbed } else { Ending::Unanswered }
    }

    /// Starts the rounds that are due.
    fn look(&mut self, host: &Host) {
        host.look_at_gate();
        let placement = host.request_placement();
        if host.is_alone_in(&placement) {
            return;
        }
        self.note_changes(host, &placement);
        let now = host.runtime().now();
        for class in self.due.ready(now) {
            let is_busy = self.active.iter().any(|active| active.0 == class.0);
            if is_busy || self.running.len() >= ROUNDS_MAX {
                continue;
            }
            let home = placement.home(class.0);
            if home.is_changing() && !is_broken(BrokenRule::ChangingHomesReapNothing) {
                continue;
            }
            let Some(is_first) = self.is_first_primary(host, &home, class.1) else {
                // What a stand-in holds is handed back, and reaped by the primaries.
                self.due.forget_class(class);
                continue;
            };
            let since_max = if is_first { Some(now) } else { now.checked_sub(OTHER_DRIVER_AFTER) };
            let Some(since_max) = since_max else { continue };
            let batch = self.due.batch(class, since_max, REAP_KEYS_MAX, REAP_BYTES_MAX);
            if batch.is_empty() {
                continue;
            }
            match ReapingRound::new(host, &placement, class) {
                Ok(round) => {
                    self.active.insert(class);
                    self.running.push(Box::pin(async move { (class, round.run(batch).await) }));
                }
                Err(why) => self.ended(class, Err(why)),
            }
        }
    }

    /// Whether this node is the first primary of a class that is up; `None` if it is no primary.
    fn is_first_primary(&self, host: &Host, home: &HomePlacement<'_>, n_val: u32) -> Option<bool> {
        let here = host.node_id();
        let primaries = home.replica_set(n_val);
        if !primaries.contains(&here) {
            return None;
        }
        Some(primaries.into_iter().find(|node| *node == here || self.up.contains(node)) == Some(here))
    }

    /// Lets all classes try again when a member has come up or a home has changed.
    fn note_changes(&mut self, host: &Host, placement: &Placement) {
        let nodes: BTreeSet<NodeId> = placement.nodes().into_iter().chain(host.peers().members()).collect();
        let is_up = |node: &NodeId| *node == host.node_id() || host.peers().is_up(*node);
        let up: BTreeSet<NodeId> = nodes.iter().copied().filter(is_up).collect();
        self.all_are_up = up.len() == nodes.len();
        if self.placement != Some(placement.version()) || !up.is_subset(&self.up) {
            self.due.try_again();
        }
        (self.placement, self.up) = (Some(placement.version()), up);
    }
}
