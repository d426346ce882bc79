//! Decides changes of bucket types, properties and records of namespaces with the metadata, for the
//! registry of the engine.

use super::error::ClusterError;
use super::features::Feature;
use super::member_node::{Inner, MemberNode};
use super::questions::question::{Answer, Question};
use super::ring_change::closing::{while_empty, who_is_not_empty};
use crate::metadata::{command, is_function};
use futures_util::future::join_all;
use ombak_kv::buckets::RecordName;
use ombak_kv::buckets::{PropertyAuthority, ProposedChange, RecordChange, Undecided};
use ombak_metadata::state::Metadata;
use ombak_runtime::{Runtime, within};
use ombak_types::NodeId;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// The metadata, as the registry of the engine sees it.
pub(super) struct ClusterProperties {
    inner: Weak<Inner>,
    runtime: Arc<dyn Runtime>,
}

impl fmt::Debug for ClusterProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterProperties(..)")
    }
}

impl ClusterProperties {
    pub fn new(inner: &Arc<Inner>) -> Self {
        Self { inner: Arc::downgrade(inner), runtime: inner.runtime.clone() }
    }

    /// Lets a task do the work, and waits for it. Not for the threads on which tasks run.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        self.runtime.spawn(Box::pin(async move {
            // The receiver waits until it is told.
            let _ = tell.send(work.await);
        }));
        told.recv().ok()
    }
}

impl PropertyAuthority for ClusterProperties {
    fn decide(&self, change: ProposedChange) -> Result<(), Undecided> {
        let stopped = || Undecided::Failed("the node is stopping".into());
        let inner = self.inner.upgrade().ok_or_else(stopped)?;
        self.wait(async move { inner.decide_properties(change).await }).ok_or_else(stopped)??;
        Ok(())
    }

    fn catch_up(&self) {
        if let Some(inner) = self.inner.upgrade() {
            self.wait(async move { inner.catch_up().await });
        }
    }
}

impl MemberNode {
    /// Decides a change of bucket types or properties. It does not block: for a world with one
    /// thread.
    pub async fn decide_properties(&self, change: ProposedChange) -> Result<(), Undecided> {
        Ok(self.inner.decide_properties(change).await?)
    }
}

impl Inner {
    /// When this returns, the registry of every member that can be reached has the change. A member
    /// that cannot be reached learns of it later: the change is decided nevertheless.
    async fn decide_properties(self: &Arc<Self>, change: ProposedChange) -> Result<(), ClusterError> {
        let knows_records = match &change.change {
            RecordChange::Open(name, _) => self.check_namespace(name)?,
            RecordChange::Type(..) | RecordChange::Bucket(..) => false,
        };
        let moves = change.moves.clone();
        let command =
            command(change, knows_records).ok_or_else(|| ClusterError::refused("a bucket type is never removed"))?;
        let (metadata, deadline) = (self.metadata_node(), self.command_deadline());
        let has_several_nodes = self.kv().ring().node_count() > 1;
        let index = match moves.filter(|_| has_several_nodes) {
            Some(holdings) => {
                // Without this look, a change of a bucket with objects would hold up its writes.
                let problems = who_is_not_empty(self, holdings.clone(), None, deadline).await;
                if let Some(problem) = problems.first() {
                    return Err(ClusterError::refused(format!("n_val and chash_keyfun cannot change: {problem}")));
                }
                while_empty(self, holdings, command).await?
            }
            None => metadata.propose(command, deadline).await?,
        };
        self.wait_followed(index).await;
        for node in self.spread(index).await {
            let name = self.name_of(node);
            tracing::warn!(node = name, "a member cannot be reached, and learns of a change of properties later");
        }
        Ok(())
    }

    /// Checks that all members understand the records of a namespace. Returns whether they know the
    /// command that changes records of all namespaces. Functions have a command that is older.
    fn check_namespace(&self, name: &RecordName) -> Result<bool, ClusterError> {
        let (metadata, nobody) = (self.metadata_node().metadata(), BTreeSet::new());
        for feature in Feature::ALL.into_iter().filter(|feature| feature.namespace == Some(&*name.namespace)) {
            self.check_all_can(feature, &metadata, &nobody)?;
        }
        match self.can_all(Feature::OPEN_RECORDS, &metadata) {
            Some(true) => Ok(true),
            _ if is_function(name) => Ok(false),
            _ => self.check_all_can(Feature::OPEN_RECORDS, &metadata, &nobody).map(|()| true),
        }
    }

    /// Waits until the registries of all members that can be reached have followed an entry.
    /// Returns the other members. Requests for data never wait for this.
    async fn spread(self: &Arc<Self>, index: u64) -> Vec<NodeId> {
        let (metadata, deadline) = (self.followed.get().metadata, self.command_deadline());
        let question = Question::Followed { at_least: index, lineage: lineage_of(&metadata) };
        let others: Vec<NodeId> = metadata.members().keys().copied().filter(|node| *node != self.id()).collect();
        let asked = others.iter().map(|node| self.wait_for_member(*node, index, &question, deadline));
        let reached = join_all(asked).await;
        others.into_iter().zip(reached).filter(|(_, reached)| !reached).map(|(node, _)| node).collect()
    }

    /// Whether a member has followed an entry. A member that answers is waited for until the
    /// deadline, and one that does not answer for as long as a question takes.
    async fn wait_for_member(self: &Arc<Self>, node: NodeId, index: u64, question: &Question, until: Instant) -> bool {
        while self.is_up(node) && self.runtime.now() < until {
            match self.ask(node, question, self.question_deadline().min(until)).await {
                Ok(Answer::Followed { index: followed }) if followed >= index => return true,
                // It is behind, and can be reached.
                Ok(Answer::Followed { .. }) => {}
                _ => return false,
            }
        }
        false
    }

    /// Waits for an entry for a part of the time that the member that asks gives.
    pub async fn say_followed(
        &self,
        at_least: u64,
        lineage: Option<u64>,
        deadline: Instant,
    ) -> Result<Answer, ClusterError> {
        let now = self.runtime.now();
        let until = now + deadline.saturating_duration_since(now).min(self.timing.question) / 2;
        let reached = self.followed.wait_for(|now| now.index >= at_least && lineage_of(&now.metadata) == lineage);
        // Late is an answer, too.
        let _ = within(&*self.runtime, Some(until), reached).await;
        let now = self.followed.get();
        // The same index in another lineage is another entry.
        let is_same = lineage_of(&now.metadata) == lineage;
        is_same.then_some(Answer::Followed { index: now.index }).ok_or_else(|| ClusterError::refused("another cluster"))
    }

    async fn catch_up(&self) {
        let metadata = self.metadata_node();
        metadata.catch_up(self.question_deadline()).await;
        self.wait_followed(metadata.applied()).await;
    }

    /// Waits until the registry and the ring have followed an entry that is part of the state here.
    pub async fn wait_followed(&self, index: u64) {
        let reached = self.followed.wait_for(|now| now.index >= index);
        // Late: the caller finds what is followed so far, and may try again.
        let _ = within(&*self.runtime, Some(self.command_deadline()), reached).await;
    }
}

fn lineage_of(metadata: &Metadata) -> Option<u64> {
    metadata.lineage().map(|lineage| lineage.id)
}
