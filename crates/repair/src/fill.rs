//! Makes a filling class full: compares it with every other primary, both ways
//! (docs/design/replication.md §1, §8).
//!
//! Both nodes sum up ranges of key hashes, each with one fold over its keys. For the ranges that
//! differ, this node orders the other one to push what it holds and this node lacks, and pushes
//! what the other one lacks. Both directions end with a proof of inclusion. Only a member that is
//! on its way out of the home may take nothing: it is owed what it lacks. The other node need not
//! be full itself: after a loss of power of the whole cluster all compare with each other.
//!
//! A class of which a primary was removed from the cluster is compared with the others alone.
//!
//! A copy of the other node that a mark covers, or that is in doubt, may have been removed
//! everywhere. Where nodes have exchanges, this node takes such copies in a second pass, when it
//! was compared with all primaries, and leaves out what a full one lacks (`left_out`). If a primary
//! does not answer for minutes, this node takes what a mark covers without it: a removed key that
//! returns is better than a write of which one copy is left. What marks of this node cover, it
//! brings to nobody: its exchanges decide once the class is full.
//!
//! The comparisons come one after the other. What this node has stored since an earlier one is then
//! owed to the primary of that comparison (`owed`): it may be a version of which no other node
//! knows who lacks it.

use crate::Host;
use crate::compare;
use crate::fold::{Fold, Which};
use crate::left_out::LeftOut;
use crate::orders::Comparisons;
use crate::progress::TransferKind;
use crate::ranges::Ranges;
use crate::send::{Target, disabled};
use crate::work::Work;
use ombak_kv::ClassId;
use ombak_kv::repair_host::{BrokenRule, RepairHost, is_broken};
use ombak_kv::replica::{Give, GivePass, Giving, SUMMARY_RANGES_MAX, Summarize};
use ombak_ring::placement::{HomePlacement, Phase};
use ombak_runtime::{Asker, RuntimeExt};
use ombak_types::{Error, NodeId, StoreFailure};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::time::Duration;

/// The time between two questions whether an order is done.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// Number of such questions before the comparison is given up, to begin anew later.
const ASKED_MAX: usize = 3_000;

/// Versions of a class that are to be brought to a node.
pub(crate) struct Task {
    pub(crate) which: Which,
    /// Only versions that were appended after this.
    pub(crate) since_seq: u64,
    pub(crate) kind: TransferKind,
    /// How many they are, if that is known.
    pub(crate) versions: Option<u64>,
    /// What of them is not brought, and counts as brought.
    pub(crate) left_out: LeftOut,
}

/// How two primaries of a class compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// They held the same.
    Equal,
    /// They did not, and have brought each other what they lacked, but for what was left out.
    Differing,
}

/// Whether a primary of a class is none any more when its home has changed.
fn is_on_its_way_out(home: &HomePlacement<'_>, node: NodeId, n: u32) -> bool {
    let stays = match home.phase() {
        Phase::Settled => return false,
        Phase::Pending => home.other_set(n),
        Phase::Flipped => home.replica_set(n),
    };
    !stays.contains(&node)
}

/// Owes the primaries of earlier comparisons what this node has stored since.
fn pass_on(host: &Host, class: ClassId, compared: &mut Comparisons, last_seq: u64) {
    if is_broken(BrokenRule::FillingNodesPassOn) {
        return;
    }
    for (node, seq) in compared.with.iter_mut().filter(|(_, seq)| **seq < last_seq) {
        host.transfers().owed.missed(class, *node, *seq + 1);
        *seq = last_seq;
    }
}

impl Work {
    /// Takes an order of another node.
    pub(crate) fn take_order(&self, host: &dyn RepairHost, give: &Give) -> Result<Giving, Error> {
        let is_valid = give.ranges.is_power_of_two() && give.ranges <= SUMMARY_RANGES_MAX;
        if !is_valid || give.wanted.len() > give.ranges as usize {
            return Err(StoreFailure::internal("an order has too many ranges").into());
        }
        // There are at most as many orders as classes and peers.
        if !host.placement().home(give.class.partition).is_primary(give.to, give.class.n) {
            return Err(StoreFailure::internal("an order is for a node that is no primary of the class").into());
        }
        let state = self.orders.take(give);
        host.transfers().wake();
        Ok(state)
    }

    /// Carries out an order.
    pub(crate) async fn carry_out(&self, host: &Host, class: ClassId, to: NodeId) -> Result<(), Error> {
        let Some(order) = self.orders.get(class, to) else { return Ok(()) };
        let left_out = LeftOut::of_order(self, host, (class, to), order.pass).await?;
        let which = Which::Class { n: class.n, ranges: Some(order.ranges) };
        let task = Task { which, since_seq: 0, kind: TransferKind::Fill, versions: None, left_out };
        self.bring_all(host, class, to, task).await?;
        self.orders.done(class, to, order.number);
        Ok(())
    }

