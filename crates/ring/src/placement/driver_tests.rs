//! Each rule of the driver by itself. The model in `tests/` shows that they are enough.

use super::*;
use crate::ring::{Ring, RingVersion};
use crate::staging::{MemberStatus, Members};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const A: NodeId = NodeId::new(1);
const B: NodeId = NodeId::new(2);
const C: NodeId = NodeId::new(3);
const D: NodeId = NodeId::new(4);

/// A cluster whose members have reported that they have nothing to say.
struct Cluster {
    placement: Placement,
    members: Members,
    ns: BTreeSet<u32>,
    heard: BTreeMap<NodeId, Heard>,
}

impl Cluster {
    /// Home 4 changes from A, B, C to D, B, C, and homes 3 and 2 with it.
    fn changing() -> Self {
        Self::of(&[A, B, C, A, A, B, C, A], &[A, B, C, A, D, B, C, A], &[1, 3])
    }

    fn of(before: &[NodeId], after: &[NodeId], ns: &[u32]) -> Self {
        let ring = |owners, number| Arc::new(Ring::from_owners(owners, RingVersion { lineage: 1, number }).unwrap());
        let ns = ns.iter().copied().collect();
        let placement = Placement::of_ring(ring(before, 1)).with_goal(ring(after, 2), &ns).unwrap();
        let members = before.iter().chain(after).map(|node| (*node, MemberStatus::Valid)).collect();
        let mut cluster = Self { placement, members, ns, heard: BTreeMap::new() };
        cluster.all_confirm();
        cluster
    }

    fn decide(&self) -> Decision {
        let Self { placement, members, ns, heard } = self;
        Situation { placement, members, ns, heard }.decide()
    }

    fn says(&mut self, node: NodeId, said: impl FnOnce(&mut Report)) {
        let confirmed = RingVersion::first(1);
        let silent = Report { confirmed, proved: Vec::new(), lacking: Vec::new(), takes_no_copies: false };
        let mut report = self.heard.remove(&node).and_then(|heard| heard.report).unwrap_or(silent);
        said(&mut report);
        self.heard.insert(node, Heard { report: Some(report), silent_for: Duration::ZERO });
    }

    fn all_confirm(&mut self) {
        let version = self.placement.version();
        for node in self.members.keys().copied().collect::<Vec<_>>() {
            self.says(node, |report| report.confirmed = version);
        }
    }

    fn proves(&mut self, node: NodeId, home: u32, full: &[u32]) {
        let begun = self.placement.home(home).version().number;
        let full = full.iter().copied().collect();
        self.says(node, |report| report.proved.push(ProvedHome { home, begun, full }));
    }

    fn silent(&mut self, node: NodeId, seconds: u64) {
        self.heard.get_mut(&node).unwrap().silent_for = Duration::from_secs(seconds);
    }

    /// Takes the steps that were decided for one home.
    fn takes(&mut self, home: u32) -> Vec<Step> {
        let steps = self.decide().steps.into_iter().filter(|step| step.home == home).collect::<Vec<_>>();
        if let Some(next) = self.placement.after(&steps) {
            self.placement = next;
        }
        steps.iter().map(|step| step.step).collect()
    }

    /// Home 4 is pending, and all members have confirmed that.
    fn pending(mut self) -> Self {
        assert_eq!(self.takes(4), [Step::Begin]);
        self.all_confirm();
        self
    }

    /// The obstacles of home 4.
    fn obstacles(&self) -> Vec<Obstacle> {
        let all = self.decide().obstacles.into_iter();
        all.filter(|(_, homes)| homes.contains(&4)).map(|(obstacle, _)| obstacle).collect()
    }
}

#[test]
fn a_change_goes_through_all_phases_to_its_end() {
    let mut cluster = Cluster::changing();
    for _ in 0..20 {
        let decision = cluster.decide();
        assert!(decision.steps.is_empty() || decision.obstacles.is_empty());
        for (prover, orders) in decision.proofs {
            orders.iter().for_each(|order| cluster.proves(prover, order.home, &[1, 3]));
        }
        if let Some(next) = cluster.placement.after(&cluster.decide().steps) {
            cluster.placement = next;
        }
        cluster.all_confirm();
    }
    assert!(cluster.placement.is_settled());
    assert_eq!(cluster.decide(), Decision::default());
}

