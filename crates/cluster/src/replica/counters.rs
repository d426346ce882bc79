//! What is counted about the questions between nodes.

use ombak_stats::ReplicaCounts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of a node. They only rise.
#[derive(Debug, Default)]
pub(crate) struct ReplicaCounters {
    pub(super) reads_sent: AtomicU64,
    pub(super) stores_sent: AtomicU64,
    pub(super) puts_forwarded: AtomicU64,
    pub(super) listings_sent: AtomicU64,
    pub(super) reads_served: AtomicU64,
    pub(super) stores_served: AtomicU64,
    pub(super) puts_coordinated: AtomicU64,
    pub(super) listings_served: AtomicU64,
    pub(super) refused_overload: AtomicU64,
    pub(super) refused_expired: AtomicU64,
    pub(super) refused_lineage: AtomicU64,
    pub(super) refused_malformed: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl ReplicaCounters {
    /// A part of a listing was asked of another node.
    pub(crate) fn listing_sent(&self) {
        count(&self.listings_sent);
    }

    /// A part of a listing was answered for another node.
    pub(crate) fn listing_served(&self) {
        count(&self.listings_served);
    }

    /// A question of another node was refused, because too many were under way.
    pub(crate) fn refused_for_overload(&self) {
        count(&self.refused_overload);
    }

    /// A question of another node did not decode.
    pub(crate) fn refused_as_malformed(&self) {
        count(&self.refused_malformed);
    }

    pub(crate) fn counts(&self) -> ReplicaCounts {
        ReplicaCounts {
            reads_sent: self.reads_sent.load(Relaxed),
            stores_sent: self.stores_sent.load(Relaxed),
            puts_forwarded: self.puts_forwarded.load(Relaxed),
            listings_sent: self.listings_sent.load(Relaxed),
            reads_served: self.reads_served.load(Relaxed),
            stores_served: self.stores_served.load(Relaxed),
            puts_coordinated: self.puts_coordinated.load(Relaxed),
            listings_served: self.listings_served.load(Relaxed),
            refused_overload: self.refused_overload.load(Relaxed),
            refused_expired: self.refused_expired.load(Relaxed),
            refused_lineage: self.refused_lineage.load(Relaxed),
            refused_malformed: self.refused_malformed.load(Relaxed),
        }
    }
}