    /// Pushes what is owed to a peer, and clears the mark if all of it is proved.
    pub(crate) async fn pay(&self, host: &Host, class: ClassId, peer: NodeId) -> Result<(), Error> {
        let Some(since_seq) = host.transfers().owed.begin(class, peer) else { return Ok(()) };
        let which = Which::Class { n: class.n, ranges: None };
        let after = since_seq.saturating_sub(1);
        let left_out = LeftOut::Marked;
        let task = Task { which, since_seq: after, kind: TransferKind::Owed, versions: None, left_out };
        let paid = self.bring_all(host, class, peer, task).await;
        host.transfers().owed.end(class, peer, paid.is_ok());
        paid
    }

    /// Brings versions of a class to a node until all are proved.
    pub(crate) async fn bring_all(&self, host: &Host, class: ClassId, node: NodeId, task: Task) -> Result<(), Error> {
        let Task { which, since_seq, kind, versions, left_out } = task;
        let there = host.clone();
        let mut fold =
            host.transfers().pool.run(move || Fold::begin(&there, class.partition, which, since_seq)).await??;
        let tracked = self.progress.begin(kind, class, node, host.now());
        if let Some(versions) = versions {
            tracked.expects(versions);
        }
        let home_version = host.home_version(class.partition);
        let target = Target { class, node, home_version, tracked, refusal: Mutex::default() };
        let mut unproven = 0;
        loop {
            let batch;
            (fold, batch) = fold.next_batch().await?;
            let Some(batch) = batch else { break };
            for candidates in batch.by_n.into_values() {
                let candidates = left_out.keep(self, host, (class, node), candidates).await?;
                if candidates.is_empty() {
                    continue;
                }
                let proven = self.prove_at(host, &target, &candidates).await?;
                unproven += proven.iter().filter(|proven| !**proven).count() as u64;
            }
        }
        if unproven == 0 {
            return Ok(());
        }
        let refusal = target.refusal.lock().take();
        let why = refusal.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        Err(StoreFailure::internal(format!("{unproven} versions could not be brought to node {node}{why}")).into())
    }

    /// Compares a class with the primaries with which it was not compared yet. Returns those with
    /// which that is still to be done.
    pub(crate) async fn fill(&self, host: &Host, class: ClassId) -> Result<BTreeSet<NodeId>, Error> {
        let losses = host.transfers().classes.losses(class.partition);
        // While the home changes, the only copy that is left of an acknowledged version may be at a
        // member of the other set.
        let primaries = host.placement().home(class.partition).primaries(class.n);
        let here = host.node_id();
        // A removed node never answers. The home leaves its ring only with full replicas.
        let is_asked = |node: &NodeId| *node != here && !host.peers().was_removed(*node);
        let mut open: BTreeSet<NodeId> = primaries.into_iter().filter(is_asked).collect();
        let compared = self.compared.lock().get(&class).filter(|compared| compared.losses == losses).cloned();
        let mut compared = compared.unwrap_or_else(|| Comparisons::new(losses));
        let has_passes = self.exchanges.get().is_some() && !is_broken(BrokenRule::FillingLeavesOutTheDead);
        let pass = if has_passes { GivePass::First } else { GivePass::All };
        let all = open.clone();
        for node in &all {
            let node = *node;
            if !compared.with.contains_key(&node) {
                if !host.peers().is_up(node) {
                    continue;
                }
                match self.fill_from(host, class, node, pass).await {
                    // It holds the same, so it has left out nothing.
                    Ok(Found::Equal) => drop(compared.at_last.insert(node)),
                    Ok(Found::Differing) => {}
                    Err(_) => continue,
                }
                let last_seq = host.partitions().find(class.partition)?.store().last_seq();
                pass_on(host, class, &mut compared, last_seq);
                compared.with.insert(node, last_seq);
                self.compared.lock().insert(class, compared.clone());
            }
            open.remove(&node);
        }
        if open.is_empty() && has_passes {
            open = self.take_at_last(host, class, all, &mut compared).await?;
        }
        if !open.is_empty() && has_passes {
            self.take_early(host, class, &mut compared).await?;
        }
        if open.is_empty() {
            // What other primaries were told is on the disk before this one is full. What it did
            // not get may have been removed.
            let transfers = host.transfers().clone();
            let save = move || transfers.told.save();
            host.transfers()
                .pool
                .run(save)
                .await?
                .map_err(|why| StoreFailure::internal(format!("what other nodes have told cannot be saved: {why}")))?;
        }
        if open.is_empty() && self.became_full(host, class, losses).await? {
            self.compared.lock().remove(&class);
        }
        Ok(open)
    }

    /// Makes a class full, if its store has lost nothing since the comparison began.
    async fn became_full(&self, host: &Host, class: ClassId, losses: u64) -> Result<bool, Error> {
        let there = host.clone();
        let became_full = move || {
            let ns = there.buckets().snapshot().all_n_vals();
            there.transfers().became_full(there.partitions(), &ns, class, losses)
        };
        Ok(host.transfers().pool.run(became_full).await?)
    }