#[test]
fn a_new_leader_that_has_heard_nobody_does_nothing() {
    for pending in [false, true] {
        let mut cluster = Cluster::changing();
        if pending {
            cluster = cluster.pending();
        }
        cluster.heard.clear();
        let decision = cluster.decide();
        assert_eq!((decision.steps, decision.proofs), (vec![], BTreeMap::new()));
        for node in [A, B, C, D] {
            cluster.heard.insert(node, Heard { report: None, silent_for: Duration::from_secs(30) });
        }
        assert_eq!(cluster.decide().steps, []);
    }
}

#[test]
fn a_home_begins_only_when_all_of_both_sets_report() {
    let mut cluster = Cluster::changing();
    cluster.silent(D, 11);
    assert_eq!(cluster.obstacles(), [Obstacle::Silent(D)]);
    cluster.silent(D, 10);
    cluster.silent(A, 11);
    assert_eq!(cluster.obstacles(), [Obstacle::Silent(A)]);
    cluster.members.insert(A, MemberStatus::Down);
    assert_eq!(cluster.obstacles(), [Obstacle::NeedsDown { node: A, n: 1 }], "A is all there is with n_val 1");
    cluster.ns = BTreeSet::from([3]);
    assert_eq!(cluster.takes(4), [Step::Begin], "B and C may have everything with n_val 3");
    cluster.members.insert(D, MemberStatus::Down);
    cluster.silent(D, 11);
    assert_eq!(cluster.takes(2), [], "a new member is needed, whatever it is marked as");
}

/// Nodes that are new in the goal may be fallbacks from the first step on.
#[test]
fn the_first_home_begins_only_when_every_member_has_confirmed_the_goal() {
    let mut cluster = Cluster::changing();
    const OUTSIDER: NodeId = NodeId::new(5);
    cluster.members.insert(OUTSIDER, MemberStatus::Valid);
    assert_eq!(cluster.obstacles(), [Obstacle::Silent(OUTSIDER)]);
    assert_eq!(cluster.takes(4), []);
    cluster.says(OUTSIDER, |report| report.confirmed = RingVersion::first(1));
    assert_eq!(cluster.obstacles(), [Obstacle::Unconfirmed(OUTSIDER)]);
    cluster.silent(OUTSIDER, 11);
    assert_eq!(cluster.obstacles(), [Obstacle::Silent(OUTSIDER)]);
    cluster.members.insert(OUTSIDER, MemberStatus::Down);
    assert_eq!(cluster.takes(4), [Step::Begin], "it is marked as down");
    // A later home does not wait for it.
    cluster.members.insert(OUTSIDER, MemberStatus::Valid);
    assert_eq!(cluster.takes(3), [Step::Begin]);
}

#[test]
fn so_many_homes_are_under_way_at_a_time() {
    let slots: Vec<NodeId> = (0..128).map(|slot| [A, B, C][slot % 3]).collect();
    let replaced: Vec<NodeId> = slots.iter().map(|node| if *node == A { D } else { *node }).collect();
    let mut cluster = Cluster::of(&slots, &replaced, &[3]);
    let decision = cluster.decide();
    assert_eq!((decision.steps.len(), decision.queued), (16, 112));
    cluster.placement = cluster.placement.after(&decision.steps).unwrap();
    assert_eq!((cluster.decide().steps, cluster.decide().queued), (vec![], 112));
    cluster.silent(A, 60);
    let decision = cluster.decide();
    assert_eq!(decision.queued, 0, "all wait for A, so none waits for its turn");
    assert_eq!(decision.obstacles[&Obstacle::Silent(A)].len(), 128);
    let small = Cluster::of(&slots[..32], &replaced[..32], &[3]);
    assert_eq!(small.decide().steps.len(), 8);
}

#[test]
fn homes_that_wait_for_a_silent_member_do_not_keep_others_waiting() {
    // E replaces A in the first half, and D replaces B in the second one.
    let e = NodeId::new(5);
    let before: Vec<NodeId> = (0..64).map(|slot| if slot < 32 { A } else { B }).collect();
    let after: Vec<NodeId> = (0..64).map(|slot| if slot < 32 { e } else { D }).collect();
    let mut cluster = Cluster::of(&before, &after, &[1]);
    let first = cluster.decide();
    assert!(first.steps.len() == 8 && first.steps.iter().all(|step| step.home < 32));
    cluster.placement = cluster.placement.after(&first.steps).unwrap();
    cluster.silent(A, 59);
    assert_eq!(cluster.decide().steps, []);
    cluster.silent(A, 60);
    let second = cluster.decide().steps;
    assert!(second.len() == 8 && second.iter().all(|step| step.home >= 32));
}

