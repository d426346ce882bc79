//! What exchanges do for the other ways out of a store (docs/design/anti-entropy.md §5, "The same
//! copy on other ways"): they exchange single keys that reads have left to them, say what a full
//! primary lacks although a mark covers it, and drop foreign copies that were handed back before.

use super::back::KeyedItem;
use super::client::{
    ExchangeAnswer, ExchangeClient, ExchangePart, ExchangeQuestion, KeyHeld, KeysAnswer, KeysQuestion,
};
use super::dropped::{DroppedCopies, DroppedCopy};
use super::drops::drop_copies;
use super::exchanges::{Exchanges, counted_seq};
use super::lists::Item;
use super::machine::marked_seq;
use super::pairs::{Pair, witnesses};
use super::sums::NO_SLOTS;
use super::verdict::{Foreign, Verdict, Witness, judge_foreign};
use crate::Host;
use crate::fold::Candidate;
use crate::work::Work;
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, DroppedFile, RepairHost, mix};
use ombak_ring::RingVersion;
use ombak_runtime::Runtime;
use ombak_storage::{Stored, key_hash};
use ombak_types::{Error, NodeId, StoreFailure};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::warn;

/// The pause between two looks at the keys that reads have left to exchanges. What nobody can tell
/// in one exchange is not asked for again at once.
const KEYS_PAUSE: Duration = Duration::from_secs(1);

/// The keys that are to be exchanged at once, by pairs. They are bounded where they come from.
#[derive(Default)]
pub(super) struct AskedKeys(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    by_pair: BTreeMap<Pair, BTreeSet<Bytes>>,
    /// Before this no further ones are taken.
    pause_until: Option<Instant>,
}

impl AskedKeys {
    /// Takes what reads have left here, once the keys before are done. Those of a primary that is
    /// not up are left out: without its answer nothing is decided about them.
    pub(super) fn refresh(&self, host: &dyn RepairHost, now: Instant, is_up: impl Fn(NodeId) -> bool) {
        let mut asked = self.0.lock();
        asked.by_pair.retain(|(_, node), _| is_up(*node));
        if !asked.by_pair.is_empty() || asked.pause_until.is_some_and(|until| now < until) {
            return;
        }
        let keys = host.transfers().other_ways.take_keys();
        if keys.is_empty() {
            return;
        }
        asked.pause_until = Some(now + KEYS_PAUSE);
        for (class, keys) in keys {
            let is_primary = class.partition < host.placement().size().get()
                && host.placement().home(class.partition).replica_set(class.n).contains(&host.node_id());
            if !is_primary {
                continue;
            }
            for node in witnesses(host, class, host.node_id()).into_iter().filter(|node| is_up(*node)) {
                asked.by_pair.insert((class, node), keys.clone());
            }
        }
    }

    /// A pair that has keys and may begin, with its keys.
    pub(super) fn take(&self, may_begin: impl Fn(Pair) -> bool) -> Option<(Pair, Vec<Bytes>)> {
        let mut asked = self.0.lock();
        let pair = asked.by_pair.keys().copied().find(|pair| may_begin(*pair))?;
        let keys = asked.by_pair.remove(&pair)?;
        Some((pair, keys.into_iter().collect()))
    }
}

/// The versions of some keys of a class, as they are now. What is not here, or cannot be read, is
/// left out. Blocks.
pub(super) fn read_items(host: &dyn RepairHost, class: ClassId, keys: &[Bytes]) -> Result<Vec<KeyedItem>, Error> {
    let partition = host.partitions().find(class.partition)?;
    let read = |key: &Bytes| {
        // It was logged where it was read.
        let found = partition.read_head(key, Access::Blocking).ok().flatten()?;
        let item = Item { mix: mix(key_hash(key), found.digest), seq: found.seq };
        Some(KeyedItem { item, key: key.clone(), digest: found.digest })
    };
    Ok(keys.iter().filter_map(read).collect())
}

