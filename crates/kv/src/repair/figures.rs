//! Figures about copies that do not lie where they belong.

use super::fill::is_to_be_full;
use crate::config::TransferConfig;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::engine::Kv;
use crate::replica::ClassId;
use crate::transfer::{Amount, FillReason, Transfer, TransferKind, Transfers};
use ombak_stats::TransferFigures;
use ombak_types::NodeId;
use std::collections::BTreeMap;

/// What this node has still to do until everything lies where it belongs and nothing waits for its
/// removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Partitions that may hold copies for other nodes. After a start, and after a change of the
    /// ring, all partitions count until the node has looked.
    pub partitions_with_hints: u64,
    /// The copies that this node holds for others, about.
    pub hints: Amount,
    /// Classes and peers that missed writes.
    pub owed_marks: u64,
    /// Classes that may lack something.
    pub filling_classes: u64,
    /// Transfers under way, and orders of other nodes that are not done.
    pub transfers: u64,
    /// Versions that this node cannot read, as far as it has found them. Hints, owed marks and
    /// filling classes may wait for them (see [`Kv::unreadable_report`]).
    pub unreadable_keys: u64,
    /// Tombstones and expired versions of which a round of reaping has found that another primary
    /// lacks them, or has something else. They are among `versions_to_reap`.
    pub versions_lacked: u64,
    /// Tombstones and expired versions that wait for their time or for their removal.
    pub versions_to_reap: u64,
    /// Whether there may be more of them: after a start and after a change of the ring, the node
    /// looks through its stores for those of the time before.
    pub looks_for_tombstones: bool,
}

impl Settled {
    /// Whether every copy lies where it belongs. Versions that only wait for their removal do not
    /// count.
    pub fn is_settled(&self) -> bool {
        let reaping = Self { versions_to_reap: self.versions_to_reap, ..Self::default() };
        Self { looks_for_tombstones: false, ..*self } == reaping
    }

    /// Whether nothing waits for its removal, as far as this node knows.
    pub fn is_reaped(&self) -> bool {
        self.versions_to_reap == 0 && !self.looks_for_tombstones
    }
}

impl Kv {
    /// Starts the work that brings copies back to where they belong, once. Call it where
    /// `Runtime::spawn` works. A node that is alone has nothing to do, and may start it all the
    /// same.
    pub fn start_transfers(&self) {
        Transfers::start(&self.engine);
    }

    /// Whether everything of this node lies where it belongs.
    pub fn settled(&self) -> Settled {
        let (engine, transfers) = (&self.engine, &self.engine.transfers);
        let mut settled = Settled::default();
        let placement = engine.placement();
        let leaves = !engine.config.peers.may_stand_in(engine.identity.node_id)
            && !placement.nodes().contains(&engine.identity.node_id);
        // What a leaver has proved it need not remove.
        let is_given = |partition| transfers.foreign.is_given(partition, placement.home(partition).version());
        for partition in transfers.foreign.partitions().filter(|partition| !leaves || !is_given(*partition)) {
            settled.partitions_with_hints += 1;
            settled.hints += transfers.foreign.amount_of(partition);
        }
        settled.owed_marks = self.payable_marks().count() as u64;
        settled.filling_classes = self.filling_classes().len() as u64;
        settled.transfers = (transfers.progress.list().len() + transfers.orders.open().len()) as u64;
        settled.unreadable_keys = engine.partitions().unreadable_keys().count() as u64;
        if engine.is_alone_in(&engine.placement()) {
            settled = Settled::default();
        }
        let is_owner = || engine.placement().nodes().contains(&engine.identity.node_id);
        if is_broken(BrokenRule::LeaversSayWhatTheyHold) && !is_owner() {
            settled.partitions_with_hints = 0;
        }
        let reaper = engine.reaper.waiting();
        settled.versions_lacked = engine.reaping.due.lacked_count() as u64;
        settled.versions_to_reap = (reaper.versions + engine.reaping.due.count()) as u64;
        settled.looks_for_tombstones = !reaper.has_looked;
        settled
    }

