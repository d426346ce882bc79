//! How a node learns that it is no member any more, and how it ends then.
//!
//! A removed node is no part of the metadata's group any more, so it may never get the entry that
//! says so. It therefore asks the members itself, one at a time.

use super::state::Following;
use crate::member::questions::question::{Answer, Question};
use ombak_metadata::state::{MemberStatus, Metadata};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::info;

impl Following {
    /// Asks one other member, another one each turn, whether this node is a member.
    pub async fn look_for_removal(self: &Arc<Self>, turn: usize) {
        let now = self.followed.get();
        let status = now.metadata.members().get(&self.id()).map(|member| member.status);
        let others = self.others_in(&now.metadata);
        // A node that joins looks by itself, because it begins a cluster of its own.
        if others.is_empty() || status.is_none_or(|status| status == MemberStatus::Joining) {
            return;
        }
        let other = &others[turn % others.len()];
        let question = Question::IsMember { node: self.id() };
        match self.ask(other.id, &question, self.question_deadline()).await {
            Ok(Answer::IsMember { is_member: false, index, lineage }) => {
                let is_same = lineage == now.metadata.lineage().map(|lineage| lineage.id);
                // An earlier state may not have this node yet.
                if is_same && index >= now.index {
                    self.own_directory.set_removed(format!("'{}' says so", other.name));
                }
            }
            Ok(_) => {}
            // It may let this node in no more.
            Err(_) => self.own_directory.ask_whether_removed(other.address).await,
        }
    }

    /// Notes whether this node is about to leave.
    pub fn note_leave(&self, state: &Metadata) {
        if let Some(me) = state.members().get(&self.id()) {
            // A node that is alone is exiting while it joins another cluster.
            let is_leaving = me.status == MemberStatus::Exiting && state.members().len() > 1;
            self.is_leaving.store(is_leaving, Ordering::SeqCst);
        }
    }

    /// Whether this node was removed because it has given everything away.
    pub fn has_left_in_order(&self) -> bool {
        self.own_directory.is_removed() && self.is_leaving.load(Ordering::SeqCst)
    }

    /// Ends the leave of a node that takes no part any more.
    pub fn end_leave(&self) {
        if self.has_left_in_order() {
            info!("this node has left its cluster, and ends");
            self.has_left.set(true);
        }
    }
}
