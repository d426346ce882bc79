//! The state of the exchanges of one node, which both sides use: the marks, the tokens of its
//! classes, what is to be brought back, and which classes it works on.

use super::back::WaysBack;
use super::client::{ExchangePeers, Standing};
use super::config::ExchangeConfig;
use super::dropped::DroppedCopies;
use super::figures::ExchangeCounts;
use super::folded_sums::FoldedSums;
use super::marks::{Marks, PeerStore};
use super::marks_file::SavedMarks;
use super::pairs::{is_pair, pairs};
use super::schedule::Schedule;
use super::sums::{Cut, SumSource};
use crate::throttle::Throttle;
use ombak_kv::ClassId;
use ombak_kv::repair_host::RepairHost;
use ombak_ring::placement::Placement;
use ombak_runtime::{RuntimeExt, Waited};
use ombak_storage::Backend;
use ombak_types::{Error, StoreFailure};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exchanges of one node.
pub(crate) struct Exchanges {
    pub(super) config: ExchangeConfig,
    pub(super) peers: Arc<dyn ExchangePeers>,
    pub(super) marks: SavedMarks,
    pub(super) dropped: DroppedCopies,
    pub(super) sums: Box<dyn SumSource>,
    pub(super) ways_back: WaysBack,
    pub(super) schedule: Mutex<Schedule>,
    pub(super) counts: Arc<ExchangeCounts>,
    pub(super) throttle: Throttle,
    /// The classes that this node works on as the one that asks, pauses included.
    pub(super) working_on: Mutex<BTreeSet<ClassId>>,
    /// For each token that was drawn or found in this run: the losses of the partition then.
    losses: Mutex<BTreeMap<ClassId, u64>>,
    is_all_due: AtomicBool,
}

impl Exchanges {
    /// The exchanges of a node that has read its marks. Nothing of it may be filled before this:
    /// the token of a class that is not full is forgotten here, and would look valid when the class
    /// is full again.
    pub(super) fn open(
        host: &dyn RepairHost,
        peers: Arc<dyn ExchangePeers>,
        config: ExchangeConfig,
        marks: SavedMarks,
        dropped: DroppedCopies,
    ) -> io::Result<Self> {
        let exchanges = Self {
            config,
            peers,
            marks,
            dropped,
            sums: Box::new(FoldedSums),
            ways_back: WaysBack::default(),
            schedule: Mutex::new(Schedule::new(config.interval)),
            counts: Arc::default(),
            throttle: Throttle::new(host.runtime().clone(), config.bytes_per_second),
            working_on: Mutex::default(),
            losses: Mutex::default(),
            is_all_due: AtomicBool::new(false),
        };
        exchanges.forget_tokens(host)?;
        let found = exchanges.marks.read(|marks| marks.tokens.keys().copied().collect::<Vec<_>>());
        let losses = found.into_iter().map(|class| (class, host.transfers().classes.losses(class.partition)));
        *exchanges.losses.lock() = losses.collect();
        Ok(exchanges)
    }

    /// Makes everything due at once.
    pub(super) fn set_all_due(&self) {
        self.is_all_due.store(true, Ordering::SeqCst);
    }

    pub(super) fn takes_all_due(&self) -> bool {
        self.is_all_due.swap(false, Ordering::SeqCst)
    }

    /// The store of this node for a class, with the token that stands for how long the class has
    /// been full; none if it is not full. A class that has become full gets a new token, which is
    /// durable when this returns. Blocks.
    pub(super) fn own_store(&self, host: &dyn RepairHost, class: ClassId) -> Result<Option<PeerStore>, Error> {
        // A loss that comes later makes the class filling, and is noticed at the next call.
        let losses = host.transfers().classes.losses(class.partition);
        if !is_full_primary(host, &host.placement(), class) {
            self.marks.change(|marks| marks.forget_token(class)).map_err(|why| not_saved(&why))?;
            return Ok(None);
        }
        let store_id = host.partitions().find(class.partition)?.store().identity().store_id;
        // Locked to the end, so that two questions draw one token.
        let mut known_losses = self.losses.lock();
        let is_known = known_losses.get(&class) == Some(&losses);
        let found = self.marks.read(|marks| marks.token(class, store_id)).filter(|_| is_known);
        if let Some(token) = found {
            return Ok(Some(PeerStore { store_id, token }));
        }
        // 0 stands for "not full" in answers.
        let own = PeerStore { store_id, token: host.runtime().random_u64()?.max(1) };
        let draw = |marks: &mut Marks| {
            marks.tokens.insert(class, own);
            true
        };
        self.marks.change(draw).map_err(|why| not_saved(&why))?;
        known_losses.insert(class, losses);
        Ok(Some(own))
    }

