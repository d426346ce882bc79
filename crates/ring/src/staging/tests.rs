use super::*;
use crate::claim::Claim;
use crate::partition::RingSize;
use crate::ring::{Ring, RingVersion};
use ombak_types::NodeId;
use proptest::prelude::*;
use std::collections::BTreeSet;

const A: NodeId = NodeId::new(0xa);
const B: NodeId = NodeId::new(0xb);
const C: NodeId = NodeId::new(0xc);
const D: NodeId = NodeId::new(0xd);

fn name(node: NodeId) -> String {
    format!("n{:x}@h", node.get())
}

/// A cluster that was claimed for its members.
struct Cluster {
    ring: Ring,
    members: Members,
    claimant: Option<NodeId>,
    is_converged: bool,
}

impl Cluster {
    fn of(nodes: &[NodeId], size: u32) -> Self {
        let ids = nodes.iter().copied().collect();
        let claim = Claim::of_new_ring(RingSize::new(size).unwrap(), &ids, 4).unwrap();
        let ring = Ring::from_owners(&claim.owners, RingVersion::first(1)).unwrap();
        let members = nodes.iter().map(|node| (*node, MemberStatus::Valid)).collect();
        Self { ring, members, claimant: None, is_converged: true }
    }

    fn view(&self) -> ClusterView<'_> {
        let Self { ring, members, claimant, is_converged } = self;
        ClusterView { ring, members, claimant: *claimant, is_converged: *is_converged, target_n_val: 4 }
    }

    fn joiner(&self, node: NodeId) -> Joiner {
        Joiner { node, ring_size: self.ring.size(), is_alone: true }
    }

    fn staged(&self, changes: &[Change]) -> StagedChanges {
        let mut staged = StagedChanges::default();
        for change in changes {
            staged.stage(&self.view(), *change).unwrap();
        }
        staged
    }

    fn plan(&self, changes: &[Change]) -> Plan {
        plan(&self.view(), &self.staged(changes)).unwrap()
    }

    fn carry_out(&mut self, plan: &Plan) {
        self.ring = plan.ring.clone();
        self.members = plan.members.clone();
    }
}

fn join(node: NodeId) -> Change {
    Change::Join { node }
}

fn leave(node: NodeId) -> Change {
    Change::Leave { node }
}

fn never(_: &Plan) -> Result<(), ()> {
    Ok(())
}

#[test]
fn a_join_is_refused_in_riaks_words() {
    let cluster = Cluster::of(&[A, B], 64);
    let mut staged = StagedChanges::default();
    let mut said = |joiner| staged.join(&cluster.view(), joiner).unwrap_err().text(name);
    let other_size = Joiner { ring_size: RingSize::new(8).unwrap(), ..cluster.joiner(C) };
    assert_eq!(said(other_size), "Failed: nc@h has a different ring_creation_size");
    let in_cluster = "Failed: This node is already a member of a cluster";
    assert_eq!(said(Joiner { is_alone: false, ..cluster.joiner(C) }), in_cluster);
    assert_eq!(said(cluster.joiner(B)), in_cluster);
    assert_eq!(staged, StagedChanges::default());
    staged.join(&cluster.view(), cluster.joiner(C)).unwrap();
    staged.join(&cluster.view(), cluster.joiner(C)).unwrap();
    assert_eq!(staged.changes(), [join(C)], "asking twice is asking once");
}

#[test]
fn changes_that_make_no_sense_are_refused_in_riaks_words() {
    let mut cluster = Cluster::of(&[A, B, C], 64);
    cluster.claimant = Some(A);
    cluster.members.insert(B, MemberStatus::Leaving);
    let said = |cluster: &Cluster, earlier: &[Change], change| {
        cluster.staged(earlier).stage(&cluster.view(), change).unwrap_err().text(name)
    };
    let replace = |node, with| Change::Replace { node, with };
    let force = |node, with| Change::ForceReplace { node, with };
    let no_member = "Failed: 'nd@h' is not a member of the cluster.";
    for change in [leave(D), Change::ForceRemove { node: D }, replace(D, A), force(D, A)] {
        assert_eq!(said(&cluster, &[], change), no_member);
    }
    let leaving = "'nb@h' is already in the process of leaving the cluster.";
    assert_eq!(said(&cluster, &[], leave(B)), leaving);
    assert_eq!(said(&cluster, &[join(D)], replace(B, D)), leaving);
    let claimant = "Failed: 'na@h' is the claimant (see: ombak admin ring-status).";
    assert_eq!(said(&cluster, &[], Change::ForceRemove { node: A }), claimant);
    assert_eq!(said(&cluster, &[join(D)], force(A, D)), claimant);
    let no_candidate =
        "Failed: 'nd@h' is not a valid replacement candidate.\nOnly newly joining nodes can be used for replacement.";
    assert_eq!(said(&cluster, &[], replace(A, D)), no_candidate);
    assert_eq!(
        said(&cluster, &[join(D), replace(A, D)], force(C, D)),
        "Failed: 'nd@h' is already staged to replace another node."
    );
    cluster.members.insert(C, MemberStatus::Down);
    assert!(said(&cluster, &[], leave(C)).contains("is down and cannot hand over"));
    let alone = Cluster::of(&[A], 8);
    assert_eq!(said(&alone, &[], leave(A)), "Failed: 'na@h' is the only member.");
}

