//! A node that has just started waits until it knows what was decided while it did not run.
//!
//! The metadata says who the clients of a node have to be. A decision that is in force on all other
//! members, such as that security is on, has to be in force on this one before its first client
//! comes. So a start asks the voters how far they are, and waits until this node has followed them.
//!
//! It is enough to have followed what most voters have applied: whatever was acknowledged is in
//! force on each member that could be reached then. It is also enough that the cluster has recorded
//! this start, because the node follows that entry after all earlier ones. What the node lacks may
//! come with the next heartbeat of the leader only. So it does not wait for that where security is
//! off by what it knows and by what most voters say: no entry that is missing closes it then.
//!
//! A node that cannot reach most voters goes on with what it knows, after a while. Until it has
//! caught up, it also asks whether one of the members that it reaches knows of security.

use crate::Feature;
use crate::member::error::ClusterError;
use crate::member::member_node::{Inner, MemberNode};
use crate::member::questions::question::{Answer, Question};
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_metadata::state::{Member, Metadata};
use ombak_runtime::{RuntimeExt, within};
use ombak_security::{NAMESPACE, Roles, STATUS_KEY};
use ombak_types::NodeId;
use std::future::Future;
use std::time::Duration;

/// What a node knows of the decisions before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaughtUp {
    /// Those about security are in force here, and usually all others, too.
    Entirely,
    /// Some may be missing.
    NotYet {
        /// Whether another member says that security is on.
        is_secured_elsewhere: bool,
    },
}

impl MemberNode {
    /// Waits until this node follows what was decided about security before it started, for at most
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
            if self.most_say_it_is_off().await {
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

    /// Whether security is off by the state of this node, and most voters say the same. Its own
    /// vote does not count: its log may have what it does not follow yet.
    async fn most_say_it_is_off(&self) -> bool {
        let state = self.followed.get().metadata;
        if is_secured(&state) {
            return false;
        }
        let (voters, mut are_off) = (self.metadata_node().voters(), 0);
        let mut answers = self.ask_whether_secured(&state, |member| voters.contains(&member.log));
        while are_off * 2 <= voters.len() {
            match answers.next().await {
                Some(Some(false)) => are_off += 1,
                Some(None) => {}
                Some(Some(true)) | None => return false,
            }
        }
        true
    }

    /// Whether a member that this node reaches says that security is on.
    async fn is_secured_elsewhere(&self) -> bool {
        let state = self.followed.get().metadata;
        let mut answers = self.ask_whether_secured(&state, |_| true);
        while let Some(answer) = answers.next().await {
            if answer == Some(true) {
                return true;
            }
        }
        false
    }

    /// Asks other members whether security is on. The answers come in any order; `None` is one that
    /// did not come.
    fn ask_whether_secured<'a>(
        &'a self,
        state: &Metadata,
        is_asked: impl Fn(&Member) -> bool,
    ) -> FuturesUnordered<impl Future<Output = Option<bool>> + 'a> {
        let deadline = self.question_deadline();
        let understands = |node: NodeId| self.node.transport().shares(node, Feature::SECURITY.capability());
        let others = state.members().iter().filter(|(node, member)| **node != self.id() && is_asked(member));
        let asked = others.map(|(node, _)| *node).filter(|node| understands(*node));
        let ask = |node| async move {
            match self.ask(node, &Question::IsSecured, deadline).await {
                Ok(Answer::IsSecured { is_secured }) => Some(is_secured),
                _ => None,
            }
        };
        asked.map(ask).collect()
    }
}

/// Says whether security is on. A node whose log has more than it follows cannot say that it is
/// off: the decision that it is on may be there.
pub(in crate::member) fn say_whether_secured(inner: &Inner) -> Result<Answer, ClusterError> {
    let (node, state) = (inner.metadata_node(), inner.followed.get());
    let is_secured = is_secured(&state.metadata);
    if !is_secured && node.progress().index > state.index {
        return Err(ClusterError::refused("this node does not follow all of its log yet"));
    }
    Ok(Answer::IsSecured { is_secured })
}

/// Whether security is on in a state of the metadata.
fn is_secured(metadata: &Metadata) -> bool {
    let status = metadata.record(NAMESPACE, STATUS_KEY.as_bytes());
    let status = status.map(|record| (STATUS_KEY.as_bytes(), &*record.value));
    Roles::from_records(status).0.is_enabled()
}
