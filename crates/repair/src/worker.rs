//! Does the work: chooses what is due, and runs a bounded number of pieces beside each other.
//!
//! A piece of work that fails is tried again after a pause, which doubles up to a minute. When a
//! node comes up, everything is due at once, and when a home changes, what belongs to the home.
//! Pieces that wait for other nodes' work have places of their own, so that two nodes never wait
//! for each other's places.
//!
//! What it is not: it does not know what kinds of work there are (`kinds`).

use crate::Host;
use crate::kinds::{self, Kind, Lane, Look, Outcome, Place};
use crate::work::Work;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_kv::repair_host::{Asked, RepairHost, Transfers};
use ombak_ring::placement::Placement;
use ombak_runtime::{BoxFuture, within};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracing::debug;

/// The longest time between two looks for work.
const LOOK: Duration = Duration::from_millis(200);
/// The pause after the first failure, and the longest pause.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    /// The place of its kind in the list of kinds.
    kind: usize,
    place: Place,
}

/// When a piece may begin again.
#[derive(Clone, Copy, Debug)]
struct Pause {
    failures: u32,
    until: Instant,
}

/// The worker of one node.
pub(crate) struct Worker {
    work: Arc<Work>,
    /// What the engine knows of copies. It outlives the engine's requests, but keeps no store open.
    transfers: Arc<Transfers>,
    kinds: Vec<Box<dyn Kind>>,
    running: FuturesUnordered<BoxFuture<'static, (Piece, Outcome)>>,
    active: BTreeSet<Piece>,
    pauses: BTreeMap<Piece, Pause>,
    up: BTreeSet<NodeId>,
    placement: Option<Arc<Placement>>,
}

impl Worker {
    pub(crate) fn new(work: Arc<Work>, transfers: Arc<Transfers>) -> Self {
        Self {
            work,
            transfers,
            kinds: kinds::all(),
            running: FuturesUnordered::new(),
            active: BTreeSet::new(),
            pauses: BTreeMap::new(),
            up: BTreeSet::new(),
            placement: None,
        }
    }

    /// Runs until the engine closes or is gone.
    pub(crate) async fn run(mut self, host: Weak<dyn RepairHost>) {
        while !self.transfers.is_stopped() {
            let Some(host) = host.upgrade() else { return };
            self.look(&host).await;
            drop(host);
            self.wait().await;
        }
    }

    /// Waits until a piece has ended, there may be work, or some time has passed.
    async fn wait(&mut self) {
        let (work, transfers) = (self.work.clone(), self.transfers.clone());
        let at = Some(work.runtime.now() + LOOK);
        let woken = pin!(transfers.woken());
        let ended = if self.running.is_empty() {
            // The limit or the wake-up ends the wait.
            let _ = within(&*work.runtime, at, woken).await;
            None
        } else {
            match within(&*work.runtime, at, select(self.running.next(), woken)).await {
                Ok(Either::Left((ended, _))) => ended,
                Ok(Either::Right(_)) | Err(_) => None,
            }
        };
        if let Some((piece, ended)) = ended {
            self.ended(piece, ended);
        }
    }

    /// Starts what is due.
    async fn look(&mut self, host: &Host) {
        let placement = host.placement();
        let here = host.node_id();
        if host.is_alone_in(&placement) {
            return;
        }
        self.transfers.owe_after_unclean_end(&placement, here, &host.buckets().snapshot().all_n_vals());
        self.transfers.continue_checkpoint(host.partitions()).await;
        // Another one may be in force since then.
        let placement = host.placement();
        self.note_changes(host, &placement);
        self.transfers.forget_needless_marks(&host.placement(), here, || host.peers().members());
        self.work.orders.forget(|class, to| {
            host.peers().was_removed(to) || !placement.home(class.partition).is_primary(to, class.n)
        });
        self.start_what_is_due(host, &placement);
    }

