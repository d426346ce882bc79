//! Proves homes that are changing: each version that this member of the old set holds is durably at
//! the members of the new set (docs/design/ring-changes.md, "Proof of a home").
//!
//! What it is: the orders of the driver, one comparison for each class and each member of the new
//! set, and what has become of them. Both nodes sum up ranges of key hashes. Ranges with equal sums
//! are proved, because the other node syncs its store before it answers. Of the others this node
//! brings what the other one lacks.
//!
//! What it is not: it does not decide when to prove. The driver orders a proof when every member
//! has confirmed the begin: a proof that began earlier says nothing.
//!
//! Only the end of a comparison is remembered, and only in memory. After an interruption the nodes
//! sum up anew, and only what differs then is compared by keys. So no version is sent twice.
//!
//! The members of the old set share the work: a new member lacks mostly the same versions of all of
//! them. Each first brings its own part of the ranges, and the others' parts only when these do not
//! go on.

use crate::Host;
use crate::compare;
use crate::fill::Task;
use crate::fold::Which;
use crate::left_out::LeftOut;
use crate::progress::TransferKind;
use crate::ranges::Ranges;
use crate::work::Work;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{Asked, BrokenRule, Partition, is_broken};
use ombak_kv::replica::{SUMMARY_RANGES_MAX, Summarize};
use ombak_ring::placement::{HomePlacement, LackingHome, Phase, ProvedHome};
use ombak_runtime::Asker;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long the disk counts as full after it had no room for a copy.
const FULL_DISK_FOR: Duration = Duration::from_secs(10);

/// Into how many ranges a class is split at least. Each split is finer by a power of two, so that
/// all members of an old set have the same parts, whatever numbers of ranges they choose. A member
/// that runs an earlier version has other parts. What no part includes comes when the others stand
/// still.
const RANGES_MIN: u32 = 16;
/// About so many versions fall into a range. Each sum has 16 bytes, and all keys of a range that
/// differs are compared.
const VERSIONS_IN_RANGE: u64 = 4;

/// How far a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proving {
    /// The other node durably holds everything.
    Proved,
    /// Other members of the old set still bring their parts.
    WaitsForOthers,
}

/// Into how many ranges to split a class of a partition that has so many keys.
fn ranges_of(keys: u64) -> u32 {
    let ranges = (keys / VERSIONS_IN_RANGE).clamp(RANGES_MIN.into(), SUMMARY_RANGES_MAX.into());
    (ranges as u32).next_power_of_two()
}

/// The ranges of one of several members of the old set that prove to the same node.
struct Part {
    place: u32,
    of: u32,
}

impl Part {
    fn of_node(host: &Host, home: &HomePlacement<'_>, n: u32, to: NodeId) -> Self {
        let here = host.node_id();
        let mut provers = home.replica_set(n);
        provers.retain(|node| *node != to && (*node == here || host.peers().is_up(*node)));
        let place = provers.iter().position(|node| *node == here).unwrap_or(0);
        Self { place: place as u32, of: provers.len().max(1) as u32 }
    }

    /// Whether a range belongs to this part, of so many ranges.
    const fn includes(&self, range: u32, ranges: u32) -> bool {
        (range / (ranges / RANGES_MIN)) % self.of == self.place
    }
}

fn takes_writes(partition: &Partition) -> bool {
    let status = partition.store().status();
    !status.disk_full && status.poisoned.is_none()
}

impl Work {
    /// Compares a class with a member of the new set, and brings it what it lacks.
    pub(crate) async fn prove(&self, host: &Host, class: ClassId, node: NodeId) -> Result<Proving, Error> {
        let is_full = host.is_full(class.partition, class.n);
        let Some(begun) = host.transfers().proofs.begin(class, node, is_full) else { return Ok(Proving::Proved) };
        let proving = self.prove_class(host, class, node, begun).await;
        host.transfers().proofs.note(class, node, begun, |comparison| {
            comparison.is_proved |= matches!(proving, Ok(Proving::Proved));
            comparison.obstacle = proving.as_ref().err().map(ToString::to_string);
            if proving.is_err() {
                // Others may have been interrupted, too, and have not gone on since.
                comparison.left_to_others = None;
            }
        });
        proving
    }

    /// Proves a class to a member of the new set. A proof that ends gives a mark.
    async fn prove_class(&self, host: &Host, class: ClassId, node: NodeId, begun: u64) -> Result<Proving, Error> {
        let Some(exchanges) = self.exchanges.get() else { return self.bring_class(host, class, node, begun).await };
        let mark = exchanges.begin_proof_mark(self, host, (class, node)).await;
        let proving = self.bring_class(host, class, node, begun).await?;
        if let Some(mark) = mark.filter(|_| proving == Proving::Proved) {
            exchanges.keep_proof_mark(self, host, (class, node), mark).await;
        }
        Ok(proving)
    }

