//! Brings versions to another node, and has it proved that the node durably holds them.
//!
//! The proof is inclusion (docs/design/replication.md §4): for each version the other node durably
//! holds that version or a descendant. The other node compares, and syncs its store before it
//! answers. What it lacks is read again when it is sent, so a version that was replaced meanwhile
//! arrives as its successor. The answer to a push that was synced is a proof, too, because a store
//! merges by clock.

use crate::Host;
use crate::fold::Candidate;
use crate::progress::Tracked;
use crate::work::Work;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, BrokenRule, TRANSFER_BYTES_MAX, is_broken};
use ombak_kv::replica::{
    Compare, Compared, Held, NodeCounter, Push, ReplicaStore, StoreKind, StoreMode, TRANSFER_ANSWER_MAX, checksum_of,
};
use ombak_ring::RingVersion;
use ombak_runtime::{pause_if_due, within};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use tracing::debug;

/// Number of pushes to one node that are under way at the same time for one batch.
const PUSHES_MAX: usize = 4;

/// One place to which versions of a class are brought.
pub(crate) struct Target {
    pub(crate) class: ClassId,
    pub(crate) node: NodeId,
    /// The version of the home by which the node belongs to the class.
    pub(crate) home_version: RingVersion,
    pub(crate) tracked: Tracked,
    /// Why the node refused a copy last.
    pub(crate) refusal: Mutex<Option<Error>>,
}

/// Copies that fit into one question.
#[derive(Default)]
struct Chunk {
    copies: Vec<ReplicaStore>,
    /// For each copy, its place in the list of candidates.
    places: Vec<usize>,
    bytes: u64,
    /// The candidates that are not here any more: they were reaped, or proved at all primaries.
    gone: Vec<usize>,
    /// The candidates for which there was no room.
    left: Vec<usize>,
    /// The checksum of the copies, as they were read.
    checksum: u64,
}

impl Work {
    /// Brings versions to a node. Returns for each whether the node durably holds it, or a
    /// descendant, or whether it is gone from here.
    pub(crate) async fn prove_at(
        &self,
        host: &Host,
        target: &Target,
        candidates: &[Candidate],
    ) -> Result<Vec<bool>, Error> {
        self.check_gives()?;
        let mut proven = self.prove_without_push(host, target, candidates).await?;
        let is_missing = |place: &usize| !proven[*place] && candidates[*place].is_readable;
        let missing: Vec<usize> = (0..candidates.len()).filter(is_missing).collect();
        let chunks = split(missing, candidates);
        let mut pushes = stream::iter(chunks.into_iter().map(|places| self.push(host, target, candidates, places)))
            .buffer_unordered(PUSHES_MAX);
        while let Some(pushed) = pushes.next().await {
            for place in pushed? {
                proven[place] = true;
            }
        }
        Ok(proven)
    }

    /// As [`Self::prove_at`], for versions of which nothing may be pushed.
    pub(crate) async fn prove_without_push(
        &self,
        host: &Host,
        target: &Target,
        candidates: &[Candidate],
    ) -> Result<Vec<bool>, Error> {
        let answer = self.ask(host, target, candidates, true).await?;
        let is_proven = |(held, candidate): (&Held, &Candidate)| {
            if candidate.is_readable { held.includes() } else { *held == Held::Same }
        };
        Ok(answer.held.iter().zip(candidates).map(is_proven).collect())
    }

    /// Asks a node what it holds of some keys.
    pub(crate) async fn ask(
        &self,
        host: &Host,
        target: &Target,
        candidates: &[Candidate],
        synced: bool,
    ) -> Result<Compared, Error> {
        let versions = candidates.iter().map(|candidate| candidate.held.clone()).collect();
        let question = Compare { class: target.class, versions, synced };
        let client = host.peers().transfer(target.node);
        let answer = self.in_time(client.compare(question)).await?;
        host.reaping().counters.note(target.node, answer.counter);
        target.check_home_version(answer.home_version)?;
        if answer.held.len() != candidates.len() {
            return Err(StoreFailure::internal("another node compared another number of keys").into());
        }
        target.tracked.compared(candidates.len() as u64);
        Ok(answer)
    }

