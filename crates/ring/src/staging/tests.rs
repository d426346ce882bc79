use super::*;
use crate::claim::Claim;
use crate::location::Locations;
use crate::partition::RingSize;
use crate::ring::{Ring, RingVersion};
use ombak_types::NodeId;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

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
    locations: Locations,
    claimant: Option<NodeId>,
    is_converged: bool,
}

impl Cluster {
    fn of(nodes: &[NodeId], size: u32) -> Self {
        let ids = nodes.iter().copied().collect();
        let claim = Claim::of_new_ring(RingSize::new(size).unwrap(), &ids, 4).unwrap();
        let ring = Ring::from_owners(&claim.owners, RingVersion::first(1)).unwrap();
        let members = nodes.iter().map(|node| (*node, MemberStatus::Valid)).collect();
        Self { ring, members, locations: Locations::new(), claimant: None, is_converged: true }
    }

    fn view(&self) -> ClusterView<'_> {
        let Self { ring, members, locations, claimant, is_converged } = self;
        ClusterView {
            ring,
            members,
            claimant: *claimant,
            is_converged: *is_converged,
            target_n_val: 4,
            target_location_n_val: 3,
            locations,
        }
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
        self.locations = plan.locations.clone();
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
    let later = staged.replace("\"format\":1", "\"format\":3");
    let said = serde_json::from_str::<StagedChanges>(&later).unwrap_err().to_string();
    assert!(said.contains("format 3 is not known"), "{said}");
    let plan = Cluster::of(&[A, B], 8).plan(&[join(C), Change::ForceReplace { node: B, with: C }]);
    let text = serde_json::to_string(&plan).unwrap();
    assert!(text.starts_with("{\"format\":1,"), "{text}");
    assert!(!text.contains("location"), "earlier versions know no locations: {text}");
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

/// As the version wrote it that knew no locations.
#[test]
fn a_plan_of_format_1_stays_readable() {
    let text = concat!(
        r#"{"format":1,"basis":{"ring":{"lineage":1,"number":1},"members":{"000000000000000a":"valid"},"#,
        r#""changes":[{"action":"join","node":"000000000000000b"}],"target_n_val":4},"#,
        r#""ring":{"format":2,"version":{"lineage":1,"number":2},"nodes":["000000000000000a","000000000000000b"],"#,
        r#""owners":[0,1,0,1,0,1,0,1]},"members":{"000000000000000a":"valid","000000000000000b":"valid"},"#,
        r#""shares":[{"node":"000000000000000a","status":"valid","partitions_before":8,"partitions_after":4},"#,
        r#"{"node":"000000000000000b","status":"joining","partitions_before":0,"partitions_after":4}],"#,
        r#""transfers":[{"from":"000000000000000a","to":"000000000000000b","partitions":4}],"reassigned":[],"#,
        r#""warnings":[{"spacing":{"target":4,"reached":2}}]}"#
    );
    let cluster = Cluster::of(&[A], 8);
    let plan: Plan = serde_json::from_str(text).unwrap();
    assert_eq!(plan, cluster.plan(&[join(B)]));
    assert_eq!(serde_json::to_string(&plan).unwrap(), text);
    assert_eq!(commit(&cluster.view(), &cluster.staged(&[join(B)]), Some(&plan), never), Ok(&plan));
}

fn at(node: NodeId, location: &str) -> Change {
    Change::SetLocation { node, location: location.parse().unwrap() }
}

#[test]
fn a_location_is_staged_beside_another_change_of_the_node() {
    let cluster = Cluster::of(&[A, B], 8);
    let mut staged = cluster.staged(&[join(C), at(C, "x"), at(A, "y"), leave(A), at(C, "z")]);
    assert_eq!(staged.changes(), [join(C), at(A, "y"), leave(A), at(C, "z")]);
    assert_eq!(staged.stage(&cluster.view(), at(D, "x")), Err(Refusal::NotMember(D)));
    staged.stage(&cluster.view(), leave(C)).unwrap();
    assert_eq!(staged.changes(), [at(A, "y"), leave(A)], "the location goes with the join");
    let alone = Cluster::of(&[A], 8);
    assert_eq!(alone.plan(&[at(A, "y")]).ring.owners().collect::<Vec<_>>(), [A; 8]);
    let mut replaced = cluster.staged(&[join(C), Change::Replace { node: A, with: C }]);
    let refusal = replaced.stage(&cluster.view(), at(C, "x")).unwrap_err();
    let said = "Failed: 'nc@h' is staged to replace another node. Set its location when it is a member.";
    assert_eq!(refusal.text(name), said);
}

#[test]
fn a_plan_with_locations_says_them_and_warns() {
    let mut cluster = Cluster::of(&[A, B, C, D], 16);
    let plan = cluster.plan(&[at(A, "r1"), at(B, "r1"), at(C, "r2")]);
    let text = plan.text(name);
    let changes = "set-location  'na@h' to r1\nset-location  'nb@h' to r1\nset-location  'nc@h' to r2\n";
    assert!(text.contains(changes), "{text}");
    assert!(text.contains("valid      25.0%      --      'nb@h' (r1)\n"), "{text}");
    assert!(text.contains("'nd@h'\n"), "{text}");
    assert!(text.contains("\nWARNING: Not all replicas will be on distinct locations\n"), "{text}");
    assert_eq!(at(A, "r1").staged_text(name).unwrap(), "Success: staged changing location of node 'na@h' to r1");
    let saved = serde_json::to_string(&plan).unwrap();
    assert!(saved.starts_with("{\"format\":2,"), "{saved}");
    assert_eq!(serde_json::from_str::<Plan>(&saved).unwrap(), plan);
    let staged = serde_json::to_string(&cluster.staged(&[at(A, "r1")])).unwrap();
    let expected = r#"{"format":2,"changes":[{"action":"set-location","node":"000000000000000a","location":"r1"}]}"#;
    assert_eq!(staged, expected);
    assert_eq!(serde_json::from_str::<StagedChanges>(&staged).unwrap().changes(), [at(A, "r1")]);

    // From then on each plan warns, and a removed member has no location any more.
    cluster.carry_out(&plan);
    let plan = cluster.plan(&[at(D, "r2"), Change::ForceRemove { node: C }]);
    assert_eq!(plan.locations.keys().copied().collect::<Vec<_>>(), [A, B, D]);
    assert!(plan.warnings.iter().any(|warning| matches!(warning, Warning::LocationSpacing { target: 3, .. })));
    cluster.locations.clear();
    let unknown = cluster.plan(&[join(NodeId::new(0xe))]);
    assert_eq!(unknown.warnings, [], "without any location nobody expects distinct ones");
}

#[test]
fn a_new_name_for_a_location_moves_nothing() {
    let nodes: Vec<NodeId> = (0..6).map(NodeId::new).collect();
    for racks in 1..=6 {
        let mut cluster = Cluster::of(&nodes, 64);
        let rack = |node: &NodeId| node.get() % racks;
        let named = |prefix: &str| -> Vec<Change> {
            nodes.iter().map(|node| at(*node, &format!("{prefix}{}", rack(node)))).collect()
        };
        let first = cluster.plan(&named("rack"));
        cluster.carry_out(&first);
        let renamed = cluster.plan(&named("zone"));
        assert_eq!(renamed.transfers, [], "{racks} racks");
        assert_eq!(renamed.warnings, first.warnings);
    }
}

#[test]
fn another_cluster_of_locations_is_another_plan() {
    let mut cluster = Cluster::of(&[A, B, C, D], 16);
    let staged = cluster.staged(&[at(A, "r1"), at(B, "r2")]);
    let shown = plan(&cluster.view(), &staged).unwrap();
    assert_eq!(commit(&cluster.view(), &staged, Some(&shown), never), Ok(&shown));
    cluster.locations.insert(C, "r1".parse().unwrap());
    assert_eq!(commit(&cluster.view(), &staged, Some(&shown), never), Err(CommitRefusal::PlanChanged));
}

fn any_change() -> impl Strategy<Value = Change> {
    let node = || (0..10u64).prop_map(NodeId::new);
    prop_oneof![
        3 => node().prop_map(|node| Change::Join { node }),
        1 => node().prop_map(|node| Change::Leave { node }),
        1 => node().prop_map(|node| Change::ForceRemove { node }),
        1 => (node(), node()).prop_map(|(node, with)| Change::Replace { node, with }),
        1 => (node(), node()).prop_map(|(node, with)| Change::ForceReplace { node, with }),
        2 => (node(), 0..4u8).prop_map(|(node, rack)| at(node, &format!("rack {rack}"))),
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
        let about: BTreeSet<(NodeId, bool)> =
            staged.changes().iter().map(|change| (change.node(), change.location().is_some())).collect();
        prop_assert_eq!(about.len(), staged.changes().len(), "one change for each node, and its location");
        let joiners: BTreeSet<NodeId> = staged.joiners().collect();
        let located: Vec<&Change> = staged.changes().iter().filter(|change| change.location().is_some()).collect();
        let replacements: Vec<NodeId> = staged.changes().iter().filter_map(Change::replacement).collect();
        prop_assert!(replacements.iter().all(|with| joiners.contains(with)));
        prop_assert_eq!(replacements.iter().collect::<BTreeSet<_>>().len(), replacements.len());
        prop_assert_eq!(staged.valid_in(&cluster.view()).changes().len(), staged.changes().len());

        let Ok(plan) = plan(&cluster.view(), &staged) else { return Ok(()) };
        prop_assert_eq!(&super::plan(&cluster.view(), &staged).unwrap(), &plan);
        for node in plan.members.keys() {
            let told = located.iter().find(|change| change.node() == *node).and_then(|change| change.location());
            prop_assert_eq!(plan.locations.get(node).copied(), told);
        }
        prop_assert!(plan.locations.keys().all(|node| plan.members.contains_key(node)));
        let saved = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(saved.starts_with("{\"format\":1,"), located.is_empty(), "{}", saved);
        prop_assert_eq!(&serde_json::from_str::<Plan>(&saved).unwrap(), &plan);
        let forced = |node| staged.changes().iter().any(|change| change.is_forced() && change.node() == node);
        let only_replaces = replacements.len() == joiners.len() && staged.changes().len() == 2 * joiners.len();
        for (before, after) in cluster.ring.owners().zip(plan.ring.owners()) {
            if only_replaces {
                let mut changes = staged.changes().iter().filter(|change| change.node() == before);
                prop_assert_eq!(after, changes.find_map(Change::replacement).unwrap_or(before));
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

    /// Several rounds of changes, each carried out when its plan is allowed. After each, the
    /// members that may own partitions have equal shares, give or take one, unless the plan was
    /// only about replacements: then each replacement has the share of the other.
    #[test]
    fn plans_keep_shares_balanced(
        first in 1..=5u64,
        bits in 3u32..=6,
        rounds in prop::collection::vec(prop::collection::vec(any_change(), 1..=5), 1..=4),
    ) {
        let nodes: Vec<NodeId> = (0..first).map(NodeId::new).collect();
        let mut cluster = Cluster::of(&nodes, 1 << bits);
        for changes in rounds {
            let mut staged = StagedChanges::default();
            for change in changes {
                let _ = staged.stage(&cluster.view(), change);
            }
            match plan(&cluster.view(), &staged) {
                Err(Refusal::NothingStaged) => prop_assert!(staged.changes().is_empty()),
                Err(Refusal::NobodyLeft) => {
                    let stays = |node: &NodeId| {
                        let about = |change: &&Change| change.node() == *node && change.location().is_none();
                        !staged.changes().iter().find(about).is_some_and(|change| !matches!(change, Change::Join { .. }))
                    };
                    prop_assert!(!cluster.members.keys().any(stays) && staged.joiners().next().is_none());
                }
                Err(other) => prop_assert!(false, "{:?}", other),
                Ok(plan) => {
                    let counts = |ring: &Ring| {
                        ring.owners().fold(BTreeMap::<NodeId, u32>::new(), |mut counts, owner| {
                            *counts.entry(owner).or_default() += 1;
                            counts
                        })
                    };
                    let (before, after) = (counts(&cluster.ring), counts(&plan.ring));
                    let mut shares: Vec<u32> = after.values().copied().collect();
                    let owners = plan.members.values().filter(|status| status.may_own()).count();
                    shares.resize(owners.min(1 << bits).max(shares.len()), 0);
                    let spread = shares.iter().max().unwrap() - shares.iter().min().unwrap();
                    let joiners = staged.joiners().count();
                    let replacements = staged.changes().iter().filter_map(Change::replacement).count();
                    if staged.changes().len() == joiners + replacements && joiners == replacements {
                        for change in staged.changes().iter().filter(|change| change.replacement().is_some()) {
                            let with = change.replacement().unwrap();
                            prop_assert_eq!(after.get(&with), before.get(&change.node()));
                        }
                    } else {
                        prop_assert!(spread <= 1, "{:?}", after);
                    }
                    for share in &plan.shares {
                        let of = |counts: &BTreeMap<NodeId, u32>| counts.get(&share.node).copied().unwrap_or(0);
                        prop_assert_eq!((share.partitions_before, share.partitions_after), (of(&before), of(&after)));
                    }
                    // What leaves is gone before the next round.
                    cluster.carry_out(&plan);
                    cluster.members.retain(|_, status| *status != MemberStatus::Leaving);
                    let members = &cluster.members;
                    cluster.locations.retain(|node, _| members.contains_key(node));
                }
            }
        }
    }

    /// A join, what is told about the node that joins, and the replacement by it go together.
    #[test]
    fn a_withdrawn_join_leaves_no_trace(
        changes in prop::collection::vec(any_change(), 0..=12),
        about_it in prop::collection::vec(0..3u8, 0..=4),
        replaced in 0..4u64,
        by_force in any::<bool>(),
    ) {
        let cluster = Cluster::of(&(0..4).map(NodeId::new).collect::<Vec<_>>(), 16);
        let joiner = NodeId::new(99);
        let mut staged = StagedChanges::default();
        for change in changes {
            let _ = staged.stage(&cluster.view(), change);
        }
        // A replacement would take the place of what is staged for the node, and a leave of the
        // last member may need the join.
        let is_free = |node: NodeId| staged.changes().iter().all(|change| change.node() != node);
        let mut with_join = staged.clone();
        with_join.stage(&cluster.view(), join(joiner)).unwrap();
        for (step, what) in about_it.into_iter().enumerate() {
            let replaced = NodeId::new(replaced);
            let change = match what {
                0 => at(joiner, &format!("rack {step}")),
                1 if is_free(replaced) => Change::Replace { node: replaced, with: joiner },
                2 if is_free(replaced) => Change::ForceReplace { node: replaced, with: joiner },
                _ => join(joiner),
            };
            let _ = with_join.stage(&cluster.view(), change);
        }
        let withdrawal = if by_force { Change::ForceRemove { node: joiner } } else { leave(joiner) };
        with_join.stage(&cluster.view(), withdrawal).unwrap();
        prop_assert_eq!(&with_join, &staged);
        let planned = (plan(&cluster.view(), &with_join), plan(&cluster.view(), &staged));
        prop_assert_eq!(planned.0, planned.1);
    }
}