/// The file of dropped copies, as the engine sees it.
pub(super) struct KeepsDropped {
    pub(super) file: Arc<DroppedCopies>,
    pub(super) runtime: Arc<dyn Runtime>,
}

impl DroppedFile for KeepsDropped {
    fn keep(&self, class: ClassId, key: &[u8], version: &Stored) -> io::Result<()> {
        self.file.append(&DroppedCopy {
            class,
            seq: version.seq,
            dropped_at: self.runtime.wall_clock(),
            stored_secs: version.stored_secs,
            key: Bytes::copy_from_slice(key),
            head: version.head.clone(),
            body: version.body.clone().unwrap_or_default(),
        })
    }
}

/// The failure of a node that has answered another question.
pub(super) fn other_answer() -> Error {
    StoreFailure::internal("another node has answered another question").into()
}

impl Exchanges {
    /// Whether a node is known to have exchanges.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        self.peers.client(node).is_some()
    }

    /// Says of each version whether one of some other primaries is full and lacks it, although it
    /// was included there, or is in doubt here: then it was removed. `candidates` fit into one
    /// question. Fails if one of the primaries does not answer.
    pub(crate) async fn are_dead(
        &self,
        work: &Work,
        host: &Host,
        class: ClassId,
        others: &[NodeId],
        candidates: &[Candidate],
    ) -> Result<Vec<bool>, Error> {
        let mut dead = vec![false; candidates.len()];
        for node in others {
            let client = self.peers.client(*node).ok_or(Error::AllNodesDown)?;
            let (standing_seq, held) = self.ask_about(work, host, (class, *node), &client, candidates).await?;
            let Some(marked_seq) = standing_seq else { continue };
            for ((dead, candidate), held) in dead.iter_mut().zip(candidates).zip(held) {
                let is_lacked = held.is_lack();
                let is_doubtful = || host.transfers().is_doubtful(class.partition, candidate.seq);
                *dead |= is_lacked && (candidate.seq <= marked_seq || is_doubtful());
            }
        }
        Ok(dead)
    }

    /// How long a class that is filled waits for a primary that does not answer.
    pub(crate) const fn takes_early_after(&self) -> Duration {
        self.config.takes_early_after
    }

    /// Says of each version whether it was removed everywhere before the home of its class began to
    /// change: all other members of the old set lack it, and it was included at each of them. They
    /// fit into one question. Fails if one of them does not answer. If one is not full, nobody can
    /// tell, and nothing counts as removed.
    pub(crate) async fn were_removed(
        &self,
        work: &Work,
        host: &Host,
        class: ClassId,
        others: &[NodeId],
        candidates: &[Candidate],
    ) -> Result<Vec<bool>, Error> {
        let mut witnesses = Vec::with_capacity(others.len());
        for node in others {
            let client = self.peers.client(*node).ok_or(Error::AllNodesDown)?;
            let (standing_seq, held) = self.ask_about(work, host, (class, *node), &client, candidates).await?;
            let Some(marked_seq) = standing_seq else { return Ok(vec![false; candidates.len()]) };
            witnesses.push(Witness { is_full: true, marked_seq, held });
        }
        let copy = |one: &Candidate| Foreign { seq: one.seq, is_in_doubt: false, former_marks: 0 };
        let is_removed =
            |(place, one): (usize, &Candidate)| judge_foreign(place, copy(one), &witnesses) == Verdict::Drop;
        Ok(candidates.iter().enumerate().map(is_removed).collect())
    }

    /// Judges versions that this node holds for the primaries of a class, and that are in doubt or
    /// that its marks cover. They fit into one question.
    pub(crate) async fn judge_foreign(
        &self,
        work: &Work,
        host: &Host,
        class: ClassId,
        primaries: &[NodeId],
        candidates: &[Candidate],
    ) -> Vec<Verdict> {
        let mut witnesses = Vec::with_capacity(primaries.len());
        for node in primaries {
            let client = self.peers.client(*node).filter(|_| host.peers().is_up(*node));
            let answer = match client {
                Some(client) => self.ask_about(work, host, (class, *node), &client, candidates).await.ok(),
                None => None,
            };
            witnesses.push(match answer {
                Some((Some(marked_seq), held)) => Witness { is_full: true, marked_seq, held },
                Some((None, _)) | None => Witness::silent(),
            });
        }
        let transfers = host.transfers();
        let judge_one = |(place, one): (usize, &Candidate)| {
            let is_in_doubt = transfers.is_doubtful(class.partition, one.seq);
            let former_marks = transfers.marks.former_marks(class, primaries, one.seq);
            judge_foreign(place, Foreign { seq: one.seq, is_in_doubt, former_marks }, &witnesses)
        };
        candidates.iter().enumerate().map(judge_one).collect()
    }

    /// What a primary holds of some versions, and up to which seq of this node's store everything
    /// was included there by a mark that holds; none if the primary is not full.
    async fn ask_about(
        &self,
        work: &Work,
        host: &Host,
        (class, node): Pair,
        client: &Arc<dyn ExchangeClient>,
        candidates: &[Candidate],
    ) -> Result<(Option<u64>, Vec<KeyHeld>), Error> {
        let store_id = host.partitions().find(class.partition)?.store().identity().store_id;
        let mark = host.transfers().marks.towards(class, node, store_id);
        let versions = candidates.iter().map(|candidate| candidate.held.clone()).collect();
        let marked = mark.map_or(0, |mark| mark.peer_seq);
        let part = ExchangePart::Keys(KeysQuestion { store_id, marked_seq: marked, versions });
        let ExchangeAnswer::Keys(answer) = self.ask_one(work, host, class, client, part).await? else {
            return Err(other_answer());
        };
        let KeysAnswer { standing, known_seq, held } = answer;
        if held.len() != candidates.len() {
            return Err(StoreFailure::internal("another node has answered for another number of keys").into());
        }
        let own = mark.map_or(0, |mark| marked_seq(&mark, standing));
        let known = counted_seq(host, (class, node), known_seq)?;
        Ok((standing.is_full.then_some(own.max(known)), held))
    }

    /// Asks another node one question that is no part of an exchange.
    pub(super) async fn ask_one(
        &self,
        work: &Work,
        host: &Host,
        class: ClassId,
        client: &Arc<dyn ExchangeClient>,
        part: ExchangePart,
    ) -> Result<ExchangeAnswer, Error> {
        self.throttle.admit(part.bytes()).await;
        let (home_version, first_slot) = (host.home_version(class.partition), NO_SLOTS);
        let class_print = host.buckets().snapshot().class_print(class.n);
        let question = ExchangeQuestion { class, home_version, class_print, first_slot, part };
        work.in_time(client.ask(question)).await
    }

    /// Drops foreign copies that had been handed back before, or that were removed everywhere, each
    /// only if it is still that version and the home has this version. They are in the file of
    /// dropped copies before. Returns for each whether it went. Blocks.
    pub(crate) fn drop_foreign(
        &self,
        host: &dyn RepairHost,
        (class, home_version): (ClassId, RingVersion),
        candidates: &[Candidate],
    ) -> Result<Vec<bool>, Error> {
        let (partition, n, count) = (class.partition, class.n, candidates.len());
        warn!(partition, n, count, "copies for others that were handed back or removed before are removed here");
        let keyed = |candidate: &Candidate| {
            let key = &candidate.held.key;
            let item = Item { mix: mix(key_hash(key), candidate.held.digest), seq: candidate.seq };
            KeyedItem { item, key: key.clone(), digest: candidate.held.digest }
        };
        let keys: Vec<KeyedItem> = candidates.iter().map(keyed).collect();
        drop_copies(host, &self.dropped, (class, home_version), &keys)
    }
}
