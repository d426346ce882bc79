//! Why a change is refused, in Riak's words (docs/riak/semantics.md §16).

use ombak_types::NodeId;

/// Why a change cannot be staged, planned or carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The node that joins belongs to a cluster of several nodes, or to this one.
    AlreadyInCluster,
    /// A node was told to join itself.
    JoinsItself,
    /// The node that joins has a ring of another size.
    OtherRingSize(NodeId),
    /// The node is not a member.
    NotMember(NodeId),
    /// The node is the only member.
    OnlyMember(NodeId),
    /// The node leaves already.
    AlreadyLeaving(NodeId),
    /// A node that is down cannot hand over what it owns.
    DownCannotLeave(NodeId),
    /// Only a node that joins can replace another.
    NoReplacement(NodeId),
    /// The node that joins replaces another node already.
    AlreadyReplaces(NodeId),
    /// The node is about to replace another, so its location cannot be set yet.
    IsReplacement(NodeId),
    /// The node carries out the changes of the cluster.
    IsClaimant(NodeId),
    /// The node is up.
    IsUp(NodeId),
    /// There are more staged changes than can be kept.
    TooMany,
    /// Nothing is staged.
    NothingStaged,
    /// Nobody would be left to own the partitions.
    NobodyLeft,
    /// Some member does not know the ring yet.
    NotConverged,
}

impl Refusal {
    /// The words for the operator.
    pub fn text(&self, name_of: impl Fn(NodeId) -> String) -> String {
        match *self {
            Self::AlreadyInCluster => "Failed: This node is already a member of a cluster".into(),
            Self::JoinsItself => "Failed: This node cannot join itself in a cluster".into(),
            Self::OtherRingSize(node) => format!("Failed: {} has a different ring_creation_size", name_of(node)),
            Self::NotMember(node) => format!("Failed: '{}' is not a member of the cluster.", name_of(node)),
            Self::OnlyMember(node) => format!("Failed: '{}' is the only member.", name_of(node)),
            Self::AlreadyLeaving(node) => {
                format!("'{}' is already in the process of leaving the cluster.", name_of(node))
            }
            Self::DownCannotLeave(node) => format!(
                "Failed: '{}' is down and cannot hand over its partitions. Start it, or use force-remove or \
                 force-replace.",
                name_of(node)
            ),
            Self::NoReplacement(node) => format!(
                "Failed: '{}' is not a valid replacement candidate.\nOnly newly joining nodes can be used for \
                 replacement.",
                name_of(node)
            ),
            Self::AlreadyReplaces(node) => {
                format!("Failed: '{}' is already staged to replace another node.", name_of(node))
            }
            Self::IsReplacement(node) => format!(
                "Failed: '{}' is staged to replace another node. Set its location when it is a member.",
                name_of(node)
            ),
            Self::IsClaimant(node) => {
                format!("Failed: '{}' is the claimant (see: ombak admin ring-status).", name_of(node))
            }
            Self::IsUp(node) => format!("Failed: {} is up", name_of(node)),
            Self::TooMany => "Failed: too many staged changes. Commit or clear them first.".into(),
            Self::NothingStaged => "There are no staged changes".into(),
            Self::NobodyLeft => "Failed: no member would be left to own the partitions.".into(),
            Self::NotConverged => "Cannot plan until cluster state has converged.\nCheck 'Ring Ready' in 'ombak admin \
                                   ring-status'"
                .into(),
        }
    }
}
