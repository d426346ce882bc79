//! Answers the questions of other nodes about what this node holds, from its partitions.

use crate::send::disabled;
use crate::work::Work;
use ombak_kv::repair_host::{
    Access, BrokenRule, Failure, Partition, RepairHost, Taken, digest, is_broken, is_of_class, is_unreadable, mix,
};
use ombak_kv::replica::{
    COMPARE_KEYS_MAX, Compare, Compared, Held, HeldVersion, Push, Pushed, RangeSum, ReplicaStore, SUMMARY_RANGES_MAX,
    StoreMode, StoredVersion, Summarize, Summary, TOLD_NODES_MAX, ToldSeq, checksum_of, range_of,
};
use ombak_runtime::{Waited, pause_if_due};
use ombak_storage::{Detail, Origin, Scope, Stored, key_hash};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind, stored_object};

/// Number of entries that a fold takes from a snapshot at a time.
const FOLD_ENTRIES: usize = 2_000;

impl Work {
    /// Stores copies that another node pushes. Blocks.
    pub(crate) fn take_push(&self, host: &dyn RepairHost, push: &Push) -> Result<Pushed, Error> {
        if push.copies.len() > COMPARE_KEYS_MAX {
            return Err(too_much("copies"));
        }
        if !self.takes_pushes() {
            self.progress.counts.rejected();
            return Err(disabled("to"));
        }
        if push.checksum.is_some_and(|checksum| checksum != checksum_of(&push.copies)) {
            return Err(StoreFailure::internal("pushed copies were damaged on their way").into());
        }
        let home_version = host.home_version(push.class.partition);
        let partition = host.partitions().find(push.class.partition)?;
        let (mut seq, mut bytes) = (0, 0);
        let mut stored = Vec::with_capacity(push.copies.len());
        for copy in &push.copies {
            if copy.partition != push.class.partition || copy.n != push.class.n {
                return Err(StoreFailure::internal("a pushed copy is of another class").into());
            }
            stored.push(match store_pushed(host, &partition, copy) {
                Ok(Taken::Stored(written)) => {
                    seq = seq.max(written.seq);
                    bytes += (copy.key.len() + copy.head.len() + copy.body.len()) as u64;
                    host.note_stored(&partition, &copy.key, &written);
                    Ok(StoredVersion { digest: written.digest })
                }
                // The sender reads it again in its time (docs/design/replication.md §6).
                Ok(Taken::Fenced | Taken::TooEarly | Taken::Lacks | Taken::Conflict | Taken::Outdated(_)) => {
                    let text = "the copy was read before a tombstone of its key was removed";
                    Err(StoreFailure::new(StoreFailureKind::Busy, text).into())
                }
                Err(failure) => Err(refusal(failure)),
            });
            pause_if_due();
        }
        if stored.iter().any(|stored| stored.as_ref().is_err_and(is_disk_full)) {
            self.note_refused_for_space();
        }
        if push.synced && !is_broken(BrokenRule::ProofsAreSynced) {
            partition.store().sync(seq)?;
        }
        let objects = stored.iter().filter(|stored| stored.is_ok()).count() as u64;
        self.progress.counts.received(objects, bytes);
        Ok(Pushed { home_version, stored, counter: host.reaping().fences.counter() })
    }
}

/// Compares versions with those of this node. Compares first and syncs then, so that the sync
/// covers what was compared. Blocks.
pub(crate) fn compare(host: &dyn RepairHost, compare: &Compare) -> Result<Compared, Error> {
    if compare.versions.len() > COMPARE_KEYS_MAX {
        return Err(too_much("keys"));
    }
    let (home_version, counter) = (host.home_version(compare.class.partition), host.reaping().fences.counter());
    let held = compare_seqs(host, compare)?.into_iter().map(|(held, _)| held).collect();
    Ok(Compared { home_version, is_full: host.is_full(compare.class.partition, compare.class.n), held, counter })
}

/// What this node holds of each version, and the seq of what it found; 0 if it can read nothing.
/// Blocks.
pub(crate) fn compare_seqs(host: &dyn RepairHost, compare: &Compare) -> Result<Vec<(Held, u64)>, Error> {
    let partition = host.partitions().find(compare.class.partition)?;
    let one = |version: &HeldVersion| {
        pause_if_due();
        compare_one(&partition, version, compare.synced)
    };
    let held: Vec<_> = compare.versions.iter().map(one).collect();
    if compare.synced && !is_broken(BrokenRule::ProofsAreSynced) {
        let seq = held.iter().map(|(_, seq)| *seq).max().unwrap_or_default();
        partition.store().sync(seq)?;
    }
    Ok(held)
}

/// Stores a copy that another node brings. If this node has the same version and cannot read
/// it, the copy takes its place: the other node may have the only one that can be read
/// (docs/design/replication.md §13).
fn store_pushed(host: &dyn RepairHost, partition: &Partition, copy: &ReplicaStore) -> Result<Taken, Failure> {
    let taken = host.store_copy(copy, Origin::Handoff, Access::Blocking);
    if !taken.as_ref().is_err_and(is_unreadable) {
        return taken;
    }
    let incoming = stored_object::decode(&copy.head, Some(&copy.body)).map_err(Error::from)?;
    if !partition.is_known_to_have(&copy.key, digest(&incoming))? {
        return taken;
    }
    let repair = ReplicaStore { mode: StoreMode::ReplaceUnreadable, ..copy.clone() };
    host.store_copy(&repair, Origin::Handoff, Access::Blocking)
}