    async fn bring_class(&self, host: &Host, class: ClassId, node: NodeId, begun: u64) -> Result<Proving, Error> {
        let keys = host.partitions().find(class.partition)?.store().status().keys;
        let summarize = Summarize { class, ranges: ranges_of(keys), synced: true };
        let theirs = host.peers().transfer(node).summarize(summarize).await?;
        let there = host.clone();
        let own = host
            .transfers()
            .walk(Asker::default(), move |waited| compare::summarize(&*there, &summarize, waited))
            .await?;
        if own.home_version.number != begun || theirs.home_version != own.home_version {
            let why = format!("node {node} or this node has not adopted the begin of the home, or has adopted its end");
            return Err(StoreFailure::new(StoreFailureKind::Busy, why).into());
        }
        if theirs.ranges.len() != own.ranges.len() {
            return Err(StoreFailure::internal("another node summed up another number of ranges").into());
        }
        let differs = |range: &u32| theirs.ranges[*range as usize] != own.ranges[*range as usize];
        let differing: Vec<u32> = (0..summarize.ranges).filter(differs).collect();
        let placement = host.placement();
        let part = Part::of_node(host, &placement.home(class.partition), class.n, node);
        let (own_part, others): (Vec<u32>, Vec<u32>) =
            differing.iter().partition(|range| part.includes(**range, summarize.ranges));
        let waits = host.transfers().proofs.is_to_wait(class, node, begun, others.len(), self.runtime.now());
        let brought = if waits { own_part } else { differing };
        if !brought.is_empty() {
            let versions = brought.iter().map(|range| own.ranges[*range as usize].versions).sum();
            let which = Which::Class { n: class.n, ranges: Some(Ranges::of(summarize.ranges, &brought)) };
            let left_out = LeftOut::of_proof(self, host, class).await?;
            let task = Task { which, since_seq: 0, kind: TransferKind::Ownership, versions: Some(versions), left_out };
            self.bring_all(host, class, node, task).await?;
        }
        Ok(if waits { Proving::WaitsForOthers } else { Proving::Proved })
    }

    /// Whether a store of this node takes no writes, or its disk had no room for a copy lately.
    pub(crate) fn takes_no_copies(&self, host: &Host) -> bool {
        let refused_at = *self.refused_for_space_at.lock();
        let was_refused = refused_at.is_some_and(|at| self.runtime.now() < at + FULL_DISK_FOR);
        was_refused || host.partitions().all_open().any(|partition| !takes_writes(&partition))
    }

    /// Notes that a copy was refused because the disk is full.
    pub(crate) fn note_refused_for_space(&self) {
        *self.refused_for_space_at.lock() = Some(self.runtime.now());
    }
}

/// The homes that this node has proved.
pub(crate) fn proved_homes(host: &Host) -> Vec<ProvedHome> {
    host.transfers().proofs.proved(&Asked {
        placement: &host.placement(),
        here: host.node_id(),
        ns: &host.buckets().snapshot().all_n_vals(),
        is_full: &|home, n| host.is_full(home, n),
    })
}

/// The changing homes of which this node is in the new set, and would not be full if they
/// flipped now.
pub(crate) fn lacking_homes(host: &Host) -> Vec<LackingHome> {
    if is_broken(BrokenRule::NewSetsSayWhatTheyLack) {
        return Vec::new();
    }
    let (placement, here) = (host.placement(), host.node_id());
    let ns = host.buckets().snapshot().all_n_vals();
    let of_home = |home: HomePlacement<'_>| {
        let new_set = |n: u32| match home.phase() {
            Phase::Pending => home.other_set(n),
            Phase::Settled | Phase::Flipped => home.replica_set(n),
        };
        // Before the flip, a store that takes no writes does not hold what comes. After it,
        // everything has come, and what such a store refuses then is owed to it.
        let has_flipped = home.phase() == Phase::Flipped;
        let can_hold = |partition: u32| {
            has_flipped || host.partitions().get(partition).is_some_and(|partition| takes_writes(&partition))
        };
        let is_lacking = |n: &u32| {
            let is_known = host.transfers().classes.would_be_full(home.home(), *n) && can_hold(home.home());
            new_set(*n).contains(&here) && !is_known
        };
        let lacking: BTreeSet<u32> = ns.iter().copied().filter(is_lacking).collect();
        (!lacking.is_empty()).then(|| LackingHome { home: home.home(), ns: lacking })
    };
    placement.homes().filter(HomePlacement::is_changing).filter_map(of_home).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_with_few_versions_has_few_ranges() {
        let numbers = [0, 1, 63, 64, 65, 1_000, 16_384, u64::MAX].map(ranges_of);
        assert_eq!(numbers, [16, 16, 16, 16, 16, 256, 4_096, 4_096]);
    }

    #[test]
    fn the_parts_of_members_are_the_same_hashes_whatever_numbers_of_ranges_they_choose() {
        for of in 1..=5 {
            for hash in (0..=u64::MAX).step_by(1 << 54) {
                let parts = |ranges| {
                    let range = ombak_kv::replica::range_of(hash, ranges);
                    (0..of).filter(|place| Part { place: *place, of }.includes(range, ranges)).collect::<Vec<u32>>()
                };
                let coarse = parts(RANGES_MIN);
                assert_eq!(coarse.len(), 1, "each range belongs to one part");
                assert!([64, 1_024, SUMMARY_RANGES_MAX].iter().all(|ranges| parts(*ranges) == coarse));
            }
        }
    }
}