#[test]
fn a_later_change_takes_the_place_of_an_earlier_one() {
    let cluster = Cluster::of(&[A, B], 8);
    let mut staged = cluster.staged(&[join(C), leave(B)]);
    staged.stage(&cluster.view(), Change::Replace { node: B, with: C }).unwrap();
    assert_eq!(staged.changes(), [join(C), Change::Replace { node: B, with: C }]);
    staged.stage(&cluster.view(), Change::ForceReplace { node: B, with: C }).unwrap();
    assert_eq!(staged.changes(), [join(C), Change::ForceReplace { node: B, with: C }]);
    staged.stage(&cluster.view(), leave(C)).unwrap();
    assert_eq!(staged.changes(), [], "without the node that joins there is no replacement");
    staged.stage(&cluster.view(), leave(B)).unwrap();
    staged.clear();
    assert_eq!(plan(&cluster.view(), &staged).unwrap_err().text(name), "There are no staged changes");
}

#[test]
fn what_needed_a_joiner_goes_with_it() {
    let cluster = Cluster::of(&[A], 8);
    let mut staged = cluster.staged(&[join(B), leave(A)]);
    staged.stage(&cluster.view(), Change::ForceRemove { node: B }).unwrap();
    assert_eq!(staged, StagedChanges::default(), "the only member cannot leave");
}

#[test]
fn the_list_of_changes_is_bounded() {
    let cluster = Cluster::of(&[A], 8);
    let mut staged = StagedChanges::default();
    for node in 0..1024 {
        staged.stage(&cluster.view(), join(NodeId::new(1000 + node))).unwrap();
    }
    assert_eq!(staged.stage(&cluster.view(), join(B)), Err(Refusal::TooMany));
    staged.stage(&cluster.view(), join(NodeId::new(1000))).unwrap();
    assert_eq!(staged.changes().len(), 1024);
}

#[test]
fn four_nodes_join_one() {
    let e = NodeId::new(0xe);
    let cluster = Cluster::of(&[A], 64);
    let plan = cluster.plan(&[join(B), join(C), join(D), join(e)]);
    assert_eq!(plan.ring.version(), cluster.ring.version().next());
    assert!(plan.members.values().all(|status| *status == MemberStatus::Valid));
    let after: Vec<u32> = plan.shares.iter().map(|share| share.partitions_after).collect();
    assert_eq!(after, [13, 13, 13, 13, 12]);
    assert_eq!(plan.transfers.iter().map(|transfer| transfer.partitions).sum::<u32>(), 51);
    assert_eq!((plan.reassigned.len(), plan.warnings.len()), (0, 0));
}

#[test]
fn a_plan_reads_as_in_riak() {
    let cluster = Cluster::of(&[A, B], 8);
    let plan = cluster.plan(&[join(C), Change::ForceReplace { node: B, with: C }]);
    let text = plan.text(name);
    assert_eq!(
        text,
        "=============================== Staged Changes ================================
Action         Details(s)
-------------------------------------------------------------------------------
join           'nc@h'
force-replace  'nb@h' with 'nc@h'
-------------------------------------------------------------------------------

WARNING: All of 'nb@h' replicas will be lost

NOTE: Applying these changes will result in 1 cluster transition

###############################################################################
                         After cluster transition 1/1
###############################################################################

================================= Membership ==================================
Status     Ring    Pending    Node
-------------------------------------------------------------------------------
valid      50.0%      --      'na@h'
valid       0.0%     50.0%    'nc@h'
-------------------------------------------------------------------------------
Valid:2 / Leaving:0 / Exiting:0 / Joining:0 / Down:0

WARNING: Not all replicas will be on distinct nodes

Partitions reassigned from cluster changes: 4
  4 reassigned from 'nb@h' to 'nc@h'

"
    );
    assert!(text.lines().all(|line| line.len() <= 79));
    assert_eq!(
        Change::Replace { node: A, with: C }.staged_text(name).unwrap(),
        "Success: staged replacement of 'na@h' with 'nc@h'"
    );
}