/// What this node was told of the stores of other nodes. Whoever fills from it keeps that, because
/// what it does not get from this node may have been removed.
fn told_of_others(host: &dyn RepairHost, partition: u32) -> Vec<(NodeId, ToldSeq)> {
    let mut told = host.transfers().told.of_partition(partition, host.node_id());
    told.truncate(TOLD_NODES_MAX);
    told
}

/// Sums up a class, expired versions and tombstones included. Sums that the partition keeps are
/// taken. Without them this blocks for as long as a fold over the keys takes, or until nobody waits
/// for the sum any more.
pub(crate) fn summarize(host: &dyn RepairHost, summarize: &Summarize, waited: &Waited<'_>) -> Result<Summary, Error> {
    let Summarize { class, ranges, synced } = *summarize;
    if !ranges.is_power_of_two() || ranges > SUMMARY_RANGES_MAX {
        return Err(too_much("ranges"));
    }
    let home_version = host.home_version(class.partition);
    let partition = host.partitions().find(class.partition)?;
    if let Some(sums) = kept_sums(host, &partition, summarize)? {
        let told = told_of_others(host, class.partition);
        return Ok(Summary { home_version, ranges: sums, told });
    }
    if synced {
        // A version whose key is locked now may count as written.
        partition.await_writers();
    }
    let buckets = host.buckets().snapshot();
    let of_class = |key: &[u8]| is_of_class(&buckets, key, class.n);
    let since_seq = partition.set_aside_to();
    let scope = Scope { class: Some(&of_class), since_seq, ..Scope::KEPT };
    let mut snapshot = partition.snapshot()?;
    let last_seq = partition.store().last_seq();
    let mut sums = vec![RangeSum::default(); ranges as usize];
    loop {
        waited.check()?;
        pause_if_due();
        let entries = snapshot.next(&scope, Detail::Keys, FOLD_ENTRIES)?;
        if entries.is_empty() {
            if synced && !is_broken(BrokenRule::ProofsAreSynced) {
                partition.store().sync(last_seq)?;
            }
            let told = told_of_others(host, class.partition);
            return Ok(Summary { home_version, ranges: sums, told });
        }
        for entry in &entries {
            let hash = key_hash(&entry.key);
            let sum = &mut sums[range_of(hash, ranges) as usize];
            sum.versions += 1;
            sum.sum = sum.sum.wrapping_add(mix(hash, entry.digest));
            if synced && partition.is_known_as_unreadable(&entry.key) {
                // The sum proves nothing, so the keys of the range are compared one by one.
                sum.sum = sum.sum.wrapping_add(1);
            }
        }
    }
}

/// The sums of a class as the partition keeps them; none if it does not know them, or if they have
/// what the store is about to remove by itself.
fn kept_sums(
    host: &dyn RepairHost,
    partition: &Partition,
    Summarize { class, ranges, synced }: &Summarize,
) -> Result<Option<Vec<RangeSum>>, Error> {
    let cut = partition.cut_of_class(class.n).filter(|cut| cut.is_checked && !cut.removes_by_itself);
    let Some(mut cut) = cut else { return Ok(None) };
    if *synced {
        let buckets = host.buckets().snapshot();
        let unreadable = partition.keys_known_as_unreadable();
        unreadable.iter().filter(|key| is_of_class(&buckets, key, class.n)).for_each(|key| cut.sums.doubt(key));
        if !is_broken(BrokenRule::ProofsAreSynced) {
            partition.store().sync(cut.seq)?;
        }
    }
    Ok(Some(cut.sums.ranges(*ranges)))
}

/// Compares one key without its lock: a version that arrives meanwhile is a descendant of what was
/// found, or of nothing.
///
/// The answer to a question with `synced` lets the other node remove its copy, so the version is
/// read as a whole: a head is no proof that the values can be read.
fn compare_one(partition: &Partition, version: &HeldVersion, synced: bool) -> (Held, u64) {
    if partition.is_known_as_unreadable(&version.key) {
        // The other node may have the only copy that can be read.
        return (Held::Other, 0);
    }
    let read = if synced { Partition::read } else { Partition::read_head };
    let found = match read(partition, &version.key, Access::Blocking) {
        Ok(Some(found)) => found,
        Ok(None) => return (Held::Nothing, 0),
        // It was logged where it was read.
        Err(_) => return (Held::Other, 0),
    };
    (held_of(partition, version, &found), found.seq)
}

fn held_of(partition: &Partition, version: &HeldVersion, found: &Stored) -> Held {
    if found.digest == version.digest {
        return Held::Same;
    }
    let Ok(held) = partition.decode(&version.key, found) else { return Held::Other };
    // Copies without a clock, or with equal ones, do not say which of them a merge keeps: the
    // version is pushed, and the answer to the push proves it.
    match (held.clock.descends(&version.clock), version.clock.descends(&held.clock)) {
        (true, false) => Held::Covers,
        (false, true) => Held::Less,
        _ => Held::Other,
    }
}

fn too_much(of: &str) -> Error {
    StoreFailure::internal(format!("a question between nodes has too many {of}")).into()
}

pub(crate) fn refusal(failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) => error,
        Failure::WouldBlock | Failure::TooLarge(_) => StoreFailure::internal("a blocking call would block").into(),
    }
}

fn is_disk_full(error: &Error) -> bool {
    matches!(error, Error::Storage(failure) if failure.kind == StoreFailureKind::DiskFull)
}
