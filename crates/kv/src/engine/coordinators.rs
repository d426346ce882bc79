//! Which node coordinates a put.

use super::engine::{Engine, check_bucket, check_key};
use crate::coordination::effective_n;
use crate::replica::{NodeCounter, RequestReplicas};
use crate::requests::PutRequest;
use crate::routing::{Route, asks_majority};
use ombak_ring::placement::Placement;
use ombak_types::{Error, NodeId};
use smallvec::SmallVec;

/// A node that can coordinate a put.
pub(crate) struct NextCoordinator {
    pub(crate) node: NodeId,
    /// Whether there is no other node that was not tried.
    pub(crate) is_last: bool,
}

impl Engine {
    /// The node that should coordinate a put now, among those that were not tried: this one if it
    /// has a position, then primaries that are up, then stand-ins, then the other primaries. (They
    /// are tried last because they seem to be down. But if the nodes do not agree on that, a
    /// stand-in refuses.) A conditional put is coordinated by the first primary that is up, so that
    /// two of them rarely compete (docs/design/replication.md §17). `None`: no further node can be
    /// tried.
    pub(crate) fn next_coordinator(
        &self,
        placement: &Placement,
        request: &PutRequest,
        tried: &[NodeId],
    ) -> Result<Option<NextCoordinator>, Error> {
        check_bucket(&request.bucket)?;
        let key = request.key.as_deref().unwrap_or_default();
        check_key(key)?;
        let buckets = self.buckets.snapshot();
        let props = buckets.props(&request.bucket)?;
        Route::of(props)?;
        let n = effective_n(request.options.n_val, props)?;
        let home = placement.home(self.home_of(placement, &request.bucket, key, props));
        // Those of the other set could coordinate, too. They are not needed for that.
        let ring = home.in_force();
        let is_conditional = asks_majority(&request.options);
        if tried.is_empty() && !is_conditional {
            // The usual case. A node that owns a position has one, whoever else is up.
            let (owners, here) = (ring.owners_of(home.home(), n), self.identity.node_id);
            let is_owner = |is_here: bool| owners.iter().any(|p| (ring.id(p.owner) == here) == is_here);
            if is_owner(true) && is_owner(false) {
                return Ok(Some(NextCoordinator { node: here, is_last: false }));
            }
        }
        let (n, sloppy) = if is_conditional { (props.n_val, false) } else { (n, request.options.sloppy_quorum) };
        let replicas = RequestReplicas::of_get(self.viewer(), home, n, sloppy);
        let here = replicas.local.filter(|_| !is_conditional).map(|local| replicas.list[local].node);
        let of_list = |owns: bool| replicas.list.iter().filter(move |r| (r.primaries > 0) == owns).map(|r| r.node);
        let owners = ring.owners_of(home.home(), n);
        let mut candidates =
            here.into_iter().chain(of_list(true)).chain(of_list(false)).chain(owners.iter().map(|p| ring.id(p.owner)));
        let Some(node) = candidates.find(|node| !tried.contains(node)) else { return Ok(None) };
        let is_last = candidates.all(|other| other == node || tried.contains(&other));
        Ok(Some(NextCoordinator { node, is_last }))
    }

    /// The counters of fences of the nodes that a write asks.
    pub(super) fn noted(&self, replicas: &RequestReplicas) -> SmallVec<[Option<NodeCounter>; 3]> {
        replicas.list.iter().map(|replica| self.counter_of(replica.node)).collect()
    }
}
