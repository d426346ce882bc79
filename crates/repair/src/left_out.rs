//! Which versions of this node are not brought to another one, although that one may lack them:
//! they may have been removed everywhere (docs/design/anti-entropy.md §5, "The same copy on other
//! ways").
//!
//! What it is: one rule for each way of bringing copies. What is left out counts as brought. The
//! next exchange decides about it.
//!
//! What it is not: reads and writes have the same rules in the engine.
//!
//! Invariant: without exchanges nothing is left out.

use crate::Host;
use crate::compare;
use crate::fold::Candidate;
use crate::ranges::Ranges;
use crate::work::Work;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{BrokenRule, is_broken};
use ombak_kv::replica::{GivePass, SUMMARY_RANGES_MAX, Summarize};
use ombak_ring::placement::Phase;
use ombak_runtime::{Asker, Waited};
use ombak_types::{Error, NodeId};

/// What is left out.
pub(crate) enum LeftOut {
    /// Nothing.
    Nothing,
    /// What is in doubt.
    Doubtful,
    /// What is in doubt, and what the mark for the other node covers. If there is none, that node
    /// may be a new primary, and the mark for any other one counts.
    Marked,
    /// What is in doubt, and of these ranges what was removed as far as these other primaries know.
    Removed(Ranges, Vec<NodeId>),
    /// What is left to exchanges, in ranges in which another primary may lack something; none: in
    /// all ranges.
    Suspicious(Option<Ranges>),
    /// Of that, what one of these primaries lacks.
    Dead(Ranges, Vec<NodeId>),
}

impl LeftOut {
    /// What is left out of the copies that this node brings to others because a home changes: what
    /// is in doubt. A node that was the only primary leaves out nothing: nobody else has what it
    /// holds, and nobody can say that something was removed.
    pub(crate) fn of_own(host: &Host, class: ClassId) -> Self {
        if has_other_primaries(host, class) { Self::Doubtful } else { Self::Nothing }
    }

    /// What is left out of the copies that this node brings to others because its class fills.
    /// Where a mark covers a copy, the other node had it. When this class is full, its exchanges
    /// find out who has removed the copy, or lost it.
    pub(crate) fn of_filling(host: &Host, class: ClassId) -> Self {
        // While a home changes there are no exchanges.
        let is_changing = host.placement().home(class.partition).is_changing();
        let leaves_covered = !is_changing && !is_broken(BrokenRule::FillingLeavesOutTheDead);
        match Self::of_own(host, class) {
            Self::Doubtful if leaves_covered => Self::Marked,
            own => own,
        }
    }

    /// What is left out of a proof: what is in doubt, and what was removed everywhere before the
    /// home began to change. If a member of the old set was removed or is marked as down, nobody
    /// can say that. Fails if one of the others does not answer. Where all of them hold the same
    /// nothing was removed, and nobody is asked about keys.
    pub(crate) async fn of_proof(work: &Work, host: &Host, class: ClassId) -> Result<Self, Error> {
        let placement = host.placement();
        let old_set = placement.home(class.partition).replica_set(class.n);
        let others: Vec<NodeId> = old_set.into_iter().filter(|node| *node != host.node_id()).collect();
        let (peers, exchanges) = (host.peers(), work.exchanges.get());
        let can_say = |node: &NodeId| {
            let has_exchanges = exchanges.is_some_and(|exchanges| exchanges.knows(*node));
            has_exchanges && !peers.was_removed(*node) && !peers.is_marked_down(*node)
        };
        if others.is_empty() || !others.iter().all(can_say) {
            return Ok(Self::of_own(host, class));
        }
        Ok(match differing_ranges(host, class, &others).await? {
            Some(ranges) => Self::Removed(ranges, others),
            None => Self::of_own(host, class),
        })
    }

    /// What is left out of one pass of an order to give. In the first pass a primary that does not
    /// answer may lack everything. The last pass fails without it. A node that has waited for it
    /// for long gets everything but what is in doubt: the rules prefer a key that returns to a
    /// write that is lost.
    pub(crate) async fn of_order(
        work: &Work,
        host: &Host,
        (class, to): (ClassId, NodeId),
        pass: GivePass,
    ) -> Result<Self, Error> {
        let placement = host.placement();
        let home = placement.home(class.partition);
        let Some(exchanges) = work.exchanges.get().filter(|_| pass != GivePass::All) else { return Ok(Self::Nothing) };
        if is_broken(BrokenRule::FillingLeavesOutTheDead) {
            return Ok(Self::Nothing);
        }
        if home.is_changing() {
            // There are no exchanges, so nobody can be asked.
            return Ok(Self::of_own(host, class));
        }
        if pass == GivePass::Early {
            return Ok(Self::Doubtful);
        }
        let is_other = |node: &NodeId| ![to, host.node_id()].contains(node) && !host.peers().was_removed(*node);
        let others: Vec<NodeId> = home.replica_set(class.n).into_iter().filter(is_other).collect();
        // Without another primary nobody can say that something was removed.
        if others.is_empty() || !others.iter().all(|node| exchanges.knows(*node)) {
            return Ok(Self::Nothing);
        }
        let ranges = match differing_ranges(host, class, &others).await {
            Ok(ranges) => ranges,
            Err(_) if pass == GivePass::First => return Ok(Self::Suspicious(None)),
            Err(why) => return Err(why),
        };
        Ok(match ranges {
            None => Self::Nothing,
            Some(ranges) if pass == GivePass::First => Self::Suspicious(Some(ranges)),
            Some(ranges) => Self::Dead(ranges, others),
        })
    }

