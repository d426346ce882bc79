//! Figures about copies that do not lie where they belong.

use crate::progress::{Transfer, TransferKind};
use crate::repair::Repair;
use ombak_kv::repair_host::{BrokenRule, is_broken};
use ombak_kv::{Amount, ClassId, TransferConfig};
use ombak_stats::{ClusterFigures, TransferFigures};
use ombak_types::NodeId;

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
    /// Transfers under way, and orders of other nodes that are not done. What exchanges bring is
    /// not counted: it does not say that anything is known to lie where it does not belong.
    pub transfers: u64,
    /// Versions that this node cannot read, as far as it has found them. Hints, owed marks and
    /// filling classes may wait for them (see [`Repair::unreadable_report`]).
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

impl Repair {
    /// Whether everything of this node lies where it belongs.
    pub fn settled(&self) -> Settled {
        let (host, transfers) = (&self.host, self.host.transfers());
        let mut settled = Settled::default();
        let (placement, here) = (host.placement(), host.node_id());
        let leaves = !host.peers().may_stand_in(here) && !placement.nodes().contains(&here);
        // What a leaver has proved it need not remove.
        let is_given = |partition| transfers.foreign.is_given(partition, placement.home(partition).version());
        for partition in transfers.foreign.partitions().filter(|partition| !leaves || !is_given(*partition)) {
            settled.partitions_with_hints += 1;
            settled.hints += transfers.foreign.amount_of(partition);
        }
        settled.owed_marks = self.kv.owed_marks().len() as u64;
        settled.filling_classes = self.kv.filling_classes().len() as u64;
        let transfers = self.work.progress.list();
        let known = transfers.iter().filter(|transfer| transfer.kind != TransferKind::Exchange).count();
        settled.transfers = (known + self.work.orders.open().len()) as u64;
        settled.unreadable_keys = host.partitions().unreadable_keys().count() as u64;
        if host.is_alone_in(&host.placement()) {
            settled = Settled::default();
        }
        let is_owner = || host.placement().nodes().contains(&here);
        if is_broken(BrokenRule::LeaversSayWhatTheyHold) && !is_owner() {
            settled.partitions_with_hints = 0;
        }
        let (reaper, due) = (host.waiting_tombstones(), &host.reaping().due);
        settled.versions_lacked = due.lacked_count() as u64;
        settled.versions_to_reap = (reaper.versions + due.count()) as u64;
        settled.looks_for_tombstones = !reaper.has_looked;
        settled
    }

    /// The classes of which other nodes have ordered what they lack, with the node that gets it,
    /// as far as that is not done.
    pub fn ordered_transfers(&self) -> Vec<(ClassId, NodeId)> {
        self.work.orders.open()
    }

    /// The figures of transfers, for the statistics.
    pub fn transfer_figures(&self) -> TransferFigures {
        let work = &self.work;
        let settled = self.settled();
        let active = work.progress.list();
        let handed_back = active.iter().filter(|transfer| transfer.kind == TransferKind::HandBack).count();
        let counts = &work.progress.counts;
        let exchanging = active.iter().filter(|transfer| transfer.kind == TransferKind::Exchange).count();
        let (hinted, repair, received) = (counts.hinted(), counts.repair(), counts.taken());
        let exchanged = counts.exchanged();
        TransferFigures {
            hinted_objects: settled.hints.keys,
            hinted_bytes: settled.hints.bytes,
            hinted_partitions: settled.partitions_with_hints,
            owed_marks: settled.owed_marks,
            filling_classes: settled.filling_classes,
            hinted_active: handed_back as u64,
            repair_active: (active.len() - handed_back - exchanging) as u64,
            exchange_active: exchanging as u64,
            hinted_objects_sent: hinted.0,
            hinted_bytes_sent: hinted.1,
            repair_objects_sent: repair.0,
            repair_bytes_sent: repair.1,
            exchange_objects_sent: exchanged.0,
            exchange_bytes_sent: exchanged.1,
            objects_received: received.0,
            bytes_received: received.1,
            rejected: counts.rejections(),
            timeouts: counts.timeouts(),
        }
    }

    /// What this node counts about the other nodes of its cluster, and about its work for them.
    pub fn cluster_figures(&self) -> ClusterFigures {
        ClusterFigures { transfers: self.transfer_figures(), ..self.host.cluster_figures() }
    }

    /// The transfers under way.
    pub fn transfers(&self) -> Vec<Transfer> {
        self.work.progress.list()
    }

    /// Keys and bytes that this node has pushed to others since its start.
    pub fn pushed(&self) -> (u64, u64) {
        let counts = &self.work.progress.counts;
        let sent = [counts.hinted(), counts.repair(), counts.exchanged()];
        (sent.iter().map(|sent| sent.0).sum(), sent.iter().map(|sent| sent.1).sum())
    }

    /// Sets whether this node pushes copies to others (`outbound`), and whether it takes what
    /// others push (`inbound`). What has to be pushed is noted all the same. What is under way ends
    /// at its next push.
    pub fn set_handoff(&self, outbound: bool, inbound: bool) {
        self.work.set_enabled(&self.host, outbound, inbound);
    }

    /// The limits of transfers that are in force.
    pub fn transfer_config(&self) -> TransferConfig {
        self.work.config()
    }

    /// Sets how many classes and partitions are worked on at the same time; 0: no work begins. What
    /// is under way goes on.
    pub fn set_transfer_limit(&self, concurrency: usize) {
        self.work.set_concurrency(&self.host, concurrency);
    }

    /// Sets the maximum of the bytes that this node pushes in a second; 0: no limit.
    pub fn set_transfer_rate(&self, bytes_per_second: u64) {
        self.work.throttle.set_bytes_per_second(bytes_per_second);
    }

    /// Tries at once what has failed and waits for its next try, because another node takes pushes
    /// again.
    pub fn retry_transfers(&self) {
        self.host.transfers().retry_at_once();
    }
}
