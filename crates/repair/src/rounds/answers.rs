//! The part of this node in rounds that it or another node drives. All calls block.

use bytes::Bytes;
use ombak_kv::repair_host::{Access, BrokenRule, EmptyStore, Failure, Partition, RepairHost, is_broken};
use ombak_kv::replica::{AskRequest, ReapReply, RemoveRequest, Round, ToldSeq, Vote, VoteRequest};
use ombak_kv::{ClassId, is_tombstone};
use ombak_types::time::UnixMicros;
use ombak_types::{Error, Object, StoreFailure, StoreFailureKind};
use std::sync::Arc;

/// Compares this primary's copies with the versions that are to be removed.
pub(crate) fn vote(host: &dyn RepairHost, request: &VoteRequest) -> Result<ReapReply<Vote>, Error> {
    let Round { partition, n_val, .. } = request.round;
    check_round(host, request.round, true)?;
    if !host.is_full(partition, n_val) && !is_broken(BrokenRule::FillingPrimariesDoNotVote) {
        return Err(refusal("this primary does not know that it has everything"));
    }
    let partition = host.partitions().find(partition)?;
    let vote = |version: &ombak_kv::replica::Reapable| {
        let found = match partition.read_head(&version.key, Access::Blocking) {
            Ok(Some(found)) => found,
            Ok(None) => return Vote::Less,
            Err(_) => return Vote::Other,
        };
        if found.digest == version.digest {
            return Vote::Same;
        }
        match partition.decode(&version.key, &found) {
            Ok(local) if version.clock.dominates(&local.clock) => Vote::Less,
            _ => Vote::Other,
        }
    };
    // It compares before it syncs: what is called the same is then on the disk.
    let answers = request.versions.iter().map(vote).collect();
    let told = sync_all_of(host, &partition)?;
    Ok(ReapReply { answers, counter: host.reaping().fences.counter(), told })
}

/// Says whether this member, which is no primary, holds nothing of each key.
pub(crate) fn ask(host: &dyn RepairHost, request: &AskRequest) -> Result<ReapReply<bool>, Error> {
    let Round { partition, n_val, .. } = request.round;
    check_round(host, request.round, false)?;
    raise_floor(host, partition, request.floor)?;
    // The fence comes first: what was read before and arrives after the look is refused.
    if !is_broken(BrokenRule::AnswersRaiseFences) {
        host.reaping().fences.raise_for_class(partition, n_val);
    }
    let (answers, told) = match host.partitions().get(partition) {
        None => (vec![true; request.keys.len()], None),
        Some(partition) => {
            let empty = empty_at(host, &partition, n_val);
            let answers = look_for(host, &partition, n_val, &request.keys);
            // What was here may have gone without a sync.
            let told = sync_all_of(host, &partition)?;
            if let Some(empty) = empty {
                note_empty(host, &partition, n_val, empty)?;
            }
            (answers, told)
        }
    };
    Ok(ReapReply { answers, counter: host.reaping().fences.counter(), told })
}

/// A seq of the store up to which nothing of a class is here, and the number of copies of it that
/// were begun since the start; none if something may be here, or nobody would make use of it.
fn empty_at(host: &dyn RepairHost, partition: &Partition, n_val: u32) -> Option<(u64, u64)> {
    if !host.transfers().other_ways.is_on() {
        return None;
    }
    // A copy is counted before it is appended. So what the count does not know has a later seq.
    let seq = partition.store().last_seq();
    let class = ClassId { partition: partition.number(), n: n_val };
    host.transfers().foreign.begun_if_nothing_is_held(class).map(|begun| (seq, begun))
}

/// Writes down durably that this member held nothing of a class at a seq: a copy up to that which
/// shows again was handed back before (docs/design/anti-entropy.md §5).
fn note_empty(host: &dyn RepairHost, partition: &Partition, n_val: u32, (seq, begun): (u64, u64)) -> Result<(), Error> {
    let class = ClassId { partition: partition.number(), n: n_val };
    let noted = host.transfers().empty_at.note(class, empty_store(host, partition, n_val), seq, begun);
    noted.map_err(|why| {
        let text = format!("it cannot be noted that nothing is held for others: {why}");
        StoreFailure::new(StoreFailureKind::Io, text).into()
    })
}

/// What a note of an empty class belongs to.
pub(crate) fn empty_store(host: &dyn RepairHost, partition: &Partition, n: u32) -> EmptyStore {
    let class_print = host.buckets().snapshot().class_print(n);
    EmptyStore { store_id: partition.store().identity().store_id, class_print }
}

/// Says of each key whether nothing of it is here. The fence of the class was raised before. So
/// a copy that is not counted yet is refused, and the count of the class can save the look.
fn look_for(host: &dyn RepairHost, partition: &Partition, n_val: u32, keys: &[Bytes]) -> Vec<bool> {
    if host.transfers().foreign.holds_nothing(ClassId { partition: partition.number(), n: n_val }) {
        return vec![true; keys.len()];
    }
    // The key's lock lets a copy that is just being stored be seen.
    let is_clean = |key: &Bytes| {
        let locked = partition.lock(key, Access::Blocking);
        locked.is_ok_and(|locked| locked.local().is_none())
    };
    keys.iter().map(is_clean).collect()
}

