//! The marks that proofs of homes give (docs/design/anti-entropy.md §9).
//!
//! A proof shows that a member of the new set durably holds everything that this member of the old
//! set held, but for what was removed everywhere. That is what a mark says. Without it the first
//! exchange after the change would push what was removed: the new primary never had it.
//!
//! Without a mark nothing is wrong with a proof, so a failure here fails nothing.

use super::class_fold::sync;
use super::client::{ExchangeAnswer, ExchangePart, KeysAnswer, KeysQuestion, MarkQuestion};
use super::exchanges::{Exchanges, not_saved};
use super::other_ways::other_answer;
use super::pairs::Pair;
use crate::Host;
use crate::work::Work;
use ombak_kv::repair_host::{PeerStore, Towards};
use ombak_types::Error;
use tracing::debug;

/// A mark that is kept when the proof has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProofMark {
    own: PeerStore,
    peer: PeerStore,
    /// Everything in this node's store up to this seq is on its disk, and is in the sums that the
    /// proof compares.
    seq: u64,
}

impl Exchanges {
    /// Begins the mark of a proof to another node. Call it before anything is summed up for the
    /// proof. None if this node or the other one is not known to hold everything, or if something
    /// is in doubt here: the proof leaves that out.
    pub(crate) async fn begin_proof_mark(&self, work: &Work, host: &Host, pair: Pair) -> Option<ProofMark> {
        let begun = self.begin_mark(work, host, pair).await;
        begun.unwrap_or_else(|why| {
            debug!(partition = pair.0.partition, n = pair.0.n, node = %pair.1, %why, "a proof gives no mark");
            None
        })
    }

    async fn begin_mark(&self, work: &Work, host: &Host, (class, node): Pair) -> Result<Option<ProofMark>, Error> {
        let Some(client) = self.peers.client(node) else { return Ok(None) };
        let there = host.clone();
        let look = move || {
            let ns = there.buckets().snapshot().all_n_vals();
            let Some(own) = there.transfers().own_store(there.partitions(), class, &ns)? else { return Ok(None) };
            let partition = there.partitions().find(class.partition)?;
            partition.await_writers();
            Ok::<_, Error>(Some((own, sync(&partition)?)))
        };
        let Some((own, seq)) = host.transfers().pool.run(look).await?? else { return Ok(None) };
        if host.transfers().doubt.up_to(class.partition) > 0 {
            return Ok(None);
        }
        let keys = KeysQuestion { store_id: own.store_id, marked_seq: 0, versions: Vec::new() };
        let answer = self.ask_one(work, host, class, &client, ExchangePart::Keys(keys)).await?;
        let ExchangeAnswer::Keys(KeysAnswer { standing, .. }) = answer else { return Err(other_answer()) };
        let peer = PeerStore { store_id: standing.store_id, token: standing.token };
        Ok((peer.token > 0).then_some(ProofMark { own, peer, seq }))
    }

    /// Keeps the mark of a proof that has ended, at both nodes.
    pub(crate) async fn keep_proof_mark(&self, work: &Work, host: &Host, pair: Pair, mark: ProofMark) {
        if let Err(why) = self.keep_mark(work, host, pair, mark).await {
            debug!(partition = pair.0.partition, n = pair.0.n, node = %pair.1, %why, "a proof gives no mark");
        }
    }

    async fn keep_mark(&self, work: &Work, host: &Host, (class, node): Pair, mark: ProofMark) -> Result<(), Error> {
        let ProofMark { own, peer, seq } = mark;
        let Some(client) = self.peers.client(node) else { return Ok(()) };
        let question = MarkQuestion { store_id: own.store_id, seq, token: peer.token };
        let answer = self.ask_one(work, host, class, &client, ExchangePart::Mark(question)).await?;
        let ExchangeAnswer::Marked(peer_seq) = answer else { return Err(other_answer()) };
        let there = host.clone();
        let keep = move || {
            let ns = there.buckets().snapshot().all_n_vals();
            let transfers = there.transfers();
            // What this node has lost meanwhile, the proof does not cover.
            let is_same = transfers.own_store(there.partitions(), class, &ns)? == Some(own);
            if peer_seq == 0 || !is_same || transfers.doubt.up_to(class.partition) > 0 {
                return Ok(());
            }
            transfers.told.note(node, class.partition, peer.store_id, peer_seq);
            let saved = transfers.told.save().and_then(|()| {
                transfers.marks.keep(class, node, Towards { own_store: own.store_id, seq, peer, peer_seq })
            });
            saved.map_err(|why| not_saved(&why))
        };
        host.transfers().pool.run(keep).await?
    }
}
