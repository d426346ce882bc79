//! Gives back what this node holds for others (hinted handoff).
//!
//! A pass visits the foreign copies of one partition, brings each to **all** primaries of its
//! class, and removes it only when each primary has proved that it durably holds that version or a
//! descendant, and only if the copy is still the proven version (docs/design/replication.md §4).
//! While a primary is down, the copy stays, and the other primaries get it nevertheless.
//!
//! A pass that breaks off loses nothing: what it removed is gone, and the next pass visits the
//! rest.
//!
//! On a full disk nothing can be removed, because that is written, too. A node that leaves need not
//! remove what it has proved: it will be no member any more, and brings nothing to anybody then. So
//! for a leaver a partition counts as given when one pass has proved everything in it, as long as
//! its home stays as it is and no other copy comes.

use crate::Host;
use crate::exchange::{Exchanges, Verdict};
use crate::fold::{Candidate, Fold, Which};
use crate::progress::TransferKind;
use crate::rounds::empty_store;
use crate::send::Target;
use crate::work::Work;
use bytes::Bytes;
use futures_util::future::join_all;
use ombak_kv::repair_host::{Access, BrokenRule, Failure, UNKNOWN_N, is_broken, is_of_one_ring};
use ombak_kv::replica::HeldVersion;
use ombak_kv::{Amount, ClassId};
use ombak_ring::RingVersion;
use ombak_ring::placement::{HomePlacement, Placement};
use ombak_runtime::pause_if_due;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::debug;

/// What a pass over the foreign copies of a partition has left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// The copies, by n.
    pub(crate) amounts: BTreeMap<u32, Amount>,
    /// The copies that it has removed, by n.
    pub(crate) removed: BTreeMap<u32, Amount>,
    /// The primaries that proved nothing, because they are down or failed.
    pub(crate) missing: BTreeSet<NodeId>,
    /// What a later pass must visit if these primaries are still missing then: versions with a
    /// larger seq.
    pub(crate) visited_seq: u64,
    /// Whether the pass visited everything.
    pub(crate) is_whole: bool,
    /// Whether a copy was left for another reason than that its removal found no room.
    pub(crate) has_unproved: bool,
}

/// What became of a copy that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It is gone.
    Gone,
    /// It was proved, and its removal found no room on the disk.
    NoRoom,
    /// It stays: it was not proved, or is another version now, or its removal failed.
    Stays,
}

/// One pass.
struct Pass<'a> {
    work: &'a Work,
    host: &'a Host,
    partition: u32,
    placement: Arc<Placement>,
    /// Whether the pass hands back. Otherwise it only counts.
    may_hand_back: bool,
    targets: BTreeMap<(u32, NodeId), Target>,
    left: Left,
}

impl Work {
    /// Whether this node may hand back what it holds of a home. What a node brought with it when it
    /// joined waits until every member that acts on the home knows the node as a member: a round of
    /// reaping that does not ask it could remove the tombstone of what it still holds
    /// (docs/design/replication.md §6, 15). Every step of a home, and every goal that leaves it as
    /// it is, raises its version.
    pub(crate) fn may_hand_back(&self, host: &Host, placement: &Placement, partition: u32) -> bool {
        let (home, here) = (placement.home(partition), host.node_id());
        let is_leaver = || !host.peers().may_stand_in(here);
        let is_known = || home.in_force().node(here).is_some() || home.version() >= placement.goal().version();
        let may = self.hands_back.load(Ordering::SeqCst) && (is_known() || is_leaver());
        !is_kept(&home) && (may || is_broken(BrokenRule::NewcomersHandBackLater))
    }