#[test]
fn only_the_plan_that_was_shown_is_committed() {
    let mut cluster = Cluster::of(&[A, B, C], 64);
    let staged = cluster.staged(&[join(D)]);
    let refused = |cluster: &Cluster, staged: &StagedChanges, shown: Option<&Plan>| {
        commit(&cluster.view(), staged, shown, never).unwrap_err()
    };
    assert_eq!(refused(&cluster, &staged, None), CommitRefusal::NotPlanned);
    let shown = plan(&cluster.view(), &staged).unwrap();
    assert_eq!(commit(&cluster.view(), &staged, Some(&shown), never), Ok(&shown));
    let other = cluster.staged(&[join(D), leave(B)]);
    assert_eq!(refused(&cluster, &other, Some(&shown)), CommitRefusal::PlanChanged);
    assert_eq!(refused(&cluster, &StagedChanges::default(), Some(&shown)), CommitRefusal::PlanChanged);
    cluster.is_converged = false;
    assert_eq!(refused(&cluster, &staged, Some(&shown)), CommitRefusal::PlanChanged);
    assert_eq!(plan(&cluster.view(), &staged), Err(Refusal::NotConverged));
    cluster.is_converged = true;
    cluster.members.insert(C, MemberStatus::Down);
    assert_eq!(refused(&cluster, &staged, Some(&shown)), CommitRefusal::PlanChanged);
    cluster.members.insert(C, MemberStatus::Valid);
    commit(&cluster.view(), &staged, Some(&shown), never).unwrap();
    cluster.carry_out(&shown);
    assert_eq!(refused(&cluster, &staged, Some(&shown)), CommitRefusal::PlanChanged, "never twice");
    let text = CommitRefusal::<()>::PlanChanged.text(|()| String::new());
    assert_eq!(text, "The plan has changed. Verify with 'ombak admin cluster plan' before committing.");
}

#[test]
fn the_precondition_sees_the_plan_and_can_refuse_it() {
    let cluster = Cluster::of(&[A], 8);
    let staged = cluster.staged(&[join(B)]);
    let shown = plan(&cluster.view(), &staged).unwrap();
    let holds_data = |plan: &Plan| {
        let joiner = plan.changes().iter().map(Change::node).find(|node| *node == B);
        Err(format!("{} holds data", name(joiner.unwrap())))
    };
    let refused = commit(&cluster.view(), &staged, Some(&shown), holds_data).unwrap_err();
    assert_eq!(refused.text(Clone::clone), "nb@h holds data");
}

#[test]
fn the_last_owner_cannot_leave() {
    let cluster = Cluster::of(&[A, B], 8);
    let staged = cluster.staged(&[leave(A), leave(B)]);
    assert_eq!(plan(&cluster.view(), &staged), Err(Refusal::NobodyLeft));
}

#[test]
fn a_member_that_is_up_is_not_down() {
    let cluster = Cluster::of(&[A, B], 8);
    let said = |members: &Members, node, up| mark_down(members, node, up).unwrap_err().text(name);
    assert_eq!(said(&cluster.members, B, true), "Failed: nb@h is up");
    assert_eq!(said(&cluster.members, C, false), "Failed: 'nc@h' is not a member of the cluster.");
    assert_eq!(said(&Cluster::of(&[A], 8).members, A, false), "Failed: 'na@h' is the only member.");
    assert_eq!(mark_down(&cluster.members, B, false).unwrap()[&B], MemberStatus::Down);
}

