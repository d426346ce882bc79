//! The part of this node in rounds that it or another node drives. All calls block.

use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::engine::Engine;
use crate::partition::{Access, Failure, Partition, is_tombstone};
use crate::replica::{AskRequest, ClassId, ReapReply, RemoveRequest, Round, Vote, VoteRequest};
use bytes::Bytes;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, Object, StoreFailure, StoreFailureKind};
use std::sync::Arc;

impl Engine {
    /// Compares this primary's copies with the versions that are to be removed.
    pub(crate) fn vote_here(&self, request: &VoteRequest) -> Result<ReapReply<Vote>, Error> {
        let Round { partition, n_val, .. } = request.round;
        self.check_round(request.round, true)?;
        if !self.is_full(partition, n_val) && !is_broken(BrokenRule::FillingPrimariesDoNotVote) {
            return Err(refusal("this primary does not know that it has everything"));
        }
        let partition = self.partitions().find(partition)?;
        let vote = |version: &crate::replica::Reapable| {
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
        self.sync_all_of(&partition)?;
        Ok(ReapReply { answers, counter: self.reaping.fences.counter() })
    }

    /// Says whether this member, which is no primary, holds nothing of each key.
    pub(crate) fn ask_here(&self, request: &AskRequest) -> Result<ReapReply<bool>, Error> {
        let Round { partition, n_val, .. } = request.round;
        self.check_round(request.round, false)?;
        self.raise_floor(partition, request.floor)?;
        // The fence comes first: what was read before and arrives after the look is refused.
        if !is_broken(BrokenRule::AnswersRaiseFences) {
            self.reaping.fences.raise_for_class(partition, n_val);
        }
        let answers = match self.partitions().get(partition) {
            None => vec![true; request.keys.len()],
            Some(partition) => {
                let answers = self.look_for(&partition, n_val, &request.keys);
                // What was here may have gone without a sync.
                self.sync_all_of(&partition)?;
                answers
            }
        };
        Ok(ReapReply { answers, counter: self.reaping.fences.counter() })
    }

    /// Says of each key whether nothing of it is here. The fence of the class was raised before. So
    /// a copy that is not counted yet is refused, and the count of the class can save the look.
    fn look_for(&self, partition: &Partition, n_val: u32, keys: &[Bytes]) -> Vec<bool> {
        if self.transfers.foreign.holds_nothing(ClassId { partition: partition.number(), n: n_val }) {
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
    pub(crate) fn remove_here(&self, request: &RemoveRequest) -> Result<ReapReply<bool>, Error> {
        self.check_round(request.round, true)?;
        if !self.knows_who_takes_times() {
            return Err(refusal("this node does not know yet whether all members take the times of tombstones"));
        }
        let partition = self.partitions().find(request.round.partition)?;
        self.raise_floor_of_time(request, &partition)?;
        let now = self.now();
        let class = (request.round.partition, request.round.n_val);
        let mut answers = Vec::with_capacity(request.versions.len());
        let takes_times = self.takes_times() && !is_broken(BrokenRule::TombstonesLoseTheirTimes);
        for (key, digest) in &request.versions {
            let raise_fence = || {
                if !is_broken(BrokenRule::RemovalsRaiseFences) {
                    self.reaping.fences.raise_for_key(partition.number(), key);
                }
            };
            let locked = partition.lock(key, Access::Blocking).map_err(error_of)?;
            if takes_times && locked.local().is_some_and(Object::has_timed_tombstone) {
                let taken = locked.take_time(*digest, now, raise_fence).map_err(error_of)?;
                if let Some(written) = taken {
                    // The round that removes it may follow at once: its time has come before.
                    self.reaping.due.offer(partition.number(), key, written.digest);
                }
                answers.push(false);
                continue;
            }
            let is_removed = locked.reap_behind_fence(*digest, now, raise_fence);
            answers.push(is_removed.map_err(error_of)?);
        }
        // This primary would drive a round for them by itself, after a while.
        self.reaping.due.forget(class, &request.versions);
        self.reaping.due.counts.removed(answers.iter().filter(|is_removed| **is_removed).count() as u64);
        Ok(ReapReply { answers, counter: self.reaping.fences.counter() })
    }

    /// Raises the floor of time to the newest version of a bucket without siblings that is removed
    /// with its time, before any of them is removed.
    fn raise_floor_of_time(&self, request: &RemoveRequest, partition: &Arc<Partition>) -> Result<(), Error> {
        let mut newest = UnixMicros(0);
        // A tombstone loses its time first.
        let loses_time = |digest: u64| self.takes_times() && is_tombstone(digest);
        let with_floor = |(key, digest): &&(Bytes, u64)| !loses_time(*digest) && self.has_floor(key);
        for (key, _) in request.versions.iter().filter(with_floor) {
            let local = partition.head(key, Access::Blocking).map_err(error_of)?;
            newest = newest.max(local.map(|local| self.time_left_behind(&local)).unwrap_or_default());
        }
        self.raise_floor(partition.number(), newest)
    }

    /// Whether a floor of time keeps what a removal of this key leaves behind from hiding a later
    /// value.
    pub(super) fn has_floor(&self, key: &Bytes) -> bool {
        self.buckets.snapshot().props_of_key(key).is_some_and(|props| props.is_newest_only())
    }

    /// The time that a removal of this version would leave behind somewhere; 0 if it leaves none,
    /// because the tombstone loses its time first.
    pub(super) fn time_left_behind(&self, version: &Object) -> UnixMicros {
        let loses_time = self.takes_times() && version.has_timed_tombstone();
        if loses_time { UnixMicros(0) } else { version.last_modified().unwrap_or_default() }
    }

    fn raise_floor(&self, partition: u32, to: UnixMicros) -> Result<(), Error> {
        if to == UnixMicros(0) {
            return Ok(());
        }
        self.reaping.floors.raise(partition, to).map_err(|why| {
            StoreFailure::new(StoreFailureKind::Io, format!("the floor of time cannot be saved: {why}")).into()
        })
    }

    /// Refuses a message of a round in a home that is changing, or has changed, or for another
    /// role.
    fn check_round(&self, round: Round, as_primary: bool) -> Result<(), Error> {
        let placement = self.placement();
        if !self.agrees_on_home(&placement, round.partition, round.ring) {
            return Err(refusal("this node knows another version of the home partition"));
        }
        let home = placement.home(round.partition);
        if home.is_changing() && !is_broken(BrokenRule::ChangingHomesReapNothing) {
            return Err(refusal("the home partition is changing"));
        }
        if home.replica_set(round.n_val).contains(&self.identity.node_id) != as_primary {
            return Err(refusal("this node has another role in the class"));
        }
        Ok(())
    }

    fn sync_all_of(&self, partition: &Partition) -> Result<(), Error> {
        if is_broken(BrokenRule::ReapingAnswersAreSynced) {
            return Ok(());
        }
        let store = partition.store();
        Ok(store.sync(store.last_seq())?)
    }
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