    /// Makes one pass over the foreign copies of a partition that were appended after `since_seq`.
    /// As long as nothing of the home may be handed back, it counts them.
    pub(crate) async fn hand_back(&self, host: &Host, partition: u32, since_seq: u64) -> Result<Left, Error> {
        let placement = host.placement();
        if is_kept(&placement.home(partition)) {
            return Err(StoreFailure::new(StoreFailureKind::Busy, "the home partition is changing").into());
        }
        let may_hand_back = self.may_hand_back(host, &placement, partition);
        if since_seq == 0 && may_hand_back && !is_of_one_ring(&placement) {
            self.hand_back_ranges(host, &placement, partition).await;
        }
        let mut begin = host.transfers().foreign.begin_fold(partition);
        let visited_seq = host.partitions().find(partition)?.store().last_seq();
        let there = host.clone();
        let mut fold =
            host.transfers().pool.run(move || Fold::begin(&there, partition, Which::Foreign, since_seq)).await??;
        host.transfers().foreign.note_held(partition, &mut begin);
        let left = Left { visited_seq, is_whole: since_seq == 0, ..Left::default() };
        let mut pass = Pass { work: self, host, partition, placement, may_hand_back, targets: BTreeMap::new(), left };
        loop {
            let batch;
            (fold, batch) = fold.next_batch().await?;
            let Some(batch) = batch else { break };
            for (n, candidates) in batch.by_n {
                pass.give_back(n, candidates).await?;
            }
        }
        // The snapshot keeps files that are to go.
        drop(fold);
        let (left, home_version) = (pass.left, pass.placement.home(partition).version());
        let is_given = left.is_whole && !left.has_unproved;
        host.transfers().foreign.note_given(partition, &begin, is_given.then_some(home_version));
        host.transfers().foreign.end_fold(partition, &begin, &left.amounts, &left.removed, since_seq == 0);
        Ok(left)
    }
}

/// Whether all copies of a home stay where they are, because its replicas are changing.
fn is_kept(home: &HomePlacement<'_>) -> bool {
    home.is_changing() && !is_broken(BrokenRule::OldSetsKeepTheirCopies)
}

