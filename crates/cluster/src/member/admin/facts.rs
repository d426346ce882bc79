//! What operators see of a cluster.

use crate::member::member_node::MemberNode;
use crate::member::questions::ring_change_facts::RingChangeFacts;
use ombak_metadata::state::MemberStatus;
use ombak_ring::placement::{HomePlacement, Placement};
use ombak_ring::{Location, Ring, RingVersion};
use ombak_types::NodeId;

/// A member, as operators see it.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberFacts {
    /// Its identity.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// Where other nodes reach it.
    pub address: String,
    /// Where it is in its life.
    pub status: MemberStatus,
    /// Whether it answers.
    pub is_up: bool,
    /// Why it takes no part, if it does not: its directory is an older copy.
    pub older: Option<String>,
    /// The version of the ring that it follows, if it answers.
    pub ring: Option<RingVersion>,
    /// Where it is, if an operator said so.
    pub location: Option<Location>,
    /// The number of partitions that it owns. While the ring changes, those that have not come to
    /// their new owners yet count for the old ones.
    pub partitions: u32,
    /// The number of partitions that it is to own after the change that is under way, or after the
    /// plan that was shown last; `None` when there is neither.
    pub partitions_planned: Option<u32>,
}

/// A cluster, as operators see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterFacts {
    /// The number of partitions.
    pub ring_size: u32,
    /// The version of the ring that was decided last, as far as this node knows.
    pub ring: RingVersion,
    /// The name of the member that carries out changes, if it is known.
    pub claimant: Option<String>,
    /// Whether the cluster takes no writes because it changes.
    pub is_closed: bool,
    /// How far the change of the ring is, if there is one.
    pub ring_change: Option<RingChangeFacts>,
    /// The members, by their identity.
    pub members: Vec<MemberFacts>,
    /// Why the node that was asked is no member any more, in words for the operator. The rest is
    /// then what it knew before.
    pub removed: Option<String>,
}

impl MemberNode {
    /// How far the change of the ring is; `None` if there is none.
    pub async fn ring_change(&self) -> Option<RingChangeFacts> {
        self.inner.ring_change.now().await
    }

    /// The cluster. All members are asked whether they are up.
    pub async fn facts(&self) -> ClusterFacts {
        let inner = &self.inner;
        let node = inner.metadata_node();
        node.catch_up(inner.question_deadline()).await;
        let metadata = node.metadata();
        let plan = crate::member::ring_change::staged::shown_plan(&metadata);
        let changing = metadata.placement().filter(|placement| !placement.is_settled());
        let rings = inner.rings(inner.question_deadline()).await;
        let kv_ring = inner.kv().ring();
        let ring = metadata.ring().cloned().unwrap_or(kv_ring);
        let member = |(node, member): (&NodeId, &ombak_metadata::state::Member)| {
            let followed = rings.iter().find(|(of, _)| of == node).and_then(|(_, ring)| *ring);
            let older = match *node == inner.id() {
                true => inner.own_directory.older().filter(|_| !inner.own_directory.is_removed()),
                false => inner.admission.starts.older(*node),
            };
            MemberFacts {
                older: older.filter(|_| followed.is_none()),
                node: *node,
                name: member.name.clone(),
                address: member.peer_address.clone(),
                status: member.status,
                is_up: followed.is_some(),
                ring: followed,
                location: member.location,
                partitions: changing.map_or_else(|| owned(&ring, *node), |placement| owned_now(placement, *node)),
                partitions_planned: match (changing, &plan) {
                    (Some(placement), _) => Some(owned(placement.goal(), *node)),
                    (None, plan) => plan.as_ref().map(|plan| owned(&plan.ring, *node)),
                },
            }
        };
        ClusterFacts {
            ring_size: ring.size().get(),
            ring: ring.version(),
            claimant: inner.metadata_node().leader().map(|node| inner.name_of(node)),
            is_closed: metadata.is_closed(),
            ring_change: inner.ring_change.change_in(&metadata).await,
            members: metadata.members().iter().map(member).collect(),
            removed: self.removed(),
        }
    }

    /// Why this node is no member of its cluster any more, in words for the operator; `None` if it
    /// is one.
    pub fn removed(&self) -> Option<String> {
        let directory = &self.inner.own_directory;
        directory.older().filter(|_| directory.is_removed()).map(|why| directory.text(&why))
    }
}

/// How many partitions a node owns by the rings that are in force.
fn owned_now(placement: &Placement, node: NodeId) -> u32 {
    let is_owner = |home: &HomePlacement<'_>| home.in_force().id(home.in_force().owner(home.home())) == node;
    placement.homes().filter(is_owner).count() as u32
}

fn owned(ring: &Ring, node: NodeId) -> u32 {
    ring.node(node).map_or(0, |node| ring.partitions_owned(node) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_ring::placement::{Step, StepOf};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    #[test]
    fn a_partition_belongs_to_its_old_owner_until_it_has_come_to_the_new_one() {
        let (old, new) = (NodeId::new(1), NodeId::new(2));
        let first = RingVersion::first(1);
        let of = |node, version| Arc::new(Ring::from_owners(&[node; 8], version).unwrap());
        let placement = Placement::of_ring(of(old, first));
        let placement = placement.with_goal(of(new, first.next()), &BTreeSet::from([1])).unwrap();
        assert_eq!((owned_now(&placement, old), owned_now(&placement, new)), (8, 0));
        let step = |placement: &Placement, step| {
            let home = placement.home(3);
            placement.after(&[StepOf { home: 3, seen: home.version().number, step }]).unwrap()
        };
        let placement = step(&placement, Step::Begin);
        assert_eq!((owned_now(&placement, old), owned_now(&placement, new)), (8, 0));
        let placement = step(&placement, Step::Flip);
        assert_eq!((owned_now(&placement, old), owned_now(&placement, new)), (7, 1));
    }
}
