//! Does the work: chooses what is due, and runs a bounded number of pieces beside each other.
//!
//! A piece of work that fails is tried again after a pause, which doubles up to a minute. When a
//! node comes up, everything is due at once, and when a home changes, what belongs to the home.
//! Pieces that wait for other nodes' work (`fill`) have places of their own, so that two nodes
//! never wait for each other's places.

use super::fill;
use super::hand_back::Left;
use super::prove::Proving;
use crate::engine::Engine;
use crate::replica::ClassId;
use crate::transfer::{Asked, Transfers};
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_ring::placement::Placement;
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, NodeId};
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
/// While a primary is down, new foreign copies go to the other primaries in passes. The pause
/// before each is at least this long, and at least this many times as long as the pass before it
/// took.
const PASS_PAUSE_MIN: Duration = Duration::from_secs(5);
const PASS_PAUSE_PER_WORK: u32 = 20;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Piece {
    /// Give back what this node holds for others in a partition.
    HandBack(u32),
    /// Push what a peer of a class missed.
    Pay(ClassId, NodeId),
    /// Push what another node ordered.
    CarryOut(ClassId, NodeId),
    /// Prove a class of a changing home to a member of its new set.
    Prove(ClassId, NodeId),
    /// Compare a class that may lack something.
    Fill(ClassId),
    /// Repair what cannot be read.
    Repair,
}

impl Piece {
    const fn waits_for_others(&self) -> bool {
        matches!(self, Self::Fill(_) | Self::Repair)
    }

    const fn is_proof(&self) -> bool {
        matches!(self, Self::Prove(..))
    }

    /// The home partition that the piece is about.
    const fn home(&self) -> Option<u32> {
        match self {
            Self::HandBack(partition) => Some(*partition),
            Self::Pay(class, _) | Self::CarryOut(class, _) | Self::Prove(class, _) | Self::Fill(class) => {
                Some(class.partition)
            }
            Self::Repair => None,
        }
    }
}

/// What became of a piece of work.
enum Ended {
    HandBack(Result<Left, Error>, Duration),
    Prove(Result<Proving, Error>),
    Other(Result<(), Error>),
}

/// When a piece may begin again.
#[derive(Clone, Copy, Debug)]
struct Pause {
    failures: u32,
    until: Instant,
}

/// A partition whose foreign copies wait for primaries.
struct Waiting {
    missing: BTreeSet<NodeId>,
    /// What was begun in the partition when the last pass began.
    begun: u64,
    visited_seq: u64,
    /// When another pass may visit what is new.
    next_pass: Instant,
}

/// The worker of one node.
struct Worker {
    transfers: Arc<Transfers>,
    running: FuturesUnordered<BoxFuture<'static, (Piece, Ended)>>,
    active: BTreeSet<Piece>,
    pauses: BTreeMap<Piece, Pause>,
    waiting: BTreeMap<u32, Waiting>,
    up: BTreeSet<NodeId>,
    placement: Option<Arc<Placement>>,
}

impl Transfers {
    /// Whether copies can be brought to a node.
    pub(super) fn is_reachable(&self, engine: &Engine, node: NodeId) -> bool {
        engine.config.peers.is_up(node) || self.has_returned(node)
    }

    /// Starts the work beside the requests, once. It ends when the engine closes.
    pub(crate) fn start(engine: &Arc<Engine>) {
        let transfers = engine.transfers.clone();
        if transfers.is_working.swap(true, Ordering::SeqCst) {
            return;
        }
        let engine = Arc::downgrade(engine);
        let worker = Worker {
            transfers: transfers.clone(),
            running: FuturesUnordered::new(),
            active: BTreeSet::new(),
            pauses: BTreeMap::new(),
            waiting: BTreeMap::new(),
            up: BTreeSet::new(),
            placement: None,
        };
        transfers.runtime.spawn(Box::pin(worker.run(engine)));
    }
}

impl Worker {
    async fn run(mut self, engine: Weak<Engine>) {
        while !self.transfers.is_stopped.load(Ordering::SeqCst) {
            let Some(engine) = engine.upgrade() else { return };
            self.look(&engine).await;
            drop(engine);
            self.wait().await;
        }
    }

    /// Waits until a piece has ended, there may be work, or some time has passed.
    async fn wait(&mut self) {
        let transfers = self.transfers.clone();
        let at = Some(transfers.runtime.now() + LOOK);
        let woken = pin!(transfers.work.notified());
        let ended = if self.running.is_empty() {
            // The limit or the wake-up ends the wait.
            let _ = within(&*transfers.runtime, at, woken).await;
            None
        } else {
            match within(&*transfers.runtime, at, select(self.running.next(), woken)).await {
                Ok(Either::Left((ended, _))) => ended,
                Ok(Either::Right(_)) | Err(_) => None,
            }
        };
        if let Some((piece, ended)) = ended {
            self.ended(piece, ended);
        }
    }