    /// What another node can rely on: `asked_seq` is the seq of this node's store that it was told
    /// last, and `seq` is what is on the disk by now. Call it after the look that the answer is
    /// about. Blocks.
    pub(super) fn standing(
        &self,
        host: &dyn RepairHost,
        class: ClassId,
        (asked_seq, seq): (u64, u64),
    ) -> Result<Standing, Error> {
        let Some(PeerStore { store_id, token }) = self.own_store(host, class)? else { return Ok(Standing::default()) };
        Ok(Standing { is_full: true, is_lost: is_lost(host, class, asked_seq)?, store_id, token, seq })
    }

    /// Forgets the tokens of classes that are not full here. Called often, so that no class is
    /// filled between two calls unnoticed. Blocks if there are any.
    pub(super) fn forget_tokens(&self, host: &dyn RepairHost) -> io::Result<()> {
        let gone = self.tokens_to_forget(host);
        if gone.is_empty() {
            return Ok(());
        }
        self.losses.lock().retain(|class, _| !gone.contains(class));
        self.marks
            .change(|marks| gone.iter().fold(false, |has_changed, class| marks.forget_token(*class) | has_changed))
    }

    /// The classes that have a token and are not full here.
    pub(super) fn tokens_to_forget(&self, host: &dyn RepairHost) -> BTreeSet<ClassId> {
        let placement = host.placement();
        let classes = self.marks.read(|marks| marks.tokens.keys().copied().collect::<Vec<_>>());
        let gone = |class: &ClassId| !is_full_primary(host, &placement, *class);
        classes.into_iter().filter(gone).collect()
    }

    /// Forgets what belongs to pairs of nodes and classes that are none any more. Blocks.
    pub(super) fn forget_needless(&self, host: &dyn RepairHost) -> io::Result<()> {
        let (placement, here) = (host.placement(), host.node_id());
        let is_needed = |class, node| is_pair(&placement, here, class, node) && !host.peers().was_removed(node);
        self.ways_back.retain(|(class, node)| is_needed(class, node));
        self.counts.retain(|(class, node)| is_needed(class, node));
        self.marks.change(|marks| marks.retain(is_needed))
    }

    /// Takes the pairs that there are now.
    pub(super) fn refresh(&self, host: &dyn RepairHost, placement: &Placement) {
        let runtime = host.runtime();
        // Without randomness the phases are equal, and nothing else is wrong.
        let random = || runtime.random_u64().unwrap_or_default();
        self.schedule.lock().set_pairs(&pairs(host, placement), runtime.now(), random);
    }

    /// The sums of a class, synced. Fails as busy while they are not known. Blocks.
    pub(super) fn cut(&self, host: &dyn RepairHost, class: ClassId, waited: &Waited<'_>) -> Result<Cut, Error> {
        let cut = self.sums.cut(host, class, waited)?;
        cut.ok_or_else(|| super::pairs::busy("the sums of this class are not known at the moment"))
    }
}

/// Whether a seq that the store of a class has issued is not there any more.
pub(super) fn is_lost(host: &dyn RepairHost, class: ClassId, seq: u64) -> Result<bool, Error> {
    let partition = host.partitions().find(class.partition)?;
    Ok(lacks(&**partition.store(), seq))
}

/// Whether a store has not got as far as a seq that it has issued, or has lost it. A store that was
/// set back is found out during the whole run that begins with that: each start skips seqs, so one
/// later append is enough for a higher seq than the lost one. Later runs do not know what an
/// earlier one found.
pub(super) fn lacks(store: &dyn Backend, seq: u64) -> bool {
    let is_of_this_run = seq >= store.first_seq();
    seq > if is_of_this_run { store.last_seq() } else { store.found_seq() }
}

fn is_full_primary(host: &dyn RepairHost, placement: &Placement, class: ClassId) -> bool {
    is_pair(placement, host.node_id(), class, host.node_id()) && host.is_full(class.partition, class.n)
}

/// The failure of an answer or a step whose mark could not be saved.
pub(super) fn not_saved(why: &io::Error) -> Error {
    StoreFailure::internal(format!("the marks of exchanges could not be saved: {why}")).into()
}