/// Removes the versions that are still what this primary has voted on.
pub(crate) fn remove(host: &dyn RepairHost, request: &RemoveRequest) -> Result<ReapReply<bool>, Error> {
    check_round(host, request.round, true)?;
    if host.takes_times().is_none() {
        return Err(refusal("this node does not know yet whether all members take the times of tombstones"));
    }
    let partition = host.partitions().find(request.round.partition)?;
    raise_floor_of_time(host, request, &partition)?;
    keep_told(host, request)?;
    let now = host.now();
    let class = (request.round.partition, request.round.n_val);
    let mut answers = Vec::with_capacity(request.versions.len());
    let takes_times = takes_times(host) && !is_broken(BrokenRule::TombstonesLoseTheirTimes);
    for (key, digest) in &request.versions {
        let raise_fence = || {
            if !is_broken(BrokenRule::RemovalsRaiseFences) {
                host.reaping().fences.raise_for_key(partition.number(), key);
            }
        };
        let locked = partition.lock(key, Access::Blocking).map_err(error_of)?;
        if takes_times && locked.local().is_some_and(Object::has_timed_tombstone) {
            let taken = locked.take_time(*digest, now, raise_fence).map_err(error_of)?;
            if let Some(written) = taken {
                // The round that removes it may follow at once: its time has come before.
                host.reaping().due.offer(partition.number(), key, written.digest);
            }
            answers.push(false);
            continue;
        }
        let is_removed = locked.reap_behind_fence(*digest, now, raise_fence);
        answers.push(is_removed.map_err(error_of)?);
    }
    // This primary would drive a round for them by itself, after a while.
    host.reaping().due.forget(class, &request.versions);
    host.reaping().due.counts.removed(answers.iter().filter(|is_removed| **is_removed).count() as u64);
    Ok(ReapReply { answers, counter: host.reaping().fences.counter(), told: None })
}

/// Makes durable what the members have told of their stores, before anything is removed. So a store
/// that is set back to before its answer is found out when it meets this node again
/// (docs/design/anti-entropy.md §3).
fn keep_told(host: &dyn RepairHost, request: &RemoveRequest) -> Result<(), Error> {
    if is_broken(BrokenRule::ToldSeqsAreKept) {
        return Ok(());
    }
    let told = &host.transfers().told;
    for (node, ToldSeq { store_id, seq }) in request.told.iter().filter(|(node, _)| *node != host.node_id()) {
        told.note(*node, request.round.partition, *store_id, *seq);
    }
    told.save().map_err(|why| {
        StoreFailure::new(StoreFailureKind::Io, format!("what other nodes have told cannot be saved: {why}")).into()
    })
}

/// Raises the floor of time to the newest version of a bucket without siblings that is removed
/// with its time, before any of them is removed.
fn raise_floor_of_time(
    host: &dyn RepairHost,
    request: &RemoveRequest,
    partition: &Arc<Partition>,
) -> Result<(), Error> {
    let mut newest = UnixMicros(0);
    // A tombstone loses its time first.
    let loses_time = |digest: u64| takes_times(host) && is_tombstone(digest);
    let with_floor = |(key, digest): &&(Bytes, u64)| !loses_time(*digest) && has_floor(host, key);
    for (key, _) in request.versions.iter().filter(with_floor) {
        let local = partition.head(key, Access::Blocking).map_err(error_of)?;
        newest = newest.max(local.map(|local| time_left_behind(host, &local)).unwrap_or_default());
    }
    raise_floor(host, partition.number(), newest)
}

/// Whether tombstones lose their time before they are removed, as far as is known.
fn takes_times(host: &dyn RepairHost) -> bool {
    host.takes_times() == Some(true)
}

/// Whether a floor of time keeps what a removal of this key leaves behind from hiding a later
/// value.
pub(crate) fn has_floor(host: &dyn RepairHost, key: &Bytes) -> bool {
    host.buckets().snapshot().props_of_key(key).is_some_and(|props| props.is_newest_only())
}

/// The time that a removal of this version would leave behind somewhere; 0 if it leaves none,
/// because the tombstone loses its time first.
pub(crate) fn time_left_behind(host: &dyn RepairHost, version: &Object) -> UnixMicros {
    let loses_time = takes_times(host) && version.has_timed_tombstone();
    if loses_time { UnixMicros(0) } else { version.last_modified().unwrap_or_default() }
}

fn raise_floor(host: &dyn RepairHost, partition: u32, to: UnixMicros) -> Result<(), Error> {
    if to == UnixMicros(0) {
        return Ok(());
    }
    host.reaping().floors.raise(partition, to).map_err(|why| {
        StoreFailure::new(StoreFailureKind::Io, format!("the floor of time cannot be saved: {why}")).into()
    })
}

/// Refuses a message of a round in a home that is changing, or has changed, or for another
/// role.
fn check_round(host: &dyn RepairHost, round: Round, as_primary: bool) -> Result<(), Error> {
    let placement = host.placement();
    if !host.agrees_on_home(&placement, round.partition, round.ring) {
        return Err(refusal("this node knows another version of the home partition"));
    }
    let home = placement.home(round.partition);
    if home.is_changing() && !is_broken(BrokenRule::ChangingHomesReapNothing) {
        return Err(refusal("the home partition is changing"));
    }
    if home.replica_set(round.n_val).contains(&host.node_id()) != as_primary {
        return Err(refusal("this node has another role in the class"));
    }
    Ok(())
}

/// Syncs a store. Returns what the answer may tell of it.
fn sync_all_of(host: &dyn RepairHost, partition: &Partition) -> Result<Option<ToldSeq>, Error> {
    if is_broken(BrokenRule::ReapingAnswersAreSynced) {
        return Ok(None);
    }
    let store = partition.store();
    let seq = store.last_seq();
    store.sync(seq)?;
    Ok(host.transfers().told.of_own(partition, seq))
}

/// A refusal that ends the round. The driver begins another one later.
fn refusal(why: &str) -> Error {
    StoreFailure::new(StoreFailureKind::Busy, why).into()
}

fn error_of(failure: Failure) -> Error {
    match failure {
        Failure::Refused(error) => error,
        Failure::WouldBlock | Failure::TooLarge(_) => StoreFailure::internal("a blocking call would block").into(),
    }
}
