//! Which exchanges a node has: one for each class of which it is a full primary, and each other
//! primary.

use ombak_kv::ClassId;
use ombak_kv::repair_host::{BrokenRule, RepairHost, is_broken};
use ombak_ring::placement::Placement;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::collections::BTreeSet;

/// A class, and another primary of it.
pub(super) type Pair = (ClassId, NodeId);

/// The exchanges of a node. A home that is changing has none.
pub(super) fn pairs(host: &dyn RepairHost, placement: &Placement) -> BTreeSet<Pair> {
    let (here, ns) = (host.node_id(), host.buckets().snapshot().all_n_vals());
    let mut pairs = BTreeSet::new();
    for home in placement.homes().filter(|home| !home.is_changing()) {
        for n in &ns {
            let class = ClassId { partition: home.home(), n: *n };
            let set = home.replica_set(*n);
            let may = host.is_full(class.partition, *n) || is_broken(BrokenRule::DoubtfulStoresOnlyReceive);
            if may && set.contains(&here) {
                pairs.extend(set.into_iter().filter(|node| *node != here).map(|node| (class, node)));
            }
        }
    }
    pairs
}

/// Whether a node is a primary of a class, whatever state the home is in.
pub(super) fn is_pair(placement: &Placement, here: NodeId, class: ClassId, node: NodeId) -> bool {
    if class.partition >= placement.size().get() {
        return false;
    }
    let home = placement.home(class.partition);
    home.is_primary(here, class.n) && home.is_primary(node, class.n)
}

/// The primaries of a class beside this node and another one.
pub(super) fn witnesses(host: &dyn RepairHost, class: ClassId, node: NodeId) -> Vec<NodeId> {
    let placement = host.placement();
    let set = placement.home(class.partition).replica_set(class.n);
    set.into_iter().filter(|other| *other != node && *other != host.node_id()).collect()
}

/// A refusal that the other node takes for the end of this exchange, and not of all.
pub(super) fn busy(why: &'static str) -> Error {
    StoreFailure::new(StoreFailureKind::Busy, why).into()
}
