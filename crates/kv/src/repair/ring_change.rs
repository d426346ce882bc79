//! What this node does and says while the ring changes (docs/design/ring-changes.md).

use crate::engine::Kv;
use crate::transfer::ProofObstacle;
use ombak_ring::RingVersion;
use ombak_ring::placement::{Placement, ProofOrder, Report};
use ombak_runtime::Asker;
use ombak_types::Error;

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

    /// Takes the driver's orders to prove homes. The driver orders a proof only when every member
    /// of both sets has confirmed the begin. An order stands until the home flips or is aborted.
    pub fn set_proofs_wanted(&self, orders: Vec<ProofOrder>) {
        self.engine.transfers.proofs.want(orders, &self.engine.placement());
        self.engine.transfers.wake();
    }

    /// Says whether this node hands back what it holds for others. A node that joins another
    /// cluster says no before it takes the placement of that cluster, and yes when its join is
    /// committed.
    pub fn set_hands_back(&self, hands_back: bool) {
        self.engine.transfers.set_hands_back(hands_back);
    }

    /// Takes everything that this node holds as its own and complete, durably, because it has been
    /// alone: nobody knew more. Returns false if that could not be saved. Blocks.
    pub fn own_everything(&self) -> bool {
        self.engine.transfers.own_everything(self.engine.partitions())
    }

    /// What this node says to the driver about changing homes. It has confirmed the version.
    pub fn ring_report(&self, confirmed: RingVersion) -> Report {
        let transfers = &self.engine.transfers;
        let (proved, lacking) = (transfers.proved_homes(&self.engine), transfers.lacking_homes(&self.engine));
        Report { confirmed, proved, lacking, takes_no_copies: transfers.takes_no_copies(&self.engine) }
    }

    /// What keeps this node from proving homes, for operators.
    pub fn proof_obstacles(&self) -> Vec<ProofObstacle> {
        self.engine.transfers.proof_obstacles()
    }
}
