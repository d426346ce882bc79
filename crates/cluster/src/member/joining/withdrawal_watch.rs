//! How a node that joins learns that it does not join after all.

use super::state::Joining;
use crate::member::ground::Followed;
use crate::member::questions::question::{Answer, Question};
use ombak_metadata::state::MemberStatus;
use ombak_runtime::RuntimeExt;
use std::sync::Arc;
use tracing::error;

impl Joining {
    /// A node that joins is no voter, so it may be left out before it has got the entry that says
    /// so. Until the commit it therefore also asks the members whether it still is one of them.
    pub(super) async fn watch_withdrawal(self: Arc<Self>) {
        let is_joining = |now: &Followed| {
            now.metadata.members().get(&self.id()).is_some_and(|member| member.status == MemberStatus::Joining)
        };
        loop {
            self.runtime.sleep(self.timing.metadata.maintenance).await;
            let now = self.followed.get();
            if self.is_stopping() || !is_joining(&now) {
                return;
            }
            let question = Question::IsMember { node: self.id() };
            let own_lineage = now.metadata.lineage().map(|lineage| lineage.id);
            let others: Vec<_> = now.metadata.members().keys().filter(|node| **node != self.id()).copied().collect();
            let mut elsewhere = 0;
            for other in &others {
                let answer = self.ask(*other, &question, self.question_deadline()).await;
                let Ok(Answer::IsMember { is_member: false, index, lineage }) = answer else { continue };
                if lineage.is_some() && lineage != own_lineage {
                    // It has left the cluster. If all have, there is none to join any more.
                    elsewhere += 1;
                    if elsewhere < others.len() {
                        continue;
                    }
                } else if index < now.index {
                    continue;
                }
                // A later state without this node, after one with it.
                if !is_joining(&self.followed.get()) {
                    continue;
                }
                match self.begin_alone().await {
                    Ok(()) => return,
                    Err(why) => {
                        error!(%why, "this node does not join after all, and could not begin a cluster of its own")
                    }
                }
            }
        }
    }
}
