//! What this node does and says while the ring changes (docs/design/ring-changes.md).

use crate::prove::{lacking_homes, proved_homes};
use crate::repair::Repair;
use ombak_kv::ProofObstacle;
use ombak_ring::RingVersion;
use ombak_ring::placement::{ProofOrder, Report};

impl Repair {
    /// Takes the driver's orders to prove homes. The driver orders a proof only when every member
    /// of both sets has confirmed the begin. An order stands until the home flips or is aborted.
    pub fn set_proofs_wanted(&self, orders: Vec<ProofOrder>) {
        self.host.transfers().proofs.want(orders, &self.host.placement());
        self.host.transfers().wake();
    }

    /// Says whether this node hands back what it holds for others. A node that joins another
    /// cluster says no before it takes the placement of that cluster, and yes when its join is
    /// committed.
    pub fn set_hands_back(&self, hands_back: bool) {
        self.work.set_hands_back(&self.host, hands_back);
    }

    /// What this node says to the driver about changing homes. It has confirmed the version.
    pub fn ring_report(&self, confirmed: RingVersion) -> Report {
        let (proved, lacking) = (proved_homes(&self.host), lacking_homes(&self.host));
        Report { confirmed, proved, lacking, takes_no_copies: self.work.takes_no_copies(&self.host) }
    }

    /// What keeps this node from proving homes, for operators.
    pub fn proof_obstacles(&self) -> Vec<ProofObstacle> {
        self.host.transfers().proofs.obstacles()
    }
}
