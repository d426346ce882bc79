//! What a member does from time to time for its directory (docs/design/replication.md §8).

use super::following::known_members::others;
use super::member_node::Inner;
use ombak_runtime::RuntimeExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a stop waits until the cluster has recorded the last milestone. Without a majority, the
/// one of the start stays.
const STOP_MAX: Duration = Duration::from_millis(500);

impl Inner {
    /// Looks after this node's directory until the node stops: asks members that were not reachable
    /// before, draws milestones, and takes the node out when its directory is an older copy.
    pub fn watch_directory(self: &Arc<Self>) {
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            if let Some(why) = this.own_directory.found().await {
                this.following.take_no_part(&why).await;
            }
        }));
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let mut next_milestone = this.runtime.now() + this.timing.milestone;
            for turn in 0usize.. {
                this.runtime.sleep(this.timing.metadata.maintenance).await;
                if this.is_stopping() || this.own_directory.older().is_some() {
                    return;
                }
                for member in others(&this.followed.get().metadata, this.id()) {
                    this.own_directory.may_talk(member.id).await;
                }
                this.following.look_for_removal(turn).await;
                this.save_capabilities().await;
                if this.runtime.now() >= next_milestone {
                    let deadline = this.command_deadline();
                    this.pass_milestone(deadline).await;
                    next_milestone = this.runtime.now() + this.timing.milestone;
                }
            }
        }));
    }

    /// Makes durable what this node has seen of the directories of other members.
    pub async fn save_seen(&self) {
        self.admission.starts.save(self.kv(), || self.followed.get().metadata).await;
    }

    async fn pass_milestone(&self, deadline: Instant) {
        self.own_directory.pass_milestone(|| self.metadata_node(), deadline).await;
    }

    /// A copy that was made before this stop shall be older than the directory. There may be no
    /// majority, or no time.
    pub async fn pass_milestone_at_stop(&self) {
        let metadata = self.followed.get().metadata;
        if metadata.members().len() > 1 && self.own_directory.older().is_none() && !self.is_stopping() {
            self.pass_milestone(self.runtime.now() + STOP_MAX).await;
        }
    }
}
