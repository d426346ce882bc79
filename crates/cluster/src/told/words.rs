//! The first words of this node, and what it makes of those of others.

use super::message::{decode_told, encode_told};
use ombak_kv::Kv;
use ombak_peer::handshake::{FirstWords, Refusal, RefusalKind, RemotePeer};
use ombak_repair::find_set_back;
use std::fmt;

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
        find_set_back(&self.0.repair_host(), peer.identity.node, &told);
        Ok(())
    }
}