    /// Starts what is due.
    async fn look(&mut self, engine: &Arc<Engine>) {
        let placement = engine.placement();
        let here = engine.identity.node_id;
        if engine.is_alone_in(&placement) {
            return;
        }
        self.transfers.owe_after_unclean_end(&placement, here, &engine.buckets.snapshot().all_n_vals());
        self.transfers.continue_checkpoint(engine.partitions()).await;
        // Another one may be in force since then.
        let placement = engine.placement();
        self.note_changes(engine, &placement);
        self.transfers.forget_needless_marks(&engine.placement(), here, || engine.config.peers.members());
        self.transfers.orders.forget(|class, to| {
            engine.config.peers.was_removed(to) || !placement.home(class.partition).is_primary(to, class.n)
        });
        let now = self.transfers.runtime.now();
        for piece in self.candidates(engine, &placement) {
            let concurrency = self.transfers.concurrency.load(Ordering::Relaxed);
            // Many homes are proved for long. Hints and marks have a place beside them.
            let proving = self.active.iter().filter(|active| active.is_proof()).count();
            if piece.is_proof() && proving + 1 >= concurrency.max(2) {
                continue;
            }
            let is_paused = self.pauses.get(&piece).is_some_and(|pause| now < pause.until);
            let active = self.active.iter().filter(|a| a.waits_for_others() == piece.waits_for_others()).count();
            if !is_paused && !self.active.contains(&piece) && active < concurrency {
                self.start(engine, piece);
            }
        }
    }

    /// Everything is due again when a node came up, or an operator asks for it. What belongs to a
    /// home is due again when the home changed.
    fn note_changes(&mut self, engine: &Engine, placement: &Arc<Placement>) {
        let peers = placement.nodes().into_iter().filter(|node| *node != engine.identity.node_id);
        let up: BTreeSet<NodeId> = peers.filter(|node| self.transfers.is_reachable(engine, *node)).collect();
        let retries = self.transfers.retries_at_once.swap(false, Ordering::SeqCst);
        let before = self.placement.replace(placement.clone());
        let has_changed = before.as_ref().is_none_or(|before| before.version() != placement.version());
        if has_changed {
            let is_same = |home| {
                before.as_ref().is_some_and(|before| before.home(home).version() == placement.home(home).version())
            };
            self.pauses.retain(|piece, _| piece.home().is_some_and(is_same));
            self.waiting.retain(|partition, _| is_same(*partition));
        }
        if retries || !up.is_subset(&self.up) {
            self.pauses.clear();
        }
        if retries || has_changed || !up.is_subset(&self.up) {
            engine.partitions().unreadable_keys().try_all_again();
        }
        self.up = up;
    }

    /// Everything that there is to do now, in the order of importance.
    fn candidates(&self, engine: &Engine, placement: &Placement) -> Vec<Piece> {
        let (transfers, here) = (&self.transfers, engine.identity.node_id);
        let ns = engine.buckets.snapshot().all_n_vals();
        let mut pieces = Vec::new();
        let is_up = |node: &NodeId| self.up.contains(node);
        if !engine.partitions().unreadable_keys().due(transfers.runtime.now(), 1).is_empty() {
            pieces.push(Piece::Repair);
        }
        if transfers.gives_pushes() {
            pieces.extend(
                transfers.orders.open().into_iter().filter(|(_, to)| is_up(to)).map(|(c, to)| Piece::CarryOut(c, to)),
            );
            let proofs =
                transfers.proofs.open(&Asked { placement, here, ns: &ns, is_full: &|home, n| engine.is_full(home, n) });
            let owed = transfers.owed.list().into_iter().filter(|owed| {
                let home = placement.home(owed.class.partition);
                let primaries = home.primaries(owed.class.n);
                // The proof brings a new member what is owed, too, and shares the work with others.
                let is_new = !home.replica_set(owed.class.n).contains(&owed.peer);
                let is_proved_first = is_new && proofs.contains(&(owed.class, owed.peer));
                is_up(&owed.peer) && primaries.contains(&owed.peer) && primaries.contains(&here) && !is_proved_first
            });
            let proofs = proofs.iter().filter(|(_, to)| is_up(to));
            pieces.extend(proofs.map(|(class, to)| Piece::Prove(*class, *to)));
            pieces.extend(owed.map(|owed| Piece::Pay(owed.class, owed.peer)));
            // What is foreign now may not be foreign when the change of its home ends.
            let is_to_visit = |partition: &u32| {
                let is_to_count = transfers.foreign.is_unknown(*partition) && !placement.home(*partition).is_changing();
                (is_to_count || transfers.may_hand_back(engine, placement, *partition))
                    && self.may_achieve_something(*partition)
            };
            let foreign = transfers.foreign.partitions().filter(is_to_visit);
            pieces.extend(foreign.map(Piece::HandBack));
        }
        if !transfers.gives_pushes() || !transfers.takes_pushes() {
            // A comparison brings copies in both directions.
            return pieces;
        }
        for home in placement.homes() {
            let partition = home.home();
            let Some(filling) = transfers.classes.filling(partition) else { continue };
            for n in ns.iter().filter(|n| !filling.full.contains(n)) {
                if fill::is_to_be_full(&home, here, *n) {
                    pieces.push(Piece::Fill(ClassId { partition, n: *n }));
                }
            }
        }
        pieces
    }

