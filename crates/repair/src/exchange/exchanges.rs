//! The state of the exchanges of one node, which both sides use: the marks, the tokens of its
//! classes, what is to be brought back, and which classes it works on.

use super::back::WaysBack;
use super::client::{ExchangePeers, Standing};
use super::config::ExchangeConfig;
use super::control::Control;
use super::doubt::DoubtRounds;
use super::dropped::DroppedCopies;
use super::figures::ExchangeCounts;
use super::kept_sums::KeptSums;
use super::other_ways::AskedKeys;
use super::pairs::{Basis, Pair, busy, is_pair, pairs, without_exchanges};
use super::schedule::Schedule;
use super::sums::{Cut, NO_SLOTS, SumSource, first_slot_at};
use super::sums_schedule::SumsSchedule;
use super::visits::Visits;
use super::waiting::Obstacles;
use crate::Host;
use crate::set_back::find_set_back;
use crate::throttle::Throttle;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{PeerStore, RepairHost};
use ombak_kv::replica::ToldSeq;
use ombak_ring::placement::Placement;
use ombak_runtime::RuntimeExt;
use ombak_storage::Backend;
use ombak_types::{Error, NodeId, StoreFailure};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long the visit of another node lasts after its last question, beside the pause between its
/// two looks.
const VISIT_LASTS: Duration = Duration::from_millis(500);

/// The exchanges of one node.
pub(crate) struct Exchanges {
    pub(super) config: ExchangeConfig,
    pub(super) control: Control,
    pub(super) peers: Arc<dyn ExchangePeers>,
    pub(super) dropped: Arc<DroppedCopies>,
    pub(super) sums: Box<dyn SumSource>,
    pub(super) ways_back: WaysBack,
    /// What reads have left to exchanges.
    pub(super) asked_keys: AskedKeys,
    pub(super) schedule: Mutex<Schedule>,
    /// What the pairs of the schedule followed from, and the nodes without exchanges then.
    basis: Mutex<Option<(Basis, BTreeSet<NodeId>)>>,
    pub(super) sums_schedule: Mutex<SumsSchedule>,
    pub(super) visits: Visits,
    pub(super) counts: Arc<ExchangeCounts>,
    pub(super) throttle: Throttle,
    /// The classes that this node works on as the one that asks, pauses included, and the node that
    /// it asks.
    pub(super) working_on: Mutex<BTreeMap<ClassId, NodeId>>,
    /// Why exchanges have not ended in full.
    pub(super) obstacles: Obstacles,
    /// With whom stores in doubt were compared.
    pub(super) doubt_rounds: DoubtRounds,
    is_all_due: AtomicBool,
}

impl Exchanges {
    /// The exchanges of a node.
    pub(super) fn new(
        host: &dyn RepairHost,
        peers: Arc<dyn ExchangePeers>,
        config: ExchangeConfig,
        dropped: Arc<DroppedCopies>,
    ) -> Self {
        Self {
            config,
            control: Control::new(config.begins),
            peers,
            dropped,
            sums: Box::new(KeptSums),
            ways_back: WaysBack::default(),
            asked_keys: AskedKeys::default(),
            schedule: Mutex::new(Schedule::new(config.interval)),
            basis: Mutex::default(),
            sums_schedule: Mutex::new(SumsSchedule::new(config.check_sums_every)),
            visits: Visits::new(config.look_again_after + VISIT_LASTS),
            counts: Arc::default(),
            throttle: Throttle::new(host.runtime().clone(), config.bytes_per_second),
            working_on: Mutex::default(),
            obstacles: Obstacles::default(),
            doubt_rounds: DoubtRounds::default(),
            is_all_due: AtomicBool::new(false),
        }
    }

    /// Makes everything due at once.
    pub(super) fn set_all_due(&self) {
        self.is_all_due.store(true, Ordering::SeqCst);
    }

    pub(super) fn takes_all_due(&self) -> bool {
        self.is_all_due.swap(false, Ordering::SeqCst)
    }

    /// The store of this node for a class, with the token that stands for how long the class has
    /// been full; none if it is not full. The token is durable when this returns. Blocks.
    pub(super) fn own_store(&self, host: &dyn RepairHost, class: ClassId) -> Result<Option<PeerStore>, Error> {
        if !is_full_primary(host, &host.placement(), class) {
            return Ok(None);
        }
        let ns = host.buckets().snapshot().all_n_vals();
        host.transfers().own_store(host.partitions(), class, &ns)
    }

    /// The store of this node for a class of which it is a full primary, or is to be one: then a
    /// proof gives a mark for it. Blocks.
    pub(super) fn marked_store(&self, host: &dyn RepairHost, class: ClassId) -> Result<Option<PeerStore>, Error> {
        match self.own_store(host, class)? {
            Some(own) => Ok(Some(own)),
            None => host.transfers().joining_store(host.partitions(), class),
        }
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
        let full = self.own_store(host, class)?;
        let joining = if full.is_none() { host.transfers().joining_store(host.partitions(), class)? } else { None };
        let is_full = full.is_some();
        let Some(PeerStore { store_id, token }) = full.or(joining) else { return Ok(Standing::default()) };
        Ok(Standing { is_full, is_lost: is_lost(host, class, asked_seq)?, store_id, token, seq })
    }

