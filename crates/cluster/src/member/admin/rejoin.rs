//! The command by which a new node takes the place of the member whose directory was lost.

use crate::member::error::ClusterError;
use crate::member::member_node::MemberNode;
use crate::member::questions::question::SameMember;
use crate::member::ring_change::member_change::MemberChange;
use ombak_metadata::state::{Command, MemberStatus};
use std::net::SocketAddr;
use tracing::warn;

impl MemberNode {
    /// Stages that this node, which is new, takes the place of the member that has its name or its
    /// address, and whose directory is lost. Returns the name of that member. A plan and a commit
    /// make it effective. Without an address the peers of the configuration are asked.
    pub async fn rejoin(&self, address: Option<SocketAddr>) -> Result<String, ClusterError> {
        let inner = &self.inner;
        inner.check_takes_part()?;
        let (address, lost) = inner.joining.find_lost_self(address).await?;
        inner.joining.check_does_not_run(&lost).await?;
        self.join_as(address, lost.name == inner.me.name).await?;
        match self.stage_place_of(&lost).await {
            Ok(()) => Ok(lost.name),
            Err(why) => {
                let withdrawal = Command::WithdrawMember { node: inner.id() };
                if let Err(error) = inner.metadata_node().propose(withdrawal, inner.command_deadline()).await {
                    warn!(%error, "this node has joined, and could not take that back");
                }
                Err(why)
            }
        }
    }

    async fn stage_place_of(&self, lost: &SameMember) -> Result<(), ClusterError> {
        let node = lost.node.to_string();
        let status = self.inner.metadata_node().metadata().members().get(&lost.node).map(|member| member.status);
        if status != Some(MemberStatus::Down) {
            self.mark_down(&node).await?;
        }
        self.stage(&MemberChange::ForceReplace { node, with: self.inner.id().to_string() }).await.map(drop)
    }
}