#[test]
fn homes_of_members_that_leave_come_first() {
    let before: Vec<NodeId> = (0..64).map(|slot| if slot < 32 { A } else { B }).collect();
    let after: Vec<NodeId> = (0..64).map(|slot| if slot < 32 { C } else { D }).collect();
    let mut cluster = Cluster::of(&before, &after, &[1]);
    cluster.members.insert(B, MemberStatus::Leaving);
    assert!(cluster.decide().steps.iter().all(|step| step.home >= 32));
    cluster.members.insert(B, MemberStatus::Valid);
    cluster.members.remove(&A);
    assert!(cluster.decide().steps.iter().all(|step| step.home < 32));
}

/// A cluster whose home 4 has flipped.
fn flipped() -> Cluster {
    let mut cluster = Cluster::changing().pending();
    for node in [A, B, C] {
        cluster.proves(node, 4, &[1, 3]);
    }
    assert_eq!(cluster.takes(4), [Step::Flip]);
    cluster
}

/// The finish of a home that flipped towards an earlier goal is the first step after a goal, too.
#[test]
fn a_home_that_flipped_before_finishes_only_when_every_member_has_confirmed_the_goal() {
    let mut cluster = flipped();
    cluster.all_confirm();
    const NEW: NodeId = NodeId::new(5);
    let owners = [A, NEW, C, A, D, B, C, A];
    let goal = Arc::new(Ring::from_owners(&owners, cluster.placement.version().next()).unwrap());
    cluster.placement = cluster.placement.with_goal(goal, &cluster.ns).unwrap();
    cluster.members.insert(NEW, MemberStatus::Valid);
    for node in [A, B, D, NEW] {
        let confirmed = cluster.placement.version();
        cluster.says(node, |report| report.confirmed = confirmed);
    }
    assert_eq!(cluster.obstacles(), [Obstacle::Unconfirmed(C)]);
    assert_eq!(cluster.takes(4), []);
    cluster.all_confirm();
    assert_eq!(cluster.takes(4), [Step::Finish]);
}

#[test]
fn nobody_proves_before_all_have_confirmed() {
    let mut cluster = Cluster::changing();
    assert_eq!(cluster.takes(4), [Step::Begin]);
    let begun = cluster.placement.home(4).version();
    for node in [A, B, D] {
        cluster.says(node, |report| report.confirmed = begun);
    }
    assert_eq!(cluster.obstacles(), [Obstacle::Unconfirmed(C)]);
    assert_eq!(cluster.decide().proofs, BTreeMap::new());
    cluster.says(C, |report| report.confirmed = begun);
    let home = 4;
    let order = |to: &[NodeId]| vec![ProofOrder { home, begun: begun.number, to: to.iter().copied().collect() }];
    let expected = [(A, order(&[B, C, D])), (B, order(&[C, D])), (C, order(&[B, D]))];
    assert_eq!(cluster.decide().proofs, BTreeMap::from(expected));
    cluster.says(C, |report| report.confirmed.lineage = 2);
    assert_eq!(cluster.obstacles(), [Obstacle::Unconfirmed(C)], "a version of another lineage says nothing");
}

#[test]
fn a_home_flips_when_all_have_proved_and_the_new_set_would_be_full() {
    let mut cluster = Cluster::changing().pending();
    cluster.proves(A, 4, &[]);
    cluster.proves(B, 4, &[]);
    assert_eq!(cluster.obstacles(), [Obstacle::Unproved(C)]);
    cluster.silent(C, 11);
    assert_eq!(cluster.obstacles(), [Obstacle::Silent(C)]);
    cluster.proves(C, 4, &[]);
    let ns = BTreeSet::from([3]);
    cluster.says(D, |report| report.lacking.push(LackingHome { home: 4, ns }));
    assert_eq!(cluster.obstacles(), [Obstacle::NotFull(D)]);
    cluster.says(D, |report| report.lacking[0].home = 3);
    cluster.silent(D, 11);
    assert_eq!(cluster.obstacles(), [Obstacle::Silent(D)]);
    cluster.silent(D, 10);
    // A is in no new set, so nobody asks whether it is full.
    cluster.silent(A, 3600);
    assert_eq!(cluster.takes(4), [Step::Flip], "without anybody that was full nobody could be waited for");
}