#[test]
fn stored_forms_stay_readable_and_later_ones_are_named() {
    let staged = concat!(
        r#"{"format":1,"changes":[{"action":"join","node":"000000000000000c"},"#,
        r#"{"action":"force-replace","node":"000000000000000b","with":"000000000000000c"}]}"#
    );
    let found: StagedChanges = serde_json::from_str(staged).unwrap();
    assert_eq!(found.changes(), [join(C), Change::ForceReplace { node: B, with: C }]);
    assert_eq!(serde_json::to_string(&found).unwrap(), staged);
    let later = staged.replace("\"format\":1", "\"format\":2");
    let said = serde_json::from_str::<StagedChanges>(&later).unwrap_err().to_string();
    assert!(said.contains("format 2 is not known"), "{said}");
    let plan = Cluster::of(&[A, B], 8).plan(&[join(C), Change::ForceReplace { node: B, with: C }]);
    let text = serde_json::to_string(&plan).unwrap();
    assert!(text.starts_with("{\"format\":1,"), "{text}");
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

fn any_change() -> impl Strategy<Value = Change> {
    let node = || (0..10u64).prop_map(NodeId::new);
    prop_oneof![
        3 => node().prop_map(|node| Change::Join { node }),
        1 => node().prop_map(|node| Change::Leave { node }),
        1 => node().prop_map(|node| Change::ForceRemove { node }),
        1 => (node(), node()).prop_map(|(node, with)| Change::Replace { node, with }),
        1 => (node(), node()).prop_map(|(node, with)| Change::ForceReplace { node, with }),
    ]
}

fn any_status() -> impl Strategy<Value = MemberStatus> {
    use MemberStatus::{Down, Exiting, Leaving, Valid};
    prop_oneof![6 => Just(Valid), 1 => Just(Leaving), 1 => Just(Exiting), 1 => Just(Down)]
}

proptest! {
    #[test]
    fn a_plan_accounts_for_every_partition_and_every_member(
        statuses in prop::collection::vec(any_status(), 1..=6),
        bits in 3u32..=6,
        changes in prop::collection::vec(any_change(), 0..=12),
        gone in 0..10u64,
    ) {
        let nodes: Vec<NodeId> = (0..statuses.len() as u64).map(NodeId::new).collect();
        let mut cluster = Cluster::of(&nodes, 1 << bits);
        cluster.members = nodes.iter().copied().zip(statuses).collect();
        let mut staged = StagedChanges::default();
        for change in changes {
            let before = staged.clone();
            if staged.stage(&cluster.view(), change).is_err() {
                prop_assert_eq!(&staged, &before, "a refusal changes nothing");
            }
        }
        let about: BTreeSet<NodeId> = staged.changes().iter().map(Change::node).collect();
        prop_assert_eq!(about.len(), staged.changes().len(), "one change for each node");
        let joiners: BTreeSet<NodeId> = staged.joiners().collect();
        let replacements: Vec<NodeId> = staged.changes().iter().filter_map(Change::replacement).collect();
        prop_assert!(replacements.iter().all(|with| joiners.contains(with)));
        prop_assert_eq!(replacements.iter().collect::<BTreeSet<_>>().len(), replacements.len());
        prop_assert_eq!(staged.valid_in(&cluster.view()).changes().len(), staged.changes().len());

        let Ok(plan) = plan(&cluster.view(), &staged) else { return Ok(()) };
        prop_assert_eq!(&super::plan(&cluster.view(), &staged).unwrap(), &plan);
        let forced = |node| staged.changes().iter().any(|change| change.is_forced() && change.node() == node);
        let only_replaces = replacements.len() == joiners.len() && staged.changes().len() == 2 * joiners.len();
        for (before, after) in cluster.ring.owners().zip(plan.ring.owners()) {
            if only_replaces {
                let change = staged.changes().iter().find(|change| change.node() == before);
                prop_assert_eq!(after, change.and_then(Change::replacement).unwrap_or(before));
            } else {
                prop_assert!(plan.members[&after].may_own(), "{after} is {}", plan.members[&after]);
            }
        }
        let moves = cluster.ring.owners().zip(plan.ring.owners()).filter(|(before, after)| before != after).count();
        let counted = plan.transfers.iter().chain(&plan.reassigned).map(|transfer| transfer.partitions).sum::<u32>();
        prop_assert_eq!(counted as usize, moves);
        prop_assert!(plan.transfers.iter().all(|transfer| !forced(transfer.from)));
        prop_assert!(plan.reassigned.iter().all(|transfer| forced(transfer.from)));
        prop_assert_eq!(plan.shares.iter().map(|share| share.partitions_before).sum::<u32>(), 1 << bits);
        prop_assert_eq!(plan.shares.iter().map(|share| share.partitions_after).sum::<u32>(), 1 << bits);
        prop_assert!(joiners.iter().all(|node| plan.members[node] == MemberStatus::Valid));
        prop_assert!(cluster.members.keys().all(|node| plan.members.contains_key(node) != forced(*node)));

        // The plan holds as long as the cluster stays as it is, and no longer.
        prop_assert!(commit(&cluster.view(), &staged, Some(&plan), never).is_ok());
        if cluster.members.remove(&NodeId::new(gone)).is_some() {
            prop_assert_eq!(
                commit(&cluster.view(), &staged, Some(&plan), never),
                Err(CommitRefusal::PlanChanged)
            );
        }
    }
}
