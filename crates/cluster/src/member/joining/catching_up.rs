//! A node that has just started waits until it knows what was decided while it did not run.
//!
//! The metadata says who the clients of a node have to be. A decision that is in force on all other
//! members, such as that security is on, has to be in force on this one before its first client
//! comes. So a start asks the voters how far they are, and waits until this node has followed them.
//!
//! It is enough to have followed what most voters have applied: whatever was acknowledged is in
//! force on each member that could be reached then. It is also enough that the cluster has recorded
//! this start, because the node follows that entry after all earlier ones.
//!
//! A node that cannot reach most voters goes on with what it knows, after a while. Until it has
//! caught up, it also asks whether one of the members that it reaches knows of security.

use crate::Feature;
use crate::member::member_node::{Inner, MemberNode};
use crate::member::questions::question::{Answer, Question};
use futures_util::future::join_all;
use ombak_metadata::state::Metadata;
use ombak_runtime::{RuntimeExt, within};
use ombak_security::{NAMESPACE, Roles, STATUS_KEY};
use ombak_types::NodeId;
use std::time::Duration;

/// What a node knows of the decisions before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaughtUp {
    /// All of them are in force here.
    Entirely,
    /// Some may be missing.
    NotYet {
        /// Whether another member says that security is on.
        is_secured_elsewhere: bool,
    },
}

impl MemberNode {
    /// Waits until this node follows everything that was decided before it started, for at most
    /// `limit` and the time of a question. A node that is alone, or takes no part, does not wait.
    pub async fn catch_up(&self, limit: Duration) -> CaughtUp {
        let inner = &self.inner;
        let deadline = inner.runtime.now() + limit;
        match within(&*inner.runtime, Some(deadline), inner.follow_the_others()).await {
            Ok(()) => CaughtUp::Entirely,
            Err(_) => CaughtUp::NotYet { is_secured_elsewhere: inner.is_secured_elsewhere().await },
        }
    }
}

impl Inner {
    async fn follow_the_others(&self) {
        let is_alone = || self.followed.get().metadata.members().len() <= 1;
        while !is_alone() && self.own_directory.older().is_none() && !self.is_start_recorded() {
            if let Some(index) = self.metadata_node().has_what_most_have().await
                && self.followed.wait_for(|now| now.index >= index).await.is_some()
            {
                return;
            }
            self.runtime.sleep(self.timing.metadata.heartbeat).await;
        }
    }

    /// Whether this node follows an entry that was proposed after it has started.
    fn is_start_recorded(&self) -> bool {
        let now = self.followed.get();
        let recorded = now.metadata.members().get(&self.id());
        recorded.is_some_and(|me| me.boot == self.me.boot && me.log == self.metadata_node().raft_id())
    }

    /// Whether a member that this node reaches says that security is on.
    async fn is_secured_elsewhere(&self) -> bool {
        let (metadata, deadline) = (self.followed.get().metadata, self.question_deadline());
        let understands = |node: &&NodeId| {
            self.node.transport().shares(**node, Feature::SECURITY.capability()) && **node != self.id()
        };
        let asked = metadata.members().keys().filter(understands);
        let answers = join_all(asked.map(|node| self.ask(*node, &Question::IsSecured, deadline))).await;
        answers.contains(&Ok(Answer::IsSecured { is_secured: true }))
    }
}

/// Whether security is on in a state of the metadata.
pub(in crate::member) fn is_secured(metadata: &Metadata) -> bool {
    let status = metadata.record(NAMESPACE, STATUS_KEY.as_bytes());
    let status = status.map(|record| (STATUS_KEY.as_bytes(), &*record.value));
    Roles::from_records(status).0.is_enabled()
}
