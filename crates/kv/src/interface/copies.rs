//! What this node knows of copies that do not lie where they belong, and of classes that are not
//! full.
//!
//! What it is not: it shows what is known, and takes what a change of the node says about it. The
//! work on it, and the figures of that work, are in `ombak-repair`.

use crate::engine::Kv;
use crate::replica::ClassId;
use crate::transfer::{Amount, FillReason, is_to_be_full};
use ombak_ring::placement::Placement;
use ombak_runtime::Asker;
use ombak_types::{Error, NodeId};
use std::collections::{BTreeMap, BTreeSet};

impl Kv {
    /// Notes durably what this node does not hold in a placement, before the placement is set. A
    /// node that fails here must not adopt it.
    pub async fn prepare_placement(&self, placement: &Placement) -> Result<(), Error> {
        let (engine, placement) = (self.engine.clone(), placement.clone());
        let transfers = engine.transfers.clone();
        transfers
            .answer(Asker::default(), move || {
                let ns = engine.buckets.snapshot().all_n_vals();
                engine.transfers.prepare(&placement, engine.identity.node_id, engine.partitions(), &ns)
            })
            .await
    }

    /// Makes all marks of classes with these n void, durably, because keys come to them or leave
    /// them. Call it before the change of the n_val is adopted, and after it: what was compared in
    /// between was compared by the former classes. Returns false if that could not be saved.
    /// Blocks: not for network threads.
    pub fn renew_fullness(&self, ns: &BTreeSet<u32>) -> bool {
        self.engine.transfers.renew_fullness(self.engine.partitions(), ns)
    }

    /// Takes everything that this node holds as its own and complete, durably, because it has been
    /// alone: nobody knew more. Returns false if that could not be saved. Blocks.
    pub fn own_everything(&self) -> bool {
        self.engine.transfers.own_everything(self.engine.partitions())
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

    /// The classes that this node has and of which a peer missed writes. A mark for a peer that is
    /// no primary any more waits for the peer's return or removal, and is left out.
    pub fn owed_marks(&self) -> Vec<(ClassId, NodeId)> {
        let (placement, here) = (self.engine.placement(), self.engine.identity.node_id);
        let marks = self.engine.transfers.owed.list().into_iter().map(|owed| (owed.class, owed.peer));
        let is_payable = |(class, peer): &(ClassId, NodeId)| {
            let home = placement.home(class.partition);
            home.is_primary(here, class.n) && home.is_primary(*peer, class.n)
        };
        marks.filter(is_payable).collect()
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

    /// Whether a store of this node was restored, and something may still be set aside.
    pub fn may_have_set_aside(&self) -> bool {
        self.engine.partitions().all_open().any(|partition| partition.set_aside_to() > 0)
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