impl Pass<'_> {
    /// Brings copies of one class to all of its primaries, and removes those that are proved.
    async fn give_back(&mut self, n: u32, candidates: Vec<Candidate>) -> Result<(), Error> {
        let may_prove = self.may_hand_back && n != UNKNOWN_N;
        let (candidates, held) = match may_prove {
            true => {
                let candidates = self.drop_handed_back(n, candidates).await?;
                self.drop_removed(n, candidates).await?
            }
            false => (candidates, BTreeSet::new()),
        };
        let proven = match may_prove {
            true => self.prove_certain(n, &candidates, &held).await,
            false => vec![false; candidates.len()],
        };
        let removed = self.remove(n, &candidates, &proven).await?;
        for (candidate, removal) in candidates.iter().zip(removed) {
            self.left.has_unproved |= removal == Removal::Stays && !(may_prove && self.ends_here(candidate));
            let is_gone = removal == Removal::Gone;
            let counted = if is_gone { &mut self.left.removed } else { &mut self.left.amounts };
            *counted.entry(n).or_default() += Amount { keys: 1, bytes: candidate.bytes };
        }
        Ok(())
    }

    /// Whether a copy that was not proved goes nowhere, and nobody need wait for it: it is in
    /// doubt, its primaries have answered, and this node leaves. Otherwise a node with a damaged
    /// disk could not leave.
    fn ends_here(&self, candidate: &Candidate) -> bool {
        let leaves = !self.host.peers().may_stand_in(self.host.node_id());
        let is_doubtful = || self.host.transfers().is_doubtful(self.partition, candidate.seq);
        leaves && self.left.missing.is_empty() && is_doubtful()
    }

    /// Drops the copies that had been handed back before: the record of their removal was lost.
    /// Returns the others.
    async fn drop_handed_back(&mut self, n: u32, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, Error> {
        let class = ClassId { partition: self.partition, n };
        let Some(exchanges) = self.work.exchanges.get() else { return Ok(candidates) };
        let partition = self.host.partitions().find(self.partition)?;
        let empty_at = self.host.transfers().empty_at.of(class, empty_store(&**self.host, &partition, n));
        let (dead, rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|candidate| candidate.is_readable && candidate.seq <= empty_at);
        if dead.is_empty() || !self.host.transfers().foreign.is_foreign(class) {
            return Ok(rest.into_iter().chain(dead).collect());
        }
        self.drop_all(class, exchanges.clone(), dead).await?;
        Ok(rest)
    }

    /// Drops the copies that were removed everywhere: all primaries have answered, are full and
    /// lack them, and the copies are in doubt (docs/design/anti-entropy.md §5, rule 6), or were at
    /// each of them while this node was a primary (§9). Returns the others, and the keys of those
    /// among them that may be pushed nevertheless.
    async fn drop_removed(
        &mut self,
        n: u32,
        candidates: Vec<Candidate>,
    ) -> Result<(Vec<Candidate>, BTreeSet<Bytes>), Error> {
        let (class, transfers) = (ClassId { partition: self.partition, n }, self.host.transfers().clone());
        let Some(exchanges) = self.work.exchanges.get() else { return Ok((candidates, BTreeSet::new())) };
        let is_left = |one: &Candidate| one.is_readable && transfers.is_left_to_exchanges(class, one.seq);
        let (left, mut rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_left);
        if left.is_empty() || !transfers.foreign.is_foreign(class) {
            return Ok((rest.into_iter().chain(left).collect(), BTreeSet::new()));
        }
        let primaries = self.placement.home(self.partition).primaries(n);
        let primaries: Vec<NodeId> = primaries.into_iter().collect();
        let verdicts = exchanges.judge_foreign(self.work, self.host, class, &primaries, &left).await;
        // A primary of an earlier version never says what it has removed.
        let can_say = primaries.iter().all(|node| exchanges.knows(*node));
        let (mut dead, mut held) = (Vec::new(), BTreeSet::new());
        for (candidate, verdict) in left.into_iter().zip(verdicts) {
            let is_certain = !transfers.is_doubtful(self.partition, candidate.seq);
            let verdict = if is_certain && !can_say { Verdict::Push } else { verdict };
            match verdict {
                Verdict::Drop => {
                    dead.push(candidate);
                    continue;
                }
                Verdict::Push => drop(held.insert(candidate.held.key.clone())),
                Verdict::Withhold => {}
            }
            rest.push(candidate);
        }
        self.drop_all(class, exchanges.clone(), dead).await?;
        Ok((rest, held))
    }

    /// Drops copies, and counts them.
    async fn drop_all(&mut self, class: ClassId, exchanges: Arc<Exchanges>, dead: Vec<Candidate>) -> Result<(), Error> {
        if dead.is_empty() {
            return Ok(());
        }
        let (there, at) = (self.host.clone(), (class, self.home_version()));
        let drop_all = move || {
            let dropped = exchanges.drop_foreign(&*there, at, &dead);
            dropped.map(|dropped| (dead, dropped))
        };
        let (dead, dropped) = self.host.transfers().pool.run(drop_all).await??;
        for (candidate, is_dropped) in dead.iter().zip(dropped) {
            // One that stays is another version by now, and is visited by a later pass.
            self.left.has_unproved |= !is_dropped;
            let counted = if is_dropped { &mut self.left.removed } else { &mut self.left.amounts };
            *counted.entry(class.n).or_default() += Amount { keys: 1, bytes: candidate.bytes };
        }
        Ok(())
    }

    /// [`Self::prove`], but a copy in doubt, or one that a mark covers, is not pushed: it goes only
    /// if all primaries hold it. `held` are the keys of those that may be pushed nevertheless.
    async fn prove_certain(&mut self, n: u32, candidates: &[Candidate], held: &BTreeSet<Bytes>) -> Vec<bool> {
        let transfers = self.host.transfers().clone();
        let class = ClassId { partition: self.partition, n };
        let is_left = |at: &usize| {
            let Candidate { held: HeldVersion { key, .. }, seq, .. } = &candidates[*at];
            transfers.is_left_to_exchanges(class, *seq) && !held.contains(key)
        };
        let (left, certain): (Vec<usize>, Vec<usize>) = (0..candidates.len()).partition(is_left);
        if left.is_empty() {
            return self.prove(n, candidates, true).await;
        }
        let mut all = vec![false; candidates.len()];
        for (places, pushes) in [(certain, true), (left, false)] {
            let some: Vec<Candidate> = places.iter().map(|at| candidates[*at].clone()).collect();
            if some.is_empty() {
                continue;
            }
            for (at, is_proven) in places.into_iter().zip(self.prove(n, &some, pushes).await) {
                all[at] = is_proven;
            }
        }
        all
    }

    /// Returns for each copy whether all primaries durably hold it. With `pushes` it is brought to
    /// those that lack it.
    async fn prove(&mut self, n: u32, candidates: &[Candidate], pushes: bool) -> Vec<bool> {
        let class = ClassId { partition: self.partition, n };
        let home = self.placement.home(self.partition);
        let is_early = is_broken(BrokenRule::OldSetsKeepTheirCopies);
        let primaries = if is_early { home.replica_set(n) } else { home.primaries(n) };
        let (mut up, mut all) = (Vec::new(), vec![!primaries.is_empty(); candidates.len()]);
        for node in primaries {
            if node != self.host.node_id() && self.work.is_reachable(&**self.host, node) {
                up.push(node);
                self.track(class, node);
            } else {
                self.left.missing.insert(node);
                all.fill(false);
            }
        }
        if is_broken(BrokenRule::AllPrimariesProve) {
            up.truncate(1);
        }
        let targets = up.iter().filter_map(|node| self.targets.get(&(n, *node)));
        let (work, host) = (self.work, self.host);
        let proofs = targets.map(|target| async move {
            match pushes {
                true => work.prove_at(host, target, candidates).await,
                false => work.prove_without_push(host, target, candidates).await,
            }
        });
        for (node, proof) in up.iter().zip(join_all(proofs).await) {
            match proof {
                Ok(proven) => all.iter_mut().zip(proven).for_each(|(all, one)| *all &= one),
                Err(why) => {
                    debug!(partition = self.partition, n, %node, %why, "handing back failed");
                    self.left.missing.insert(*node);
                    all.fill(false);
                }
            }
        }
        all
    }

    fn track(&mut self, class: ClassId, node: NodeId) {
        let (work, host, home_version) = (self.work, self.host, self.home_version());
        self.targets.entry((class.n, node)).or_insert_with(|| {
            let tracked = work.progress.begin(TransferKind::HandBack, class, node, host.now());
            Target { class, node, home_version, tracked, refusal: Mutex::default() }
        });
    }

    /// Removes the copies that are proved. Returns what became of each.
    async fn remove(&self, n: u32, candidates: &[Candidate], proven: &[bool]) -> Result<Vec<Removal>, Error> {
        if !proven.contains(&true) && !is_broken(BrokenRule::LeaversProveWhatTheyKeep) {
            return Ok(vec![Removal::Stays; candidates.len()]);
        }
        let class = ClassId { partition: self.partition, n };
        let proven: Vec<_> = candidates
            .iter()
            .zip(proven)
            .map(|(candidate, proven)| {
                proven.then(|| (candidate.held.key.clone(), candidate.held.digest, candidate.is_readable))
            })
            .collect();
        let (host, home_version) = (self.host.clone(), self.home_version());
        self.host.transfers().pool.run(move || remove_proven(&host, class, home_version, &proven)).await?
    }

    fn home_version(&self) -> RingVersion {
        self.placement.home(self.partition).version()
    }
}

