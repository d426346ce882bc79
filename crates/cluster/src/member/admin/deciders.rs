//! Who takes part in decisions about the cluster, as operators see it.
//!
//! One, three or five members vote. While only one does, its loss ends all changes of the cluster:
//! no member can be replaced any more, and none can take its place under its name.

use crate::member::member_node::MemberNode;
use ombak_metadata::state::{MemberStatus, Metadata, RaftId};

/// Who takes part in decisions about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deciders {
    /// The names of the members that vote.
    pub voters: Vec<String>,
    /// The names of the members that are to stay, and do not vote.
    pub others: Vec<String>,
    /// How many members the cluster has when all that are on their way have come or gone.
    pub members_in_the_end: usize,
}

impl MemberNode {
    /// Who takes part in decisions, as far as this node knows.
    pub fn deciders(&self) -> Deciders {
        let node = self.inner.metadata_node();
        deciders(&node.metadata(), &node.voters())
    }
}

/// Who takes part in decisions if these logs vote.
pub(super) fn deciders(metadata: &Metadata, votes: &[RaftId]) -> Deciders {
    let mut deciders = Deciders::default();
    for member in metadata.members().values() {
        let name = member.name.clone();
        match votes.contains(&member.log) {
            true => deciders.voters.push(name),
            false if member.status == MemberStatus::Valid => deciders.others.push(name),
            false => {}
        }
        let stays = matches!(member.status, MemberStatus::Valid | MemberStatus::Joining);
        deciders.members_in_the_end += usize::from(stays);
    }
    deciders
}
