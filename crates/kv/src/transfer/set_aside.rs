//! What restored stores held at their start (docs/design/replication.md §8).
//!
//! A store that is a copy, came from a backup, or was set back may hold keys that were deleted and
//! reaped since. Nobody remembers their tombstones any more. So every version up to the seq that
//! the store had at its start is *set aside*: for requests, transfers, listings and reaping it
//! counts as absent. It is taken back where a full primary holds exactly the same version; the
//! other primaries push whatever else the class has, as if the store were empty. What then remains
//! set aside is on no other primary. It stays in the store, and an operator may push it or drop it.
//!
//! A version is taken back by storing it anew, under a seq of now. So one number for each partition
//! says what is set aside, and it is on disk before anything is written above it.

use super::Transfers;
use super::fold::Candidate;
use super::progress::TransferKind;
use super::send::Target;
use crate::engine::Engine;
use crate::partition::{Access, Partition, PartitionTable};
use crate::replica::{COMPARE_KEYS_MAX, ClassId, Held, HeldVersion, TRANSFER_BYTES_MAX};
use bytes::Bytes;
use ombak_storage::{Detail, FoldEntry, Scope, Snapshot};
use ombak_types::{Error, NodeId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Up to which seq each partition's versions are set aside.
pub(super) struct SetAside {
    places: Box<[Place]>,
    /// Rises with each change.
    changes: AtomicU64,
}

struct Place {
    set_aside_to: AtomicU64,
    seq_at_start: u64,
}

impl SetAside {
    /// Nothing is set aside yet. `partitions` have just been opened.
    pub(super) fn new(partitions: &PartitionTable) -> Self {
        let seq_of = |number| partitions.get(number).map_or(0, |partition| partition.store().last_seq());
        let place = |number| Place { set_aside_to: AtomicU64::new(0), seq_at_start: seq_of(number) };
        let ring_size = u32::try_from(partitions.ring_size()).unwrap_or(u32::MAX);
        Self { places: (0..ring_size).map(place).collect(), changes: AtomicU64::new(0) }
    }

    /// The seq up to which versions are set aside; 0: none is.
    pub(super) fn of(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.set_aside_to.load(Ordering::SeqCst))
    }

    pub(super) fn seq_at_start(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.seq_at_start)
    }

    /// Sets aside the versions of a partition up to this seq, and no others.
    pub(super) fn up_to(&self, partition: &Partition, seq: u64) {
        if let Some(place) = self.places.get(partition.number() as usize) {
            place.set_aside_to.store(seq, Ordering::SeqCst);
            partition.set_aside(seq);
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Sets aside what the store had at its start.
    pub(super) fn what_was_there_at_the_start(&self, partition: &Partition) {
        let number = partition.number();
        self.up_to(partition, self.seq_at_start(number).max(self.of(number)));
    }

    /// Nothing is set aside on a node that is alone: there is nobody who knows more.
    pub(super) fn apply(&self, partitions: &PartitionTable, is_alone: bool) {
        for partition in partitions.all_open() {
            partition.set_aside(if is_alone { 0 } else { self.of(partition.number()) });
        }
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

/// A walk over what is set aside in a partition.
pub(super) struct SetAsideWalk {
    partition: Arc<Partition>,
    snapshot: Box<dyn Snapshot>,
    set_aside_to: u64,
}

impl SetAsideWalk {
    /// Begins a walk; `None` if nothing is set aside. Blocks.
    pub(super) fn begin(partition: Arc<Partition>) -> Result<Option<Self>, Error> {
        let set_aside_to = partition.set_aside_to();
        if set_aside_to == 0 {
            return Ok(None);
        }
        let snapshot = partition.snapshot()?;
        Ok(Some(Self { partition, snapshot, set_aside_to }))
    }

    /// Some of the keys for which `class` is true; `None` at the end. Blocks.
    pub(super) fn next(&mut self, class: &(dyn Fn(&[u8]) -> bool + Sync)) -> Result<Option<Vec<FoldEntry>>, Error> {
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
                bytes,
                is_readable: true,
            })
        };
        entries.iter().filter_map(read).collect()
    }
}

impl Transfers {
    /// Takes back what a full primary holds, too, exactly the same. What it lacks stays set aside.
    /// The class is not full, so no tombstone of it is reaped meanwhile.
    pub(super) async fn take_back_what_is_at(
        &self,
        engine: &Arc<Engine>,
        class: ClassId,
        node: NodeId,
    ) -> Result<(), Error> {
        let partition = engine.partitions().find(class.partition)?;
        let Some(mut walk) = self.fold_pool.run(move || SetAsideWalk::begin(partition)).await?? else { return Ok(()) };
        let tracked = self.progress.begin(TransferKind::Fill, class, node, engine.now());
        let target = Target {
            class,
            node,
            home_version: engine.home_version(class.partition),
            tracked,
            refusal: Mutex::default(),
        };
        loop {
            let there = engine.clone();
            let (back, found) = self
                .fold_pool
                .run(move || {
                    let buckets = there.buckets.snapshot();
                    let found = walk.next(&|key| buckets.n_of_key(key) == Some(class.n));
                    let found = found.map(|entries| entries.map(|entries| walk.candidates(&entries)));
                    (walk, found)
                })
                .await?;
            walk = back;
            let Some(candidates) = found? else { return Ok(()) };
            for some in in_questions(&candidates) {
                let same = self.same_at(engine, &target, some).await?;
                let there = engine.clone();
                self.pool.run(move || take_back(&there, class.partition, &same)).await??;
            }
        }
    }

    /// Those of the versions that a full primary holds, too.
    async fn same_at(
        &self,
        engine: &Arc<Engine>,
        target: &Target,
        candidates: &[Candidate],
    ) -> Result<Vec<(Bytes, u64)>, Error> {
        let answer = self.ask(engine, target, candidates, false).await?;
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
fn take_back(engine: &Engine, partition: u32, versions: &[(Bytes, u64)]) -> Result<(), Error> {
    let partition = engine.partitions().find(partition)?;
    for (key, digest) in versions {
        let locked = partition.lock(key, Access::Blocking).map_err(super::compare::refusal)?;
        locked.take_back(*digest, engine.now()).map_err(super::compare::refusal)?;
    }
    Ok(())
}