/// Removes versions that all primaries of a class were proved to hold: keys, with the digest and
/// whether this node can read the version. Each goes only if it is still the proven one and only
/// while the home is as it was at the proof. Blocks.
pub(crate) fn remove_proven(
    host: &Host,
    class: ClassId,
    home_version: RingVersion,
    proven: &[Option<(Bytes, u64, bool)>],
) -> Result<Vec<Removal>, Error> {
    let partition = host.partitions().find(class.partition)?;
    let is_same_home = || host.home_version(class.partition) == home_version;
    let may_remove = || is_same_home() && host.transfers().foreign.is_foreign(class);
    let remove = |key: &[u8], digest| {
        let Ok(locked) = partition.lock(key, Access::Blocking) else { return Removal::Stays };
        match locked.local().is_none() {
            true => Removal::Gone,
            false if may_remove() => removal(&locked.remove_proven(digest)),
            false => Removal::Stays,
        }
    };
    // What was proved by its digest alone is removed by its digest alone.
    let remove_unread = |key: &[u8], digest| match may_remove() {
        true => removal(&partition.remove_unread(key, digest)),
        false => Removal::Stays,
    };
    let one = |version: &Option<(Bytes, u64, bool)>| match version {
        Some((key, digest, true)) => remove(key, *digest),
        Some((key, digest, false)) => remove_unread(key, *digest),
        None if is_broken(BrokenRule::LeaversProveWhatTheyKeep) => Removal::NoRoom,
        None => Removal::Stays,
    };
    let removed = proven.iter().map(|version| {
        pause_if_due();
        one(version)
    });
    Ok(removed.collect())
}

fn removal(removed: &Result<bool, Failure>) -> Removal {
    match removed {
        Ok(true) => Removal::Gone,
        Err(Failure::Refused(Error::Storage(failure))) if failure.kind == StoreFailureKind::DiskFull => Removal::NoRoom,
        Ok(false) | Err(_) => Removal::Stays,
    }
}