#[test]
fn a_proof_of_an_earlier_attempt_says_nothing() {
    let mut cluster = Cluster::changing().pending();
    for node in [A, B, C] {
        cluster.proves(node, 4, &[1, 3]);
    }
    let home = cluster.placement.home(4);
    let abort = StepOf { home: 4, seen: home.version().number, step: Step::Abort };
    cluster.placement = cluster.placement.after(&[abort]).unwrap();
    cluster = cluster.pending();
    assert_eq!(cluster.obstacles(), [A, B, C].map(Obstacle::Unproved));
}

#[test]
fn a_home_finishes_when_all_of_both_sets_have_confirmed_the_flip() {
    let mut cluster = flipped();
    let flipped = cluster.placement.version();
    for node in [B, C, D] {
        cluster.says(node, |report| report.confirmed = flipped);
    }
    cluster.silent(D, 3600);
    assert_eq!(cluster.obstacles(), [Obstacle::Unconfirmed(A)]);
    cluster.silent(A, 3600);
    assert_eq!(cluster.obstacles(), [Obstacle::Silent(A)]);
    let mut without = Cluster { placement: cluster.placement.clone(), ..Cluster::changing() };
    without.heard = cluster.heard.clone();
    without.members.insert(A, MemberStatus::Down);
    assert_eq!(without.takes(4), [Step::Finish]);
    cluster.says(A, |report| report.confirmed = flipped);
    let ns = BTreeSet::from([1]);
    cluster.says(D, |report| report.lacking.push(LackingHome { home: 4, ns }));
    assert_eq!(cluster.obstacles(), [Obstacle::NotFull(D)], "D fills from A as long as A is a primary");
    cluster.says(D, |report| report.lacking.clear());
    assert_eq!(cluster.takes(4), [Step::Finish]);
    assert!(cluster.placement.has_goal(4));
}

#[test]
fn a_flipped_home_goes_on_without_a_leaver_that_can_take_nothing_if_another_member_is_full() {
    let mut cluster = flipped();
    cluster.all_confirm();
    cluster.says(D, |report| report.lacking.push(LackingHome { home: 4, ns: BTreeSet::from([3]) }));
    cluster.says(D, |report| report.takes_no_copies = true);
    assert_eq!(cluster.obstacles(), [Obstacle::NotFull(D)], "an operator can make room");
    cluster.members.insert(D, MemberStatus::Leaving);
    cluster.says(D, |report| report.takes_no_copies = false);
    assert_eq!(cluster.obstacles(), [Obstacle::NotFull(D)], "it can fill");
    cluster.says(D, |report| report.takes_no_copies = true);
    cluster.says(C, |report| report.lacking.push(LackingHome { home: 4, ns: BTreeSet::from([3]) }));
    assert_eq!(cluster.obstacles(), [Obstacle::NotFull(C)], "B is full, and C can fill");
    cluster.says(B, |report| report.lacking.push(LackingHome { home: 4, ns: BTreeSet::from([3]) }));
    assert_eq!(cluster.obstacles(), [B, C, D].map(Obstacle::NotFull), "nobody of the new set is full");
    [B, C].into_iter().for_each(|node| cluster.says(node, |report| report.lacking.clear()));
    cluster.silent(B, 11);
    cluster.silent(C, 11);
    assert_eq!(cluster.obstacles(), [Obstacle::NotFull(D)], "nobody knows what the others have now");
    cluster.all_confirm();
    assert_eq!(cluster.takes(4), [Step::Finish]);
}

#[test]
fn a_pending_home_whose_new_member_is_silent_is_aborted_and_begun_again() {
    let mut cluster = Cluster::changing().pending();
    cluster.silent(D, 59);
    assert_eq!(cluster.takes(4), []);
    cluster.silent(D, 60);
    assert_eq!(cluster.takes(4), [Step::Abort]);
    assert_eq!(cluster.takes(4), []);
    cluster.all_confirm();
    assert_eq!(cluster.takes(4), [Step::Begin]);
    cluster.silent(A, 3600);
    assert_eq!(cluster.takes(4), [], "an old member is waited for");
    cluster.members.remove(&D);
    assert_eq!(cluster.takes(4), [Step::Abort], "a removed member is silent for ever");
}