    fn start_what_is_due(&mut self, host: &Host, placement: &Placement) {
        let work = self.work.clone();
        let now = work.runtime.now();
        let up = self.up.clone();
        let (here, ns) = (host.node_id(), host.buckets().snapshot().all_n_vals());
        let asked = Asked { placement, here, ns: &ns, is_full: &|home, n| host.is_full(home, n) };
        let gives_pushes = work.gives_pushes();
        let proofs = if gives_pushes { self.transfers.proofs.open(&asked) } else { Vec::new() };
        let look = Look { work: &work, host, placement, here, ns: ns.clone(), up: &up, gives_pushes, proofs };
        for piece in self.candidates(&look) {
            let concurrency = work.concurrency.load(Ordering::Relaxed);
            let lane = self.lane(&piece);
            let long = self.active.iter().filter(|active| self.lane(active) == Lane::Long).count();
            if lane == Lane::Long && long + 1 >= concurrency.max(2) {
                continue;
            }
            let is_paused = self.pauses.get(&piece).is_some_and(|pause| now < pause.until);
            let has_same_places =
                |active: &&Piece| (self.lane(active) == Lane::WaitsForOthers) == (lane == Lane::WaitsForOthers);
            let active = self.active.iter().filter(has_same_places).count();
            if !is_paused && !self.active.contains(&piece) && active < concurrency {
                self.start(&look, piece);
            }
        }
    }

    fn lane(&self, piece: &Piece) -> Lane {
        self.kinds[piece.kind].lane()
    }

    /// Everything that there is to do now, in the order of importance.
    fn candidates(&self, look: &Look<'_>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (kind, of_kind) in self.kinds.iter().enumerate() {
            pieces.extend(of_kind.due(look).into_iter().map(|place| Piece { kind, place }));
        }
        pieces
    }

    fn start(&mut self, look: &Look<'_>, piece: Piece) {
        self.active.insert(piece);
        let ended = self.kinds[piece.kind].begin(look, piece.place);
        self.running.push(Box::pin(async move { (piece, ended.await) }));
    }

    /// Everything is due again when a node came up, or an operator asks for it. What belongs to a
    /// home is due again when the home changed.
    fn note_changes(&mut self, host: &Host, placement: &Arc<Placement>) {
        let peers = placement.nodes().into_iter().filter(|node| *node != host.node_id());
        let up: BTreeSet<NodeId> = peers.filter(|node| self.work.is_reachable(&**host, *node)).collect();
        let retries = self.transfers.takes_retry();
        let before = self.placement.replace(placement.clone());
        let has_changed = before.as_ref().is_none_or(|before| before.version() != placement.version());
        if has_changed {
            let is_same = |home| {
                before.as_ref().is_some_and(|before| before.home(home).version() == placement.home(home).version())
            };
            self.pauses.retain(|piece, _| piece.place.home().is_some_and(is_same));
            self.kinds.iter().for_each(|kind| kind.forget_changed(&is_same));
        }
        if retries || !up.is_subset(&self.up) {
            self.pauses.clear();
        }
        if retries || has_changed || !up.is_subset(&self.up) {
            host.partitions().unreadable_keys().try_all_again();
        }
        self.up = up;
    }

    fn ended(&mut self, piece: Piece, ended: Outcome) {
        self.active.remove(&piece);
        match ended {
            Outcome::Done => {
                self.pauses.remove(&piece);
            }
            Outcome::LeftToOthers => self.pause(piece, 0),
            Outcome::Left => self.pause_longer(piece),
            Outcome::Failed(why) => {
                let (kind, place) = (self.kinds[piece.kind].name(), piece.place);
                debug!(kind, ?place, %why, "a transfer has not ended; it is tried again");
                self.pause_longer(piece);
            }
        }
    }

    fn pause_longer(&mut self, piece: Piece) {
        let failures = self.pauses.get(&piece).map_or(0, |pause| pause.failures);
        self.pause(piece, failures);
    }

    /// Lets a piece wait that has failed so often before.
    fn pause(&mut self, piece: Piece, failures: u32) {
        let until = self.work.runtime.now() + (RETRY_MIN * (1 << failures.min(16))).min(RETRY_MAX);
        self.pauses.insert(piece, Pause { failures: failures + 1, until });
    }
}
