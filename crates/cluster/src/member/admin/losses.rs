//! What a forced removal would destroy, as far as the members that stay can tell.
//!
//! A member that is removed by force hands over nothing. Nothing is lost if the other replicas have
//! everything: a replica that answers, is full, and is owed nothing by a member that is lost. What
//! else the lost members had may be gone for ever, so the operator is told how much that may be,
//! and has to say that it is accepted.
//!
//! What it is not: it does not know what a lost member wrote in its last moments. What a member
//! told about itself last (`ombak_failure_detection::SoftState`) is up to two seconds old.

use crate::member::ground::Ground;
use crate::member::questions::question::{Answer, Question};
use crate::member::questions::transfers::MemberTransfers;
use crate::member::questions::unsettled_counts::UnsettledCounts;
use crate::member::ring_change::staged::View;
use futures_util::future::join_all;
use ombak_failure_detection::{ClassSet, SoftState};
use ombak_ring::placement::Placement;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// What the removals of a plan would destroy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The partitions, by the n_val of their buckets, of which no member that stays is known to
    /// have everything.
    pub partitions: BTreeMap<u32, Vec<u32>>,
    /// The number of partitions of the ring.
    pub ring_size: u32,
    /// The names of members that stay, may have what is missing, and do not answer.
    pub silent: Vec<String>,
    /// Bytes that removed members held for others, about, by the name of the removed member.
    pub held_for_others: BTreeMap<String, u64>,
    /// How many partitions of removed members may hold something for others, and were not looked at
    /// since the start of the member, by its name.
    pub may_hold_for_others: BTreeMap<String, u64>,
    /// How many keys members that stay cannot read, by the name of the member. The removed members
    /// may have had them.
    pub unreadable: BTreeMap<String, u64>,
    /// The names of removed members of which nobody here has heard what they owed and held. It may
    /// be more than what is known.
    pub untold: Vec<String>,
}

/// What is known of one member.
#[derive(Clone, Debug, Default)]
pub(in crate::member) struct Replicas {
    /// The classes that may lack something.
    filling: Option<BTreeSet<(u32, u32)>>,
    /// The classes in which others missed writes of this member.
    owed: BTreeMap<NodeId, Missing>,
    /// Whether it may owe more than is listed.
    owes_more: bool,
    /// The bytes of copies that it holds for others.
    held_for_others: u64,
    /// The partitions that may hold such copies, if it has found none since its start.
    partitions_not_looked_at: u64,
    unreadable_keys: u64,
}

/// The classes in which a node lacks something.
#[derive(Clone, Debug)]
enum Missing {
    /// These, as the partition and the n_val.
    In(BTreeSet<(u32, u32)>),
    /// Possibly all.
    Anywhere,
}

impl Losses {
    /// Whether something may be lost.
    pub fn is_any(&self) -> bool {
        !self.partitions.is_empty()
            || !self.held_for_others.is_empty()
            || !self.may_hold_for_others.is_empty()
            || !self.unreadable.is_empty()
    }

    /// The number of partitions of which no other full replica is known, whatever the n_val.
    pub fn partition_count(&self) -> usize {
        self.partitions.values().flatten().collect::<BTreeSet<_>>().len()
    }

    /// The words for the operator; empty if nothing is lost, as far as is known of all members.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let quoted = |names: &[String]| names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
        if !self.partitions.is_empty() {
            let ns: Vec<String> = self.partitions.keys().map(u32::to_string).collect();
            lines.push(format!(
                "{} of {} partitions have no other full replica (n_val {})",
                self.partition_count(),
                self.ring_size,
                ns.join(", ")
            ));
        }
        if !self.silent.is_empty() {
            lines.push(format!("members that may have them do not answer: {}", quoted(&self.silent)));
        }
        for (member, bytes) in &self.held_for_others {
            lines.push(format!("'{member}' held about {} for other members", counted(*bytes, "byte")));
        }
        for (member, partitions) in &self.may_hold_for_others {
            let partitions = counted(*partitions, "partition");
            lines.push(format!("'{member}' has not looked yet whether {partitions} hold copies for other members"));
        }
        for (member, keys) in &self.unreadable {
            lines.push(format!("'{member}' cannot read {}", counted(*keys, "key")));
        }
        if !self.untold.is_empty() {
            lines.push(format!("what these had not brought to others is not known: {}", quoted(&self.untold)));
        }
        let title = match self.is_any() {
            true => "WARNING: These changes destroy data, as far as is known:",
            false if lines.is_empty() => return String::new(),
            false => "NOTE: These changes may destroy data that this node has heard nothing of:",
        };
        format!("{title}\n  * {}", lines.join("\n  * "))
    }

    /// What is lost of the replicas of a placement when members are removed.
    pub(in crate::member) fn of_replicas(
        placement: &Placement,
        ns: &BTreeSet<u32>,
        removed: &BTreeSet<NodeId>,
        known: &BTreeMap<NodeId, Replicas>,
    ) -> BTreeMap<u32, Vec<u32>> {
        let mut partitions: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for home in placement.homes() {
            for n in ns {
                let class = (home.home(), *n);
                let owes = |node: NodeId| {
                    let mut lost = removed.iter().filter_map(|lost| known.get(lost));
                    lost.any(|lost| lost.may_owe(node, class))
                };
                let has_all = |node: &NodeId| {
                    let is_full = known.get(node).and_then(|node| node.filling.as_ref());
                    is_full.is_some_and(|filling| !filling.contains(&class)) && !owes(*node)
                };
                // The set in force has everything. A former one may have more than a member that
                // has lost its store since the flip.
                let counts = home.primaries(*n).iter().any(|node| removed.contains(node));
                let stays = |node: &&NodeId| !removed.contains(*node);
                if counts && !home.replica_set(*n).iter().filter(stays).any(has_all) {
                    partitions.entry(*n).or_default().push(home.home());
                }
            }
        }
        partitions
    }
}