#[test]
fn a_pending_home_whose_new_member_cannot_take_copies_is_aborted_and_waits() {
    let mut cluster = Cluster::changing().pending();
    cluster.says(A, |report| report.takes_no_copies = true);
    assert_eq!(cluster.takes(4), [], "it is not new");
    cluster.says(A, |report| report.takes_no_copies = false);
    cluster.says(D, |report| report.takes_no_copies = true);
    assert_eq!(cluster.takes(4), [Step::Abort]);
    cluster.all_confirm();
    assert_eq!((cluster.takes(4), cluster.obstacles()), (vec![], vec![Obstacle::TakesNoCopies(D)]));
    cluster.says(D, |report| report.takes_no_copies = false);
    assert_eq!(cluster.takes(4), [Step::Begin]);
}

#[test]
fn the_disk_is_named_if_a_member_that_has_not_confirmed_says_that_it_is_full() {
    let mut cluster = Cluster::changing().pending();
    cluster.all_confirm();
    cluster.says(A, |report| report.confirmed = RingVersion::first(1));
    assert_eq!((cluster.takes(4), cluster.obstacles()), (vec![], vec![Obstacle::Unconfirmed(A)]));
    cluster.says(A, |report| report.takes_no_copies = true);
    assert_eq!((cluster.takes(4), cluster.obstacles()), (vec![], vec![Obstacle::CannotNote(A)]));
    let text = Obstacle::CannotNote(A).text(|_| "dev6".into());
    assert!(text.starts_with("waits for 'dev6' to note the last step: its disk is full"), "{text}");
}

#[test]
fn a_class_goes_on_without_a_member_that_is_down_if_another_was_full() {
    let mut cluster = Cluster::of(&[A, B, C, A, A, B, C, A], &[A, B, C, A, D, B, C, A], &[3]).pending();
    cluster.members.insert(B, MemberStatus::Down);
    assert_eq!(cluster.obstacles(), [A, B, C].map(Obstacle::Unproved), "B reports, so it is not down");
    cluster.silent(B, 11);
    assert_eq!(cluster.obstacles(), [A, C].map(Obstacle::Unproved));
    let orders = cluster.decide().proofs;
    assert!(!orders.contains_key(&B) && orders[&A][0].to == BTreeSet::from([C, D]), "{orders:?}");
    cluster.proves(A, 4, &[1]);
    cluster.proves(C, 4, &[]);
    assert_eq!(cluster.obstacles(), [Obstacle::NeedsDown { node: B, n: 3 }]);
    let proved_before_it_died = BTreeSet::new();
    let begun = cluster.placement.home(4).version().number;
    cluster.says(B, |report| report.proved.push(ProvedHome { home: 4, begun, full: proved_before_it_died }));
    cluster.silent(B, 11);
    assert_eq!(cluster.decide().obstacles.keys().next(), None, "what B held has arrived");
    cluster.heard.get_mut(&B).unwrap().report.as_mut().unwrap().proved.clear();
    cluster.proves(C, 4, &[3]);
    cluster.says(C, |report| report.proved.reverse());
    assert_eq!(cluster.takes(4), [Step::Flip]);
}

#[test]
fn a_class_goes_on_without_any_proof_only_if_all_were_removed() {
    let mut cluster = Cluster::of(&[A; 8], &[D; 8], &[1]).pending();
    cluster.members.insert(A, MemberStatus::Down);
    cluster.silent(A, 3600);
    assert_eq!(cluster.obstacles(), [Obstacle::NeedsDown { node: A, n: 1 }]);
    cluster.members.remove(&A);
    assert_eq!(cluster.takes(4), [Step::Flip]);
    let mut two = Cluster::of(&[A, B, A, B, A, B, A, B], &[D; 8], &[2]);
    two.members.remove(&A);
    two = two.pending();
    two.members.insert(B, MemberStatus::Down);
    two.silent(B, 3600);
    assert_eq!(two.obstacles(), [Obstacle::NeedsDown { node: B, n: 2 }]);
}

#[test]
fn obstacles_read_well() {
    let name = |node: NodeId| format!("n{}@h", node.get());
    let texts = [
        (Obstacle::Silent(A), "waits for 'n1@h' to answer"),
        (Obstacle::Unconfirmed(A), "waits for 'n1@h' to end the requests that began before the last step"),
        (Obstacle::Unproved(A), "waits for 'n1@h' to hand over what it holds"),
        (Obstacle::NotFull(A), "waits for 'n1@h' to hold everything again, because its store lost data"),
        (
            Obstacle::NeedsDown { node: A, n: 3 },
            "waits for 'n1@h', which is marked as down: nobody else is known to hold everything with n_val 3",
        ),
    ];
    for (obstacle, text) in texts {
        assert_eq!((obstacle.text(name).as_str(), obstacle.node()), (text, A));
    }
}