    /// Forgets what belongs to pairs of nodes and classes that are none any more. Blocks.
    pub(super) fn forget_needless(&self, host: &dyn RepairHost) -> io::Result<()> {
        let (placement, here) = (host.placement(), host.node_id());
        let is_needed = |class, node| is_pair(&placement, here, class, node) && !host.peers().was_removed(node);
        self.ways_back.retain(|(class, node)| is_needed(class, node));
        self.counts.retain(|(class, node)| is_needed(class, node));
        self.obstacles.retain(|(class, node)| is_needed(class, node));
        host.transfers().told.retain(|node| !host.peers().was_removed(node));
        // A node that is no primary any more judges by its marks what it still holds of the class.
        let was_primary = |class: ClassId, node| {
            let is_of_ring = class.partition < placement.size().get();
            let is_none = is_of_ring && !placement.home(class.partition).is_primary(here, class.n);
            is_none && node != here && !host.transfers().foreign.holds_nothing(class)
        };
        host.transfers().marks.retain(|class, node| is_needed(class, node) || was_primary(class, node))
    }

    /// Takes the pairs that there are now, if something has changed that they follow from.
    pub(super) fn refresh(&self, host: &dyn RepairHost, placement: &Placement) {
        let (basis, mut before) = (Basis::of(host), self.basis.lock());
        let without = without_exchanges(host, placement, &*self.peers);
        if before.as_ref().is_some_and(|(before, lacking)| before.is_same(&basis) && *lacking == without) {
            return;
        }
        *before = Some((basis, without.clone()));
        let runtime = host.runtime();
        // Without randomness the phases are equal, and nothing else is wrong.
        let random = || runtime.random_u64().unwrap_or_default();
        let pairs = pairs(host, placement, &without);
        self.schedule.lock().set_pairs(&pairs, runtime.now(), random);
    }

    /// The first slot of expiry that an exchange of a class compares, if it begins now.
    pub(super) fn first_slot(host: &dyn RepairHost, class: ClassId) -> Result<u32, Error> {
        let partition = host.partitions().find(class.partition)?;
        Ok(if partition.store().removes_by_itself() { NO_SLOTS } else { first_slot_at(host.now()) })
    }

    /// The sums of a class from a first slot of expiry on, synced. Fails as busy while they are not
    /// known. Blocks.
    pub(super) fn cut(&self, host: &dyn RepairHost, class: ClassId, first_slot: u32) -> Result<Cut, Error> {
        let cut = self.sums.cut(host, class, first_slot)?;
        cut.ok_or_else(|| super::pairs::busy("the sums of this class are not known at the moment"))
    }
}

/// Whether a seq that the store of a class has issued is not there any more.
pub(super) fn is_lost(host: &dyn RepairHost, class: ClassId, seq: u64) -> Result<bool, Error> {
    let partition = host.partitions().find(class.partition)?;
    Ok(lacks(&**partition.store(), seq))
}

/// What counts of a seq of this node's store up to which another node has noted everything: nothing
/// if the store was set back to before it, and this node knows that. The other node keeps such a
/// mark until the next one takes its place. If this node does not know it yet, its store counts as
/// restored from now on, and this fails.
pub(super) fn counted_seq(host: &Host, (class, node): Pair, known_seq: u64) -> Result<u64, Error> {
    let partition = host.partitions().find(class.partition)?;
    let store = partition.store();
    if known_seq <= store.last_seq() && !store.openings().is_lost_for_told(known_seq) {
        return Ok(known_seq);
    }
    if host.transfers().knows_set_back(host.node_id(), &partition, known_seq) {
        return Ok(0);
    }
    let told = ToldSeq { store_id: store.identity().store_id, seq: known_seq };
    find_set_back(host, node, &[(class.partition, told)]);
    Err(busy("this node's store does not have what it has told, and is compared with the other replicas first"))
}

/// Whether a store has not got as far as a seq that it has issued, or has lost it in this run or an
/// earlier one.
pub(super) fn lacks(store: &dyn Backend, seq: u64) -> bool {
    seq > store.last_seq() || store.openings().is_lost_for_mark(seq)
}

fn is_full_primary(host: &dyn RepairHost, placement: &Placement, class: ClassId) -> bool {
    is_pair(placement, host.node_id(), class, host.node_id()) && host.is_full(class.partition, class.n)
}

/// The failure of an answer or a step whose mark could not be saved.
pub(super) fn not_saved(why: &io::Error) -> Error {
    StoreFailure::internal(format!("the marks of exchanges could not be saved: {why}")).into()
}