    /// Pushes some candidates as they are now. Returns the places of those that the node durably
    /// holds.
    async fn push(
        &self,
        host: &Host,
        target: &Target,
        candidates: &[Candidate],
        mut places: Vec<usize>,
    ) -> Result<Vec<usize>, Error> {
        let mut proven = Vec::new();
        while !places.is_empty() {
            let keys = places.iter().map(|place| (*place, candidates[*place].held.key.clone())).collect();
            let (class, there) = (target.class, host.clone());
            // The counter is noted before the copies are read (docs/design/replication.md §6).
            let noted = host.reaping().counters.of(target.node);
            let chunk = host.transfers().pool.run(move || read_chunk(&there, class, keys, noted)).await??;
            places = chunk.left;
            proven.extend(chunk.gone);
            if chunk.copies.is_empty() {
                continue;
            }
            self.throttle.admit(chunk.bytes).await;
            self.check_gives()?;
            let push = Push { class, copies: chunk.copies, synced: true, checksum: Some(chunk.checksum) };
            let client = host.peers().transfer(target.node);
            let answer = self.in_time(client.push(push)).await?;
            host.reaping().counters.note(target.node, answer.counter);
            target.check_home_version(answer.home_version)?;
            if answer.stored.len() != chunk.places.len() {
                return Err(StoreFailure::internal("another node stored another number of copies").into());
            }
            target.tracked.pushed(chunk.places.len() as u64, chunk.bytes);
            for (place, stored) in chunk.places.into_iter().zip(answer.stored) {
                match stored {
                    Ok(_) => proven.push(place),
                    Err(why) => {
                        debug!(partition = class.partition, node = %target.node, %why, "a copy was refused");
                        *target.refusal.lock() = Some(why);
                    }
                }
            }
        }
        Ok(proven)
    }

    /// Waits for an answer of another node.
    pub(crate) async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let at = self.runtime.now() + TRANSFER_ANSWER_MAX;
        let answered = within(&*self.runtime, Some(at), answer).await;
        answered.unwrap_or_else(|_| {
            self.progress.counts.timed_out();
            Err(Error::Timeout)
        })
    }

    /// Refuses to push while an operator has disabled it. What is under way ends here.
    pub(crate) fn check_gives(&self) -> Result<(), Error> {
        if self.gives_pushes() { Ok(()) } else { Err(disabled("from")) }
    }
}

impl Target {
    /// An answer at another version of the home proves nothing.
    fn check_home_version(&self, theirs: RingVersion) -> Result<(), Error> {
        if theirs == self.home_version || is_broken(BrokenRule::RemovedNodesTakeNoPart) {
            return Ok(());
        }
        let Self { class, node, home_version, .. } = self;
        let home = class.partition;
        let text = format!("node {node} has home partition {home} at {theirs}, and this node has it at {home_version}");
        Err(StoreFailure::new(StoreFailureKind::Busy, text).into())
    }
}

/// The refusal to push, or to take a push, while an operator has disabled it.
pub(crate) fn disabled(direction: &str) -> Error {
    Error::Unsupported(format!("handoff {direction} this node is disabled"))
}

/// Splits candidates into groups that fit into one question each.
fn split(missing: Vec<usize>, candidates: &[Candidate]) -> Vec<Vec<usize>> {
    let mut chunks: Vec<Vec<usize>> = Vec::new();
    let mut bytes = u64::MAX;
    for place in missing {
        let more = candidates[place].bytes;
        bytes = bytes.saturating_add(more);
        match chunks.last_mut() {
            Some(chunk) if bytes <= TRANSFER_BYTES_MAX as u64 => chunk.push(place),
            _ => {
                chunks.push(vec![place]);
                bytes = more;
            }
        }
    }
    chunks
}

/// Reads the present versions of keys, until one question is full. What cannot be read is left out:
/// it was logged, and stays unproved. Blocks.
fn read_chunk(
    host: &Host,
    class: ClassId,
    keys: Vec<(usize, Bytes)>,
    noted: Option<NodeCounter>,
) -> Result<Chunk, Error> {
    let ring = host.placement().version();
    let partition = host.partitions().find(class.partition)?;
    let buckets = host.buckets().snapshot();
    let deadline = Some(host.runtime().now() + TRANSFER_ANSWER_MAX);
    let mut chunk = Chunk::default();
    for (place, key) in keys {
        pause_if_due();
        if chunk.bytes >= TRANSFER_BYTES_MAX as u64 {
            chunk.left.push(place);
            continue;
        }
        let found = match partition.read(&key, Access::Blocking) {
            Ok(Some(found)) => found,
            Ok(None) => {
                chunk.gone.push(place);
                continue;
            }
            Err(_) => continue,
        };
        let dvv = buckets.props_of_key(&key).is_none_or(|props| props.dvv_enabled);
        let body = found.body.unwrap_or_default();
        chunk.bytes += (key.len() + found.head.len() + body.len()) as u64;
        chunk.places.push(place);
        chunk.copies.push(ReplicaStore {
            partition: class.partition,
            n: class.n,
            ring,
            key,
            head: found.head,
            body,
            stored_secs: found.stored_secs,
            kind: StoreKind { dvv, values: 0 },
            mode: StoreMode::Merge,
            noted,
            synced: true,
            deadline,
        });
    }
    chunk.checksum = checksum_of(&chunk.copies);
    Ok(chunk)
}