    /// The copies that this node holds for others, about, by the partition; partitions that may
    /// hold some and were not looked at yet have none.
    pub fn hints(&self) -> Vec<(u32, Amount)> {
        let foreign = &self.engine.transfers.foreign;
        if self.engine.is_alone_in(&self.engine.placement()) {
            return Vec::new();
        }
        foreign.partitions().map(|partition| (partition, foreign.amount_of(partition))).collect()
    }

    /// The classes of which other nodes have ordered what they lack, with the node that gets it,
    /// as far as that is not done.
    pub fn ordered_transfers(&self) -> Vec<(ClassId, NodeId)> {
        self.engine.transfers.orders.open()
    }

    /// The figures of transfers, for the statistics.
    pub fn transfer_figures(&self) -> TransferFigures {
        let transfers = &self.engine.transfers;
        let settled = self.settled();
        let active = transfers.progress.list();
        let handed_back = active.iter().filter(|transfer| transfer.kind == TransferKind::HandBack).count();
        let counts = &transfers.progress.counts;
        let (hinted, repair, received) = (counts.hinted(), counts.repair(), counts.taken());
        TransferFigures {
            hinted_objects: settled.hints.keys,
            hinted_bytes: settled.hints.bytes,
            hinted_partitions: settled.partitions_with_hints,
            owed_marks: settled.owed_marks,
            filling_classes: settled.filling_classes,
            hinted_active: handed_back as u64,
            repair_active: (active.len() - handed_back) as u64,
            hinted_objects_sent: hinted.0,
            hinted_bytes_sent: hinted.1,
            repair_objects_sent: repair.0,
            repair_bytes_sent: repair.1,
            objects_received: received.0,
            bytes_received: received.1,
            rejected: counts.rejections(),
            timeouts: counts.timeouts(),
        }
    }

    /// The classes of this node that may lack something, each with the reason.
    pub fn filling_classes(&self) -> Vec<(ClassId, FillReason)> {
        let (engine, transfers) = (&self.engine, &self.engine.transfers);
        let (placement, ns) = (engine.placement(), engine.buckets.snapshot().all_n_vals());
        let mut classes = Vec::new();
        for home in placement.homes() {
            let partition = home.home();
            let filling = transfers.classes.filling(partition);
            for n in ns.iter().copied().filter(|n| is_to_be_full(&home, engine.identity.node_id, *n)) {
                let lost = filling.as_ref().filter(|filling| !filling.full.contains(&n)).map(|filling| filling.reason);
                let joining = transfers.classes.is_joining(partition, n).then_some(FillReason::Joining);
                classes.extend(lost.or(joining).map(|reason| (ClassId { partition, n }, reason)));
            }
        }
        classes
    }

    /// The classes that this node has and of which a peer missed writes.
    pub fn owed_marks(&self) -> Vec<(ClassId, NodeId)> {
        self.payable_marks().collect()
    }

    /// The marks of classes of which this node and the peer are primaries. A mark for a peer that
    /// is no primary any more waits for the peer's return or removal.
    fn payable_marks(&self) -> impl Iterator<Item = (ClassId, NodeId)> {
        let (placement, here) = (self.engine.placement(), self.engine.identity.node_id);
        let marks = self.engine.transfers.owed.list().into_iter().map(|owed| (owed.class, owed.peer));
        marks.filter(move |(class, peer)| {
            let home = placement.home(class.partition);
            home.is_primary(here, class.n) && home.is_primary(*peer, class.n)
        })
    }

    /// Whether this node is known to hold everything of a class.
    pub fn is_full(&self, class: ClassId) -> bool {
        self.engine.transfers.classes.is_full(class.partition, class.n)
    }

    /// Whether this node may hold copies of a class of which it is no primary.
    pub fn may_hold_hints(&self, class: ClassId) -> bool {
        let foreign = &self.engine.transfers.foreign;
        foreign.is_foreign(class) && !foreign.holds_nothing(class)
    }