impl Missing {
    fn may_include(&self, class: (u32, u32)) -> bool {
        match self {
            Self::In(classes) => classes.contains(&class),
            Self::Anywhere => true,
        }
    }
}

impl Replicas {
    fn may_owe(&self, node: NodeId, class: (u32, u32)) -> bool {
        self.owes_more || self.owed.get(&node).is_some_and(|missing| missing.may_include(class))
    }

    /// What a member says that answers. A list that is too long for an answer leaves open which
    /// classes are meant.
    fn answered(transfers: &MemberTransfers, counts: UnsettledCounts) -> Self {
        let filling = transfers.filling.iter().map(|class| (class.partition, class.n_val)).collect();
        let is_whole = transfers.filling.len() as u64 == transfers.filling_classes;
        let mut owed: BTreeMap<NodeId, Missing> = BTreeMap::new();
        for missed in &transfers.owed {
            let of_peer = owed.entry(missed.node).or_insert_with(|| Missing::In(BTreeSet::new()));
            if let Missing::In(classes) = of_peer {
                classes.insert((missed.partition, missed.n_val));
            }
        }
        Self {
            filling: is_whole.then_some(filling),
            owed,
            owes_more: (transfers.owed.len() as u64) < transfers.owed_marks,
            held_for_others: transfers.hinted_bytes,
            partitions_not_looked_at: if transfers.hinted_bytes == 0 { counts.partitions_with_hints } else { 0 },
            unreadable_keys: counts.unreadable_keys,
        }
    }

    /// What a member that does not answer told last.
    fn told(state: &SoftState) -> Self {
        let missing = |classes: &ClassSet| match classes {
            ClassSet::All => Missing::Anywhere,
            ClassSet::Listed(classes) => Missing::In(classes.iter().map(|(home, n)| (*home, u32::from(*n))).collect()),
        };
        Self {
            filling: None,
            owed: state.owed.iter().map(|(peer, classes)| (*peer, missing(classes))).collect(),
            owes_more: false,
            held_for_others: state.foreign_bytes.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            partitions_not_looked_at: 0,
            unreadable_keys: 0,
        }
    }
}

/// What would be lost if these members were removed by force.
pub(in crate::member) async fn losses(ground: &Ground, view: &View, removed: &BTreeSet<NodeId>) -> Losses {
    if removed.is_empty() {
        return Losses::default();
    }
    let members: Vec<NodeId> = view.members.keys().copied().collect();
    let answers = join_all(members.iter().map(|member| ask_replicas(ground, *member))).await;
    let mut known: BTreeMap<NodeId, Replicas> =
        members.iter().zip(answers).filter_map(|(member, answer)| Some((*member, answer?))).collect();
    let mut untold = Vec::new();
    for lost in removed {
        if known.contains_key(lost) {
            continue;
        }
        match ground.told_by(*lost) {
            Some(state) => drop(known.insert(*lost, Replicas::told(&state))),
            None => untold.push(view.name(*lost)),
        }
    }
    let ns = ground.kv().buckets().snapshot().all_n_vals();
    let partitions = Losses::of_replicas(&view.placement, &ns, removed, &known);
    let lacking = partitions.iter().flat_map(|(n, homes)| homes.iter().map(|home| (*n, *home)));
    let replicas: BTreeSet<NodeId> =
        lacking.flat_map(|(n, home)| view.placement.home(home).primaries(n).to_vec()).collect();
    let is_silent = |node: &&NodeId| view.members.contains_key(*node) && !known.contains_key(*node);
    let of = |number: fn(&Replicas) -> u64, is_lost: bool| {
        let chosen = known.iter().filter(|(node, replicas)| removed.contains(*node) == is_lost && number(replicas) > 0);
        chosen.map(|(node, replicas)| (view.name(*node), number(replicas))).collect()
    };
    Losses {
        silent: replicas
            .iter()
            .filter(is_silent)
            .filter(|node| !removed.contains(*node))
            .map(|n| view.name(*n))
            .collect(),
        held_for_others: of(|replicas| replicas.held_for_others, true),
        may_hold_for_others: of(|replicas| replicas.partitions_not_looked_at, true),
        unreadable: of(|replicas| replicas.unreadable_keys, false),
        ring_size: view.placement.size().get(),
        partitions,
        untold,
    }
}

