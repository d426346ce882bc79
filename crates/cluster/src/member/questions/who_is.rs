//! Which member has the name or the address of a node that asks.

use super::question::{Answer, SameMember};
use ombak_metadata::state::Metadata;
use ombak_types::NodeId;

/// The member of a cluster that has a name or an address, if another node than `peer` has.
fn same_member(known: &Metadata, peer: NodeId, name: &str, address: &str) -> Option<SameMember> {
    let mut others = known.members().iter().filter(|(node, _)| **node != peer);
    let by_name = others.clone().find(|(_, member)| member.name == name);
    let (node, member) = by_name.or_else(|| others.find(|(_, member)| member.peer_address == address))?;
    Some(SameMember { node: *node, name: member.name.clone(), address: member.peer_address.clone() })
}

/// The answer to the question who has a name or an address.
pub(in crate::member) fn who_is(known: &Metadata, peer: NodeId, name: &str, address: &str) -> Answer {
    Answer::WhoIs { members: known.members().len() as u64, same: same_member(known, peer, name, address) }
}