    /// Whether a pass over a partition may achieve something.
    fn may_achieve_something(&self, partition: u32) -> bool {
        let Some(waiting) = self.waiting.get(&partition) else { return true };
        let is_new = self.transfers.foreign.begun(partition) > waiting.begun;
        let now = self.transfers.runtime.now();
        let is_waited_for_up = waiting.missing.is_empty() || !waiting.missing.is_disjoint(&self.up);
        is_waited_for_up || is_new && now >= waiting.next_pass
    }

    fn start(&mut self, engine: &Arc<Engine>, piece: Piece) {
        self.active.insert(piece);
        let (transfers, engine) = (self.transfers.clone(), engine.clone());
        let since_seq = match piece {
            Piece::HandBack(partition) => self.since_seq(partition),
            _ => 0,
        };
        if let Piece::HandBack(partition) = piece {
            let begun = transfers.foreign.begun(partition);
            let wait =
                Waiting { missing: BTreeSet::new(), begun, visited_seq: since_seq, next_pass: transfers.runtime.now() };
            self.waiting.entry(partition).or_insert(wait).begun = begun;
        }
        self.running.push(Box::pin(async move {
            let began = transfers.runtime.now();
            let ended = match piece {
                Piece::HandBack(partition) => {
                    let left = transfers.hand_back(&engine, partition, since_seq).await;
                    Ended::HandBack(left, transfers.runtime.now().saturating_duration_since(began))
                }
                Piece::Pay(class, peer) => Ended::Other(transfers.pay(&engine, class, peer).await),
                Piece::CarryOut(class, to) => Ended::Other(transfers.carry_out(&engine, class, to).await),
                Piece::Prove(class, node) => Ended::Prove(transfers.prove(&engine, class, node).await),
                Piece::Repair => {
                    transfers.repair_unreadable(&engine).await;
                    Ended::Other(Ok(()))
                }
                Piece::Fill(class) => Ended::Other(
                    transfers
                        .fill(&engine, class)
                        .await
                        .and_then(|open| if open.is_empty() { Ok(()) } else { Err(Error::AllNodesDown) }),
                ),
            };
            (piece, ended)
        }));
    }

    /// A pass visits everything, unless the same primaries as before are still missing.
    fn since_seq(&self, partition: u32) -> u64 {
        let Some(waiting) = self.waiting.get(&partition) else { return 0 };
        let is_still_missing = !waiting.missing.is_empty() && waiting.missing.is_disjoint(&self.up);
        if is_still_missing { waiting.visited_seq } else { 0 }
    }

    fn ended(&mut self, piece: Piece, ended: Ended) {
        self.active.remove(&piece);
        let (why, left) = match (piece, ended) {
            (Piece::HandBack(partition), Ended::HandBack(Ok(left), worked)) => {
                (None, !self.passed(partition, left, worked))
            }
            (_, Ended::Prove(Ok(Proving::WaitsForOthers))) => return self.pause(piece, 0),
            (_, Ended::HandBack(Ok(_), _) | Ended::Prove(Ok(Proving::Proved)) | Ended::Other(Ok(()))) => (None, false),
            (_, Ended::HandBack(Err(why), _) | Ended::Prove(Err(why)) | Ended::Other(Err(why))) => (Some(why), true),
        };
        if let Some(why) = why {
            debug!(?piece, %why, "a transfer has not ended; it is tried again");
        }
        if left {
            let failures = self.pauses.get(&piece).map_or(0, |pause| pause.failures);
            self.pause(piece, failures);
        } else {
            self.pauses.remove(&piece);
        }
    }

    /// Lets a piece wait that has failed so often before.
    fn pause(&mut self, piece: Piece, failures: u32) {
        let until = self.transfers.runtime.now() + (RETRY_MIN * (1 << failures.min(16))).min(RETRY_MAX);
        self.pauses.insert(piece, Pause { failures: failures + 1, until });
    }

    /// Remembers for which primaries the copies of a partition wait. Returns whether none is left.
    fn passed(&mut self, partition: u32, left: Left, worked: Duration) -> bool {
        if left.amounts.is_empty() && left.is_whole {
            self.waiting.remove(&partition);
            return true;
        }
        let next_pass = self.transfers.runtime.now() + PASS_PAUSE_MIN.max(worked * PASS_PAUSE_PER_WORK);
        if let Some(waiting) = self.waiting.get_mut(&partition) {
            // A pass over what is new says nothing about what is older.
            if left.is_whole {
                waiting.missing.clear();
            }
            waiting.missing.extend(left.missing);
            (waiting.visited_seq, waiting.next_pass) = (left.visited_seq, next_pass);
        }
        false
    }
}