    /// Whether another node missed writes of a class that this node has.
    pub fn has_owed(&self, class: ClassId, peer: NodeId) -> bool {
        self.engine.transfers.owed.has_owed(class, peer)
    }

    /// What this node holds for others, by the primaries that lack it because they are down. What
    /// waits for none that is down counts for the first primary.
    pub fn foreign_by_owner(&self) -> BTreeMap<NodeId, Amount> {
        let (engine, placement) = (&self.engine, self.engine.placement());
        let mut owners: BTreeMap<NodeId, Amount> = BTreeMap::new();
        for partition in engine.transfers.foreign.partitions() {
            for (n, amount) in engine.transfers.foreign.amounts_of(partition) {
                if amount == Amount::default() {
                    continue;
                }
                let primaries = placement.home(partition).primaries(n);
                let down = primaries.iter().filter(|node| !engine.config.peers.is_up(**node));
                let mut waited_for: Vec<NodeId> = down.copied().collect();
                if waited_for.is_empty() {
                    waited_for.extend(primaries.first());
                }
                waited_for.into_iter().for_each(|node| *owners.entry(node).or_default() += amount);
            }
        }
        owners
    }

    /// Versions of this node that cannot be read and wait to be repaired from other replicas, and
    /// the number of those that were repaired since the start.
    pub fn unreadable_keys(&self) -> (usize, u64) {
        let keys = self.engine.partitions().unreadable_keys();
        (keys.count(), keys.repaired_count())
    }

    /// The transfers under way.
    pub fn transfers(&self) -> Vec<Transfer> {
        self.engine.transfers.progress.list()
    }

    /// Keys and bytes that this node has pushed to others since its start.
    pub fn pushed(&self) -> (u64, u64) {
        let counts = &self.engine.transfers.progress.counts;
        let (hinted, repair) = (counts.hinted(), counts.repair());
        (hinted.0 + repair.0, hinted.1 + repair.1)
    }

    /// Sets whether this node pushes copies to others (`outbound`), and whether it takes what
    /// others push (`inbound`). What has to be pushed is noted all the same. What is under way ends
    /// at its next push.
    pub fn set_handoff(&self, outbound: bool, inbound: bool) {
        self.engine.transfers.set_enabled(outbound, inbound);
    }

    /// The limits of transfers that are in force.
    pub fn transfer_config(&self) -> TransferConfig {
        self.engine.transfers.config()
    }

    /// Sets how many classes and partitions are worked on at the same time; 0: no work begins. What
    /// is under way goes on.
    pub fn set_transfer_limit(&self, concurrency: usize) {
        self.engine.transfers.set_concurrency(concurrency);
    }

    /// Sets the maximum of the bytes that this node pushes in a second; 0: no limit.
    pub fn set_transfer_rate(&self, bytes_per_second: u64) {
        self.engine.transfers.set_bytes_per_second(bytes_per_second);
    }

    /// Tries at once what has failed and waits for its next try, because another node takes pushes
    /// again.
    pub fn retry_transfers(&self) {
        self.engine.transfers.retry_at_once();
    }

    /// Whether the directory has the file that says which replicas of this node are full. A node
    /// that was never in a cluster has none. If a member has none, it does not know what it lacks.
    pub fn has_replica_state(&self) -> bool {
        self.engine.transfers.has_state()
    }

    /// Writes that file, for a node that is about to become a member. Returns false if it could not
    /// be saved. Blocks: not for network threads.
    pub fn save_replica_state(&self) -> bool {
        self.engine.transfers.save_first_state(self.engine.partitions())
    }

    /// Makes all replicas of this node filling, durably, for a node whose directory is new or older
    /// than what its cluster knows. Returns false if that could not be saved. Blocks: not for
    /// network threads.
    pub fn set_all_filling(&self, reason: FillReason) -> bool {
        self.engine.transfers.set_all_filling(self.engine.partitions(), reason)
    }
}
