//! Stores of this node that were set back, which another node's words show
//! (docs/design/anti-entropy.md §3).
//!
//! What it is: the one place that acts on such words, whether they come when a connection begins or
//! as a part of an answer.
//!
//! What it is not: the comparison, and what it means for a store, is in the engine
//! (`kv/src/transfer/told/set_back.rs`).

use crate::Host;
use ombak_kv::repair_host::SetBack;
use ombak_kv::replica::ToldSeq;
use ombak_runtime::RuntimeExt;
use ombak_types::NodeId;
use std::time::Duration;
use tracing::error;

/// The pause before what was found is saved again.
const SAVE_AGAIN: Duration = Duration::from_secs(5);

/// Compares the stores of this node with what another node was told of them, by partition. Those
/// that were set back count as restored when this returns. That becomes durable later: until then,
/// the next start finds it out again.
pub fn find_set_back(host: &Host, by: NodeId, told: &[(u32, ToldSeq)]) {
    let found = host.transfers().find_set_back(host.partitions(), (host.node_id(), by), told);
    if !found.is_empty() {
        host.runtime().spawn(Box::pin(save(host.clone(), found)));
    }
}

async fn save(host: Host, found: SetBack) {
    let transfers = host.transfers().clone();
    while !transfers.is_stopped() {
        let (there, set_back) = (host.clone(), found.clone());
        let save = move || there.transfers().save_set_back(there.partitions(), there.node_id(), &set_back);
        match transfers.pool.run(save).await {
            Ok(Ok(())) => return,
            Ok(Err(why)) => error!(%why, "that stores of this node were set back could not be saved"),
            Err(_) => {}
        }
        host.runtime().sleep(SAVE_AGAIN).await;
    }
}