    /// Takes what others have left out so far, when a class was compared with all primaries.
    /// Returns those with which that is still to be done: nothing is decided before all of them are
    /// up.
    async fn take_at_last(
        &self,
        host: &Host,
        class: ClassId,
        all: BTreeSet<NodeId>,
        compared: &mut Comparisons,
    ) -> Result<BTreeSet<NodeId>, Error> {
        let are_up = all.iter().all(|node| host.peers().is_up(*node));
        let mut open = all;
        open.retain(|node| !compared.at_last.contains(node));
        if !are_up {
            return Ok(open);
        }
        for node in open.clone() {
            if self.fill_from(host, class, node, GivePass::Last).await.is_err() {
                continue;
            }
            let last_seq = host.partitions().find(class.partition)?.store().last_seq();
            pass_on(host, class, compared, last_seq);
            compared.at_last.insert(node);
            self.compared.lock().insert(class, compared.clone());
            open.remove(&node);
        }
        Ok(open)
    }

    /// Takes from the primaries that answer what they have left out so far, once the others have
    /// not answered for a while. Everything but what is in doubt is then at two nodes. The class
    /// does not become full by that.
    async fn take_early(&self, host: &Host, class: ClassId, compared: &mut Comparisons) -> Result<(), Error> {
        let Some(exchanges) = self.exchanges.get() else { return Ok(()) };
        let now = self.runtime.now();
        let since = *compared.waits_since.get_or_insert(now);
        self.compared.lock().insert(class, compared.clone());
        if now < since + exchanges.takes_early_after() {
            return Ok(());
        }
        let is_to_give = |node: &NodeId| {
            let has_given = compared.at_last.contains(node) || compared.early.contains(node);
            !has_given && host.peers().is_up(*node)
        };
        let givers: Vec<NodeId> = compared.with.keys().copied().filter(is_to_give).collect();
        for node in givers {
            if self.fill_from(host, class, node, GivePass::Early).await.is_err() {
                continue;
            }
            let last_seq = host.partitions().find(class.partition)?.store().last_seq();
            pass_on(host, class, compared, last_seq);
            compared.early.insert(node);
            self.compared.lock().insert(class, compared.clone());
        }
        Ok(())
    }

    /// Compares a class with one other primary, both ways.
    async fn fill_from(&self, host: &Host, class: ClassId, node: NodeId, pass: GivePass) -> Result<Found, Error> {
        self.take_back_what_is_at(host, class, node).await?;
        let summarize = Summarize { class, ranges: SUMMARY_RANGES_MAX, synced: false };
        let client = host.peers().transfer(node);
        // This node's own sums come last: a write that reaches both nodes meanwhile may look like a
        // difference, but never hides one.
        let theirs = client.summarize(summarize).await?;
        let there = host.clone();
        let own = host
            .transfers()
            .walk(Asker::default(), move |waited| compare::summarize(&*there, &summarize, waited))
            .await?;
        if theirs.home_version != own.home_version || theirs.ranges.len() != own.ranges.len() {
            return Err(StoreFailure::internal("another node summed up at another version of the home").into());
        }
        for (of, told) in theirs.told.iter().filter(|(of, _)| *of != host.node_id()) {
            host.transfers().told.note_of_third(*of, class.partition, *told);
        }
        let sums = (0u32..).zip(theirs.ranges.iter().zip(&own.ranges));
        let wanted: Vec<u32> = sums.filter(|(_, (theirs, own))| theirs != own).map(|(number, _)| number).collect();
        if wanted.is_empty() {
            return Ok(Found::Equal);
        }
        let ranges = Ranges::of(summarize.ranges, &wanted);
        let order = self.runtime.random_u64().map_err(Error::from)?;
        let give = Give { class, to: host.node_id(), order, ranges: summarize.ranges, wanted, pass };
        client.give(give.clone()).await?;
        let which = Which::Class { n: class.n, ranges: Some(ranges) };
        let left_out = LeftOut::of_filling(host, class);
        let task = Task { which, since_seq: 0, kind: TransferKind::Fill, versions: None, left_out };
        let brought = self.bring_all(host, class, node, task).await;
        if brought.is_err() && is_on_its_way_out(&host.placement().home(class.partition), node, class.n) {
            // It may take nothing any more, because its disk is full. If the home goes back to its
            // ring in force, the node gets this then.
            host.transfers().owed.missed(class, node, 1);
        } else {
            brought?;
        }
        for _ in 0..ASKED_MAX {
            if client.give(give.clone()).await? == Giving::Done {
                return Ok(Found::Differing);
            }
            if !self.takes_pushes() {
                return Err(disabled("to"));
            }
            self.runtime.sleep(ASK_AGAIN).await;
        }
        Err(Error::Timeout)
    }
}
