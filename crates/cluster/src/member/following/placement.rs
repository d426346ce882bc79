//! Puts the placement that was decided in force, and saves it.
//!
//! A placement that a ring made at once is adopted while this node takes no writes: no write that
//! began before it takes effect after it. A placement that homes reached by steps is adopted while
//! requests go on, because each step is safe for them (docs/design/ring-changes.md).

use super::state::Following;
use ombak_metadata::state::Metadata;
use ombak_ring::RingVersion;
use ombak_ring::placement::Placement;
use std::cmp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::{error, info, warn};

impl Following {
    /// The caller holds `adopting`.
    pub async fn adopt_placement(&self, state: &Metadata) {
        let kv = self.kv();
        let Some(placement) = state.placement() else { return };
        let is_next = follows(placement.version(), kv.placement().version());
        let is_moving = self.is_joining.load(Ordering::SeqCst) || self.is_stuck.load(Ordering::SeqCst);
        let is_closed = state.is_closed() || is_moving || self.own_directory.older().is_some();
        let needs_closing = is_closed || (is_next && placement.is_of_ring());
        if needs_closing && kv.is_open_to_writes() {
            self.close_to_writes().await;
        }
        if is_next && !self.put_in_force(placement).await {
            return;
        }
        if !is_closed {
            kv.open_to_writes();
        }
    }

    /// Takes the placement that this node has adopted before, if the metadata does not have it yet.
    /// The node has told others that it runs it. The caller holds `adopting`.
    pub async fn resume_placement(&self, state: &Metadata) {
        let kv = self.kv().clone();
        let read = self.blocking(move || kv.directory().read_placement::<Placement>()).await;
        let saved = match read {
            Ok(Ok(Some(saved))) => saved,
            Ok(Ok(None)) => return,
            Ok(Err(why)) => return warn!(%why, "the last placement is taken from the metadata"),
            Err(why) => return warn!(%why, "the last placement is taken from the metadata"),
        };
        let is_newer = state.placement().is_some_and(|known| known.version() < saved.version());
        if is_newer && self.put_in_force(&Arc::new(saved)).await {
            info!("this node has adopted a later placement than its metadata knows to be decided");
        }
    }

    /// Whether it was done. Otherwise the node keeps the placement that it has, and stays closed if
    /// it was closed for this one.
    async fn put_in_force(&self, placement: &Arc<Placement>) -> bool {
        let kv = self.kv();
        let is_alone = placement.nodes().iter().eq([&self.id()]);
        if !is_alone && !self.know_replicas().await {
            error!("replicas.json could not be written, so the ring that was decided is not followed");
            return false;
        }
        if let Err(error) = kv.prepare_placement(placement).await {
            error!(%error, ring = %placement.version(), "the placement that was decided is not followed yet");
            return false;
        }
        if !self.save_placement(placement).await {
            return false;
        }
        let (version, nodes) = (placement.version(), placement.goal().node_count());
        if let Err(error) = kv.set_placement((**placement).clone()) {
            error!(%error, ring = %version, "the ring that was decided cannot be followed");
            return false;
        }
        if placement.is_of_ring() {
            info!(ring = %version, nodes, "a new ring is in force");
        } else {
            let left = placement.homes().filter(|home| !placement.has_goal(home.home())).count();
            info!(ring = %version, nodes, left, "homes change from one ring to another");
        }
        true
    }

    /// A placement that was reached at once is in the metadata of this node, durably.
    async fn save_placement(&self, placement: &Arc<Placement>) -> bool {
        if placement.is_of_ring() {
            return true;
        }
        let (kv, saved) = (self.kv().clone(), placement.clone());
        match self.blocking(move || kv.directory().save_placement(&*saved)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                error!(%error, "the placement that was decided is not followed");
                false
            }
            Err(error) => {
                error!(%error, "the placement that was decided is not followed");
                false
            }
        }
    }

    /// Makes sure that the file about this node's replicas exists before the node is a member. So a
    /// member without the file has lost it.
    async fn know_replicas(&self) -> bool {
        let kv = self.kv().clone();
        kv.has_replica_state() || matches!(self.blocking(move || kv.save_replica_state()).await, Ok(true))
    }
}

/// Whether a decided placement comes after the present one. A node that starts may have adopted
/// more than its metadata knows to be decided, and does not go back.
fn follows(decided: RingVersion, present: RingVersion) -> bool {
    !matches!(decided.partial_cmp(&present), Some(cmp::Ordering::Less | cmp::Ordering::Equal))
}
