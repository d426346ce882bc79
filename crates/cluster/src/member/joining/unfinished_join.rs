//! A join that the other cluster may have decided without this node's knowledge.
//!
//! A cluster changes its ring only when each node that joins follows it. So a cluster that has
//! added a node which is alone would wait for it forever. Before a node asks to be added, it notes
//! durably through which member it asks. The note stays until the node follows the other cluster,
//! or until that cluster has decided that the node does not join. As long as the note is there and
//! the node is alone, it withdraws, also after its next start.
//!
//! A request to be added may be under way longer than the node waits for its answer. So that the
//! cluster does not know the node counts only after such a request has ended, while a withdrawal
//! that was decided counts at once: the log that had asked is never added again.

use super::state::Joining;
use crate::member::error::ClusterError;
use ombak_metadata::ProposeError;
use ombak_metadata::state::{Command, Refusal};
use ombak_node_files::UnfinishedJoin;
use ombak_runtime::RuntimeExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// The longest pause before a node tries to withdraw once more.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What became of a withdrawal.
enum Withdrawal {
    /// There is no join any more that is unfinished.
    Finished,
    /// It has to be tried again.
    Open(String),
}

impl Joining {
    /// Notes that the cluster of a member may add this node from now on.
    pub(in crate::member) async fn note_join(&self, join: UnfinishedJoin) -> Result<(), ClusterError> {
        self.on_directory(move |kv| kv.directory().note_join(&join)).await.map_err(|why| {
            ClusterError::refused(format!("Failed: this node cannot note durably which cluster it joins: {why}"))
        })
    }

    /// Forgets what [`Self::note_join`] has noted. Without success the node withdraws from that
    /// cluster later, if it is not a member there.
    pub(in crate::member) async fn forget_join(&self) {
        if let Err(why) = self.on_directory(|kv| kv.directory().forget_join()).await {
            warn!(why, "the note of a join that is finished stays");
        }
    }

    /// Withdraws from the cluster that may know this node as one that joins, if there is one, until
    /// that is decided.
    pub(in crate::member) fn start_withdrawing(self: &Arc<Self>) {
        if self.own_directory.older().is_some() || self.is_withdrawing.swap(true, Ordering::SeqCst) {
            return;
        }
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move { this.withdraw().await }));
    }

    async fn withdraw(self: &Arc<Self>) {
        // No request to be added is under way any more then.
        let requests_end_at = self.command_deadline();
        let mut pause = self.timing.metadata.maintenance;
        let mut known_reason = String::new();
        while !self.is_stopping() {
            let moving = self.moving.lock().await;
            let outcome = self.try_to_withdraw(requests_end_at).await;
            let Withdrawal::Open(reason) = outcome else {
                // A join that ends without an answer finds this under the same lock.
                return self.is_withdrawing.store(false, Ordering::SeqCst);
            };
            drop(moving);
            if reason != known_reason {
                warn!(reason, "another cluster may know this node as one that joins; the withdrawal is tried again");
                known_reason = reason;
            }
            self.runtime.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Withdraws from another cluster than the one of `seed`, before the node joins that one. If it
    /// does not succeed, an operator has to do it there.
    pub(in crate::member) async fn withdraw_before_joining(self: &Arc<Self>, seed: UnfinishedJoin) {
        let found = self.on_directory(|kv| kv.directory().read_unfinished_join()).await;
        let Ok(Some(before)) = found else { return };
        if before == seed {
            return;
        }
        if let Withdrawal::Open(why) = self.try_to_withdraw(self.runtime.now()).await {
            let through = before.address;
            warn!(
                %through, why,
                "another cluster may know this node as one that joins; 'ombak admin cluster leave' there ends that"
            );
        }
    }

    /// The caller holds `moving`.
    async fn try_to_withdraw(self: &Arc<Self>, requests_end_at: Instant) -> Withdrawal {
        let join = match self.on_directory(|kv| kv.directory().read_unfinished_join()).await {
            Ok(Some(join)) => join,
            Ok(None) => return Withdrawal::Finished,
            Err(why) => return Withdrawal::Open(why),
        };
        let is_member_there = || self.metadata_node().metadata().members().contains_key(&join.seed);
        if is_member_there() {
            self.forget_join().await;
            return Withdrawal::Finished;
        }
        self.node.transport().set_address(join.seed, join.address);
        let command = Command::WithdrawMember { node: self.id() };
        let proposed = self.metadata_node().propose_through(join.seed, command, self.question_deadline()).await;
        if !is_member_there() {
            self.node.transport().forget_address(join.seed);
        }
        let through = join.address;
        match proposed {
            Ok(_) => info!(%through, "this node has withdrawn from a cluster that it had begun to join"),
            Err(ProposeError::Refused(Refusal::NoSuchMember(_))) if self.runtime.now() >= requests_end_at => {}
            Err(ProposeError::Refused(Refusal::WrongStatus(status))) => {
                error!(
                    %through,
                    "a cluster has made this node a full member, and this node does not follow it; remove the node \
                     there ('ombak admin cluster force-remove')"
                );
                return Withdrawal::Open(format!("its status is {status} in the cluster of {through}"));
            }
            Err(why) => return Withdrawal::Open(format!("through {through}: {why}")),
        }
        self.forget_join().await;
        Withdrawal::Finished
    }
}
