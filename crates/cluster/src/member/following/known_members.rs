//! What a state of the metadata says about the other members, for those that reach them.

use crate::node::NodeNames;
use crate::peer_table::{ExcludedNodes, Member};
use ombak_metadata::state::{self, MemberStatus, Metadata};
use ombak_types::NodeId;

/// The nodes in rings in use that the state excludes from some of the work.
pub(super) fn excluded(state: &Metadata) -> ExcludedNodes {
    let stands_in_for_nobody = |member: &state::Member| {
        matches!(member.status, MemberStatus::Joining | MemberStatus::Leaving | MemberStatus::Exiting)
    };
    let no_fallbacks = state.members().iter().filter(|(_, member)| stands_in_for_nobody(member));
    let marked_down = state.members().iter().filter(|(_, member)| member.status == MemberStatus::Down);
    let of_rings = state.placement().map(|placement| placement.nodes()).unwrap_or_default();
    ExcludedNodes {
        no_fallbacks: no_fallbacks.map(|(node, _)| *node).collect(),
        marked_down: marked_down.map(|(node, _)| *node).collect(),
        removed: of_rings.into_iter().filter(|node| state.was_removed(*node)).collect(),
    }
}

/// The id of the cluster that a node tells its peers: the lineage of the metadata. 0 while the node
/// is alone, and while it joins: until the commit it may leave again, and ask members that have
/// left.
pub(in crate::member) fn cluster_id(metadata: &Metadata, me: NodeId) -> u64 {
    let status = metadata.members().get(&me).map(|member| member.status);
    let is_member = status.is_some_and(|status| status != MemberStatus::Joining) && metadata.members().len() > 1;
    metadata.lineage().filter(|_| is_member).map_or(0, |lineage| lineage.id)
}

/// Remembers the names of the members for log lines about the nodes and their metadata logs.
pub(in crate::member) fn learn_names(names: &NodeNames, metadata: &Metadata) {
    for (node, member) in metadata.members() {
        names.learn(node.get(), &member.name);
        names.learn(member.log.get(), &member.name);
    }
}

/// The other members that can be reached at all. An address that is none is left out.
pub(in crate::member) fn others(metadata: &Metadata, me: NodeId) -> Vec<Member> {
    let others = metadata.members().iter().filter(|(node, _)| **node != me);
    let member = |(node, member): (&NodeId, &state::Member)| match member.peer_address.parse() {
        Ok(address) => Some(Member { id: *node, name: member.name.clone(), address }),
        Err(_) => {
            tracing::error!(member = member.name, address = member.peer_address, "a member has no usable address");
            None
        }
    };
    others.filter_map(member).collect()
}
