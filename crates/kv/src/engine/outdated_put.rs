//! A write whose coordinator hears from a replica that the home has changed.
//!
//! The coordinator waits until it knows the placement of which the replica has told. Then it finds
//! the replicas anew and counts anew. The version stays the same, so the put makes no second event.
//! What was stored and acknowledged by then counts: a replica that acknowledged a version did not
//! know of the change, so the version is among those that are proved for the change
//! (docs/design/ring-changes.md). The earlier count goes on until then, for the same reason.
//!
//! What it is not: it does not fetch the placement ([`crate::replica::Peers::learn_placement`]).
//!
//! A conditional put does not count anew. What it needs are promises of the new replicas, and it is
//! unknown by then whether its version will stay.

use super::put_run::PutRun;
use crate::coordination::put::{Before, PutActions, PutEvent};
use crate::replica::RequestReplicas;
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId};
use std::task::{Context, Poll};

/// The wait for a newer placement.
pub(super) struct Learning {
    known: RingVersion,
    until_known: BoxFuture<'static, ()>,
}

impl Learning {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.until_known.as_mut().poll(cx)
    }
}

impl PutRun {
    /// A replica knows a newer version of the placement, and does not acknowledge the version of
    /// the put, which it may hold. Returns the event for the coordinator, if the write is not
    /// counted anew.
    pub(super) fn outdated(&mut self, replica: usize, known: RingVersion, is_held: bool) -> Option<PutEvent> {
        let node = self.others.replicas.list[replica].node;
        if is_held {
            self.note_stored(node);
        }
        let is_conditional = self.others.version.expected.is_some();
        let is_newer = self.others.version.ring < known;
        if is_conditional || self.core.has_replied() || !is_newer {
            return Some(PutEvent::Failed { replica, error: Error::Timeout });
        }
        if self.learning.as_ref().is_none_or(|learning| learning.known < known) {
            let until_known = self.engine.learn_placement(node, known);
            self.learning = Some(Learning { known, until_known });
        }
        None
    }

    /// Finds the replicas by the placement that is in force now, and counts anew.
    pub(super) fn recount(&mut self) -> PutActions {
        if self.core.has_replied() {
            return PutActions::new();
        }
        let (engine, others) = (self.engine.clone(), &*self.others);
        let placement = engine.request_placement();
        let home = placement.home(others.version.partition);
        let replicas = RequestReplicas::of_put(engine.viewer(), home, others.n, others.sloppy);
        // Other replicas have no counter that was noted before the key was locked. They refuse the
        // version, and get what this node then has.
        let noted_of = |node| others.replicas.list.iter().position(|r| r.node == node).and_then(|at| others.noted[at]);
        let noted = replicas.list.iter().map(|replica| noted_of(replica.node)).collect();
        let owns = replicas.local.is_some_and(|local| replicas.list[local].is_owner());
        let is_stand_in = |at: &usize| !replicas.list[*at].is_owner() && replicas.local != Some(*at);
        // What this node stands in with must be synced before another stand-in gets it.
        let may_send = owns || others.is_synced && self.here == Before::Stored;
        let withheld_from = (0..replicas.list.len()).filter(is_stand_in).filter(|_| !may_send).collect();
        let before: Vec<_> = replicas.list.iter().map(|replica| (*replica, self.before(replica.node))).collect();
        let others = &mut *self.others;
        if let Some(awaited) = &mut others.awaited {
            awaited.home_changed(home, engine.identity.node_id);
        }
        (others.noted, others.withheld_from, others.version.ring) = (noted, withheld_from, placement.version());
        let sets = replicas.sets;
        (others.replicas, others.placement) = (replicas, placement);
        self.pending.clear();
        self.core.recount(sets, &before)
    }

    /// What a node has done with the version.
    fn before(&self, node: NodeId) -> Before {
        if node == self.engine.identity.node_id {
            self.here
        } else if self.stored_at.contains(&node) {
            Before::Stored
        } else {
            Before::Nothing
        }
    }
}
