//! Which exchanges a node has: one for each class of which it is a full primary, and each other
//! primary. They are worked out anew only when something has changed that they follow from.

use super::client::ExchangePeers;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{BrokenRule, BucketsSnapshot, RepairHost, is_broken};
use ombak_ring::placement::Placement;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A class, and another primary of it.
pub(super) type Pair = (ClassId, NodeId);

/// What pairs and classes follow from: the placement, the properties of buckets, and which classes
/// are full.
pub(super) struct Basis {
    placement: Arc<Placement>,
    buckets: Arc<BucketsSnapshot>,
    fullness: u64,
}

impl Basis {
    pub(super) fn of(host: &dyn RepairHost) -> Self {
        // Read first: a change that comes between makes the next look find another number.
        let fullness = host.transfers().classes.changes();
        Self { placement: host.placement(), buckets: Arc::clone(&host.buckets().snapshot()), fullness }
    }

    /// Whether nothing has changed.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.placement, &other.placement)
            && Arc::ptr_eq(&self.buckets, &other.buckets)
            && self.fullness == other.fullness
    }

    /// The classes of which this node is a primary.
    pub(super) fn classes(&self, here: NodeId) -> Vec<ClassId> {
        let ns = self.buckets.all_n_vals();
        let of_home = |home: u32| ns.iter().map(move |n| ClassId { partition: home, n: *n });
        let is_primary = |class: &ClassId| self.placement.home(class.partition).is_primary(here, class.n);
        self.placement.homes().flat_map(|home| of_home(home.home())).filter(is_primary).collect()
    }
}

/// The exchanges of a node. A home that is changing has none, and neither has a class with a
/// primary that is `without` exchanges: a member of an earlier version.
pub(super) fn pairs(host: &dyn RepairHost, placement: &Placement, without: &BTreeSet<NodeId>) -> BTreeSet<Pair> {
    let (here, ns) = (host.node_id(), host.buckets().snapshot().all_n_vals());
    let mut pairs = BTreeSet::new();
    for home in placement.homes().filter(|home| !home.is_changing()) {
        for n in &ns {
            let class = ClassId { partition: home.home(), n: *n };
            let set = home.replica_set(*n);
            let may = host.is_full(class.partition, *n) || is_broken(BrokenRule::DoubtfulStoresOnlyReceive);
            if may && set.contains(&here) && set.iter().all(|node| !without.contains(node)) {
                pairs.extend(set.into_iter().filter(|node| *node != here).map(|node| (class, node)));
            }
        }
    }
    pairs
}

/// The other nodes of a placement that are not known to have exchanges.
pub(super) fn without_exchanges(
    host: &dyn RepairHost,
    placement: &Placement,
    peers: &dyn ExchangePeers,
) -> BTreeSet<NodeId> {
    let lacks = |node: &NodeId| *node != host.node_id() && !peers.has_exchanges(*node);
    placement.nodes().into_iter().filter(lacks).collect()
}

/// Whether all primaries of a class beside this node have exchanges.
pub(super) fn all_have_exchanges(
    host: &dyn RepairHost,
    placement: &Placement,
    class: ClassId,
    peers: &dyn ExchangePeers,
) -> bool {
    let set = placement.home(class.partition).replica_set(class.n);
    set.into_iter().all(|node| node == host.node_id() || peers.has_exchanges(node))
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
