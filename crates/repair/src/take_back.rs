//! Takes back what was set aside, where a full primary holds it, too (`transfer/set_aside.rs`).

use crate::Host;
use crate::fold::Candidate;
use crate::progress::TransferKind;
use crate::send::Target;
use crate::work::Work;
use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Access, Partition, TRANSFER_BYTES_MAX, is_of_class};
use ombak_kv::replica::{COMPARE_KEYS_MAX, Held, HeldVersion};
use ombak_storage::{Detail, FoldEntry, Scope, Snapshot};
use ombak_types::{Error, NodeId};
use parking_lot::Mutex;
use std::sync::Arc;

/// A walk over what is set aside in a partition.
pub(crate) struct SetAsideWalk {
    partition: Arc<Partition>,
    snapshot: Box<dyn Snapshot>,
    set_aside_to: u64,
}

impl SetAsideWalk {
    /// Begins a walk; `None` if nothing is set aside. Blocks.
    pub(crate) fn begin(partition: Arc<Partition>) -> Result<Option<Self>, Error> {
        let set_aside_to = partition.set_aside_to();
        if set_aside_to == 0 {
            return Ok(None);
        }
        let snapshot = partition.snapshot()?;
        Ok(Some(Self { partition, snapshot, set_aside_to }))
    }

    /// Some of the keys for which `class` is true; `None` at the end. Blocks.
    pub(crate) fn next(&mut self, class: &(dyn Fn(&[u8]) -> bool + Sync)) -> Result<Option<Vec<FoldEntry>>, Error> {
        let scope = Scope { class: Some(class), ..Scope::KEPT };
        let mut entries = self.snapshot.next(&scope, Detail::Keys, COMPARE_KEYS_MAX)?;
        if entries.is_empty() {
            return Ok(None);
        }
        entries.retain(|entry| entry.seq <= self.set_aside_to);
        Ok(Some(entries))
    }

    /// The entries that can be read and are still set aside, for questions to another node. Blocks.
    fn candidates(&self, entries: &[FoldEntry]) -> Vec<Candidate> {
        let read = |entry: &FoldEntry| {
            // What cannot be read was logged, and is of no use to anybody.
            let found = self.partition.read_set_aside(&entry.key).ok().flatten()?;
            let clock = self.partition.decode(&entry.key, &found).ok()?.clock;
            let bytes = (entry.key.len() + found.head.len()) as u64;
            Some(Candidate {
                held: HeldVersion { key: entry.key.clone(), digest: found.digest, clock },
                seq: found.seq,
                bytes,
                is_readable: true,
            })
        };
        entries.iter().filter_map(read).collect()
    }
}

impl Work {
    /// Takes back what a full primary holds, too, exactly the same. What it lacks stays set aside.
    /// The class is not full, so no tombstone of it is reaped meanwhile.
    pub(crate) async fn take_back_what_is_at(&self, host: &Host, class: ClassId, node: NodeId) -> Result<(), Error> {
        let partition = host.partitions().find(class.partition)?;
        let Some(mut walk) = host.transfers().fold_pool.run(move || SetAsideWalk::begin(partition)).await?? else {
            return Ok(());
        };
        let tracked = self.progress.begin(TransferKind::Fill, class, node, host.now());
        let target = Target {
            class,
            node,
            home_version: host.home_version(class.partition),
            tracked,
            refusal: Mutex::default(),
        };
        loop {
            let there = host.clone();
            let (back, found) = host
                .transfers()
                .fold_pool
                .run(move || {
                    let buckets = there.buckets().snapshot();
                    let found = walk.next(&|key| is_of_class(&buckets, key, class.n));
                    let found = found.map(|entries| entries.map(|entries| walk.candidates(&entries)));
                    (walk, found)
                })
                .await?;
            walk = back;
            let Some(candidates) = found? else { return Ok(()) };
            for some in in_questions(&candidates) {
                let same = self.same_at(host, &target, some).await?;
                let there = host.clone();
                host.transfers().pool.run(move || take_back(&there, class.partition, &same)).await??;
            }
        }
    }

    /// Those of the versions that a full primary holds, too.
    async fn same_at(
        &self,
        host: &Host,
        target: &Target,
        candidates: &[Candidate],
    ) -> Result<Vec<(Bytes, u64)>, Error> {
        let answer = self.ask(host, target, candidates, false).await?;
        let same = answer.held.iter().map(|held| answer.is_full && *held == Held::Same);
        let same = candidates.iter().zip(same).filter(|(_, same)| *same);
        Ok(same.map(|(candidate, _)| (candidate.held.key.clone(), candidate.held.digest)).collect())
    }
}

/// Splits versions so that each part fits into one question.
fn in_questions(candidates: &[Candidate]) -> impl Iterator<Item = &[Candidate]> {
    let mut rest = candidates;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|candidate| {
            bytes += candidate.bytes;
            bytes <= TRANSFER_BYTES_MAX as u64
        });
        let (some, left) = rest.split_at(fits.count().max(1).min(rest.len()));
        rest = left;
        (!some.is_empty()).then_some(some)
    })
}

/// Stores versions anew, each only if it is still what is set aside. Blocks.
fn take_back(host: &Host, partition: u32, versions: &[(Bytes, u64)]) -> Result<(), Error> {
    let partition = host.partitions().find(partition)?;
    for (key, digest) in versions {
        let locked = partition.lock(key, Access::Blocking).map_err(crate::compare::refusal)?;
        locked.take_back(*digest, host.now()).map_err(crate::compare::refusal)?;
    }
    Ok(())
}