async fn ask_replicas(ground: &Ground, member: NodeId) -> Option<Replicas> {
    let deadline = ground.question_deadline();
    let Ok(Answer::Transfers(transfers)) = ground.ask(member, &Question::Transfers, deadline).await else {
        return None;
    };
    let Ok(Answer::Settled(counts)) = ground.ask(member, &Question::Settled, deadline).await else { return None };
    Some(Replicas::answered(&transfers, counts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_ring::{Ring, RingVersion};
    use std::sync::Arc;

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);
    const C: NodeId = NodeId::new(3);

    /// Homes 0, 3 and 6 are at A and B, 1 and 4 at B and C, and 2 and 5 at C and A. The last one,
    /// 7, is at B and A.
    fn placement() -> Placement {
        let owners: Vec<NodeId> = [A, B, C].into_iter().cycle().take(8).collect();
        Placement::of_ring(Arc::new(Ring::from_owners(&owners, RingVersion::first(1)).unwrap()))
    }

    fn full() -> Replicas {
        Replicas { filling: Some(BTreeSet::new()), ..Replicas::default() }
    }

    fn lost(removed: &[NodeId], known: &[(NodeId, Replicas)]) -> BTreeMap<u32, Vec<u32>> {
        let (removed, known) = (removed.iter().copied().collect(), known.iter().cloned().collect());
        Losses::of_replicas(&placement(), &BTreeSet::from([2]), &removed, &known)
    }

    #[test]
    fn nothing_is_lost_while_another_replica_has_everything() {
        assert_eq!(lost(&[A], &[(B, full()), (C, full())]), BTreeMap::new());
        assert_eq!(lost(&[A], &[(B, full())]), BTreeMap::from([(2, vec![2, 5])]), "C does not answer");
        assert_eq!(lost(&[A, B], &[(C, full())]), BTreeMap::from([(2, vec![0, 3, 6, 7])]));
    }

    #[test]
    fn a_replica_that_may_lack_something_does_not_count() {
        let filling = Replicas { filling: Some(BTreeSet::from([(3, 2), (4, 2), (6, 3)])), ..full() };
        assert_eq!(lost(&[A], &[(B, filling), (C, full())]), BTreeMap::from([(2, vec![3])]));
        let unknown = Replicas { filling: None, ..full() };
        assert_eq!(lost(&[A], &[(B, unknown), (C, full())]), BTreeMap::from([(2, vec![0, 3, 6, 7])]));
    }

    #[test]
    fn what_a_removed_member_owes_to_a_replica_is_missing_there() {
        let owes = |missing| Replicas { owed: BTreeMap::from([(B, missing)]), ..full() };
        let others = [(B, full()), (C, full())];
        let known = |lost: Replicas| [&[(A, lost)], &others[..]].concat();
        let some = Missing::In(BTreeSet::from([(6, 2), (1, 2)]));
        assert_eq!(lost(&[A], &known(owes(some.clone()))), BTreeMap::from([(2, vec![6])]));
        assert_eq!(lost(&[C], &known(owes(some))), BTreeMap::new(), "A stays, and hands it over");
        assert_eq!(lost(&[A], &known(owes(Missing::Anywhere))), BTreeMap::from([(2, vec![0, 3, 6, 7])]));
        let more = Replicas { owes_more: true, ..Replicas::default() };
        assert_eq!(lost(&[A], &known(more))[&2], [0, 2, 3, 5, 6, 7]);
    }

    #[test]
    fn the_operator_reads_what_is_destroyed() {
        assert_eq!(Losses::default().text(), "");
        let untold = Losses { untold: vec!["a@h".into()], ..Losses::default() };
        assert!(!untold.is_any(), "nobody is asked for a word because of what is not known");
        let text = "NOTE: These changes may destroy data that this node has heard nothing of:
  * what these had not brought to others is not known: 'a@h'";
        assert_eq!(untold.text(), text);
        let losses = Losses {
            partitions: BTreeMap::from([(1, vec![3]), (2, vec![3, 4])]),
            ring_size: 64,
            silent: vec!["b@h".into()],
            held_for_others: BTreeMap::from([("a@h".into(), 1)]),
            may_hold_for_others: BTreeMap::from([("d@h".into(), 3)]),
            unreadable: BTreeMap::from([("c@h".into(), 2)]),
            untold: vec!["a@h".into()],
        };
        let text = "WARNING: These changes destroy data, as far as is known:
  * 2 of 64 partitions have no other full replica (n_val 1, 2)
  * members that may have them do not answer: 'b@h'
  * 'a@h' held about 1 byte for other members
  * 'd@h' has not looked yet whether 3 partitions hold copies for other members
  * 'c@h' cannot read 2 keys
  * what these had not brought to others is not known: 'a@h'";
        assert_eq!(losses.text(), text);
    }
}