    /// Returns those of some versions that are to be brought to a node. They fit into one question.
    pub(crate) async fn keep(
        &self,
        work: &Work,
        host: &Host,
        (class, node): (ClassId, NodeId),
        mut candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, Error> {
        let transfers = host.transfers();
        let is_doubtful = |candidate: &Candidate| transfers.is_doubtful(class.partition, candidate.seq);
        let is_left = |candidate: &Candidate| transfers.is_left_to_exchanges(class, candidate.seq);
        match self {
            Self::Nothing => {}
            Self::Doubtful => candidates.retain(|candidate| !is_doubtful(candidate)),
            Self::Marked => {
                let has_exchanges = transfers.other_ways.is_on();
                let may_be_new = work.exchanges.get().is_some_and(|exchanges| exchanges.knows(node));
                let covers = |seq| match may_be_new {
                    true => transfers.marks.covers_for(class, node, seq),
                    false => transfers.marks.covers(class, node, seq),
                };
                let is_covered = |one: &Candidate| has_exchanges && covers(one.seq);
                candidates.retain(|one| !is_doubtful(one) && !is_covered(one));
            }
            Self::Removed(ranges, others) => {
                candidates.retain(|candidate| !is_doubtful(candidate));
                let is_asked = |one: &Candidate| one.is_readable && ranges.include(&one.held.key) && is_left(one);
                let (asked, mut kept): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_asked);
                let removed = match work.exchanges.get().filter(|_| !asked.is_empty()) {
                    Some(exchanges) => exchanges.were_removed(work, host, class, others, &asked).await?,
                    None => vec![false; asked.len()],
                };
                kept.extend(asked.into_iter().zip(removed).filter(|(_, is_removed)| !is_removed).map(|(one, _)| one));
                return Ok(kept);
            }
            Self::Suspicious(ranges) => {
                let is_suspicious = |one: &Candidate| ranges.as_ref().is_none_or(|r| r.include(&one.held.key));
                candidates.retain(|candidate| !is_suspicious(candidate) || !is_left(candidate));
            }
            Self::Dead(ranges, others) => {
                let is_asked = |one: &Candidate| one.is_readable && ranges.include(&one.held.key) && is_left(one);
                let (asked, mut kept): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_asked);
                let Some(exchanges) = work.exchanges.get().filter(|_| !asked.is_empty()) else {
                    kept.extend(asked);
                    return Ok(kept);
                };
                let dead = exchanges.are_dead(work, host, class, others, &asked).await?;
                kept.extend(asked.into_iter().zip(dead).filter(|(_, is_dead)| !is_dead).map(|(one, _)| one));
                return Ok(kept);
            }
        }
        Ok(candidates)
    }
}

/// Whether another node was a primary of a class before its home began to change; if the home does
/// not change, whether another one is. Nodes that were removed do not count.
fn has_other_primaries(host: &Host, class: ClassId) -> bool {
    let placement = host.placement();
    let home = placement.home(class.partition);
    let set = if home.phase() == Phase::Flipped { home.other_set(class.n) } else { home.replica_set(class.n) };
    set.into_iter().any(|node| node != host.node_id() && !host.peers().was_removed(node))
}

/// The ranges in which this node and one of some others hold different versions; none if they hold
/// the same everywhere. Fails if one of them does not answer.
async fn differing_ranges(host: &Host, class: ClassId, others: &[NodeId]) -> Result<Option<Ranges>, Error> {
    let summarize = Summarize { class, ranges: SUMMARY_RANGES_MAX, synced: false };
    let mut theirs = Vec::with_capacity(others.len());
    for node in others {
        if !host.peers().is_up(*node) {
            return Err(Error::AllNodesDown);
        }
        theirs.push(host.peers().transfer(*node).summarize(summarize).await?);
    }
    let there = host.clone();
    let sum_up = move |waited: &Waited<'_>| compare::summarize(&*there, &summarize, waited);
    let own = host.transfers().walk(Asker::default(), sum_up).await?;
    let differs = |number: &u32| {
        let at = *number as usize;
        theirs.iter().any(|theirs| theirs.ranges.get(at) != own.ranges.get(at))
    };
    let differing: Vec<u32> = (0..summarize.ranges).filter(differs).collect();
    Ok((!differing.is_empty()).then(|| Ranges::of(summarize.ranges, &differing)))
}
