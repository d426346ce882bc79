//! The first words of this node, and what it makes of those of others.

use super::message::{decode_told, encode_told};
use ombak_kv::Kv;
use ombak_kv::repair_host::{RepairHost, SetBack};
use ombak_peer::handshake::{FirstWords, Refusal, RefusalKind, RemotePeer};
use ombak_runtime::RuntimeExt;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tracing::error;

/// The pause before what was found is saved again.
const SAVE_AGAIN: Duration = Duration::from_secs(5);

/// What this node was told by others, as first words of its connections.
pub(super) struct ToldWords(pub(super) Kv);

impl fmt::Debug for ToldWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToldWords")
    }
}

impl FirstWords for ToldWords {
    fn tell(&self, peer: &RemotePeer) -> Vec<u8> {
        encode_told(&self.0.repair_host().transfers().told.of_node(peer.identity.node))
    }

    fn hear(&self, peer: &RemotePeer, words: &[u8]) -> Result<(), Refusal> {
        let told = decode_told(words).map_err(|why| {
            Refusal::new(RefusalKind::NotAdmitted, format!("what the node tells first does not decode: {why}"))
        })?;
        let host = self.0.repair_host();
        let by = peer.identity.node;
        let found = host.transfers().find_set_back(host.partitions(), (host.node_id(), by), &told);
        if !found.is_empty() {
            let runtime = host.runtime().clone();
            runtime.spawn(Box::pin(save(host, found)));
        }
        Ok(())
    }
}

/// Makes durable that some stores were set back. Until then, the next start finds it out again.
async fn save(host: Arc<dyn RepairHost>, found: SetBack) {
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
