//! The resource of the partitions and their owners, from which commands tell who has what.

use super::transfer_text::Members;
use ombak_cluster::{MemberTransfers, OfMember};
use ombak_ring::Ring;
use serde_json::{Value, json};

/// The partitions of each member.
///
/// `primary` are those that it owns, `secondary` those of which it holds copies for others. Of a
/// member that does not answer, what it owns is `stopped`. `asked` is the node that was asked.
pub(super) fn partitions(ring: &Ring, members: &Members, asked: &str) -> Value {
    json!({
        "ring_size": ring.size().get(),
        "node": asked,
        "members": members.iter().map(|of| member_json(ring, of)).collect::<Vec<_>>(),
        "text": "",
    })
}

fn member_json(ring: &Ring, of: &OfMember<MemberTransfers>) -> Value {
    let owned: Vec<u32> = (0..).zip(ring.owners()).filter(|(_, owner)| *owner == of.node).map(|(p, _)| p).collect();
    let (up, primary, stopped) = match of.answer {
        Ok(_) => (true, owned, Vec::new()),
        Err(_) => (false, Vec::new(), owned),
    };
    let hints = of.answer.iter().flat_map(|transfers| &transfers.hints);
    let secondary: Vec<u32> = hints.map(|hints| hints.partition).filter(|held| !primary.contains(held)).collect();
    json!({
        "node": of.node,
        "name": of.name,
        "up": up,
        "primary": primary,
        "secondary": secondary,
        "stopped": stopped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_cluster::PartitionHints;
    use ombak_ring::RingVersion;
    use ombak_types::NodeId;

    #[test]
    fn a_member_has_what_it_owns_and_what_it_holds_for_others() {
        let (a, b) = (NodeId::new(1), NodeId::new(2));
        let ring = Ring::from_owners(&[a, b, a, b, a, b, a, b], RingVersion::first(1)).unwrap();
        let hints = [1, 4].map(|partition| PartitionHints { partition, objects: 1, bytes: 1 }).into();
        let transfers = MemberTransfers { hints, ..MemberTransfers::default() };
        let up = member_json(&ring, &OfMember { node: a, name: "a@h".into(), answer: Ok(transfers) });
        assert_eq!((&up["primary"], &up["secondary"]), (&json!([0, 2, 4, 6]), &json!([1])));
        let down = OfMember::<MemberTransfers> { node: b, name: "b@h".into(), answer: Err("silent".into()) };
        let down = member_json(&ring, &down);
        assert_eq!((&down["primary"], &down["stopped"]), (&json!([]), &json!([1, 3, 5, 7])));
    }
}
