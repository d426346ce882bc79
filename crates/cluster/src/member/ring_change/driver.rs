//! Drives changes of the ring by steps, on the member that is the leader of the metadata
//! (docs/design/ring-changes.md).
//!
//! What it is: the loop around the pure rules of `ombak_ring::placement`. It asks every member for
//! a report, decides, and proposes the steps.
//!
//! What it is not: it moves no object. Members prove what they are told to prove
//! ([`Question::RingReport`]).
//!
//! Invariants:
//! * Nothing depends on what a driver remembers. A new leader begins with a new round of reports.
//! * A driver that is the leader no more does no harm: each step names what it was decided from.

use super::pace::Pace;
use super::staged::staged_members;
use super::state::RingChange;
use crate::capabilities::RING_CHANGES;
use crate::member::error::ClusterError;
use crate::member::questions::question::{Answer, Question};
use crate::member::questions::ring_change_facts::{RingChangeFacts, RingObstacle};
use futures_util::future::join_all;
use ombak_metadata::ProposeError;
use ombak_metadata::state::{Command, MemberStatus, Metadata, Refusal};
use ombak_ring::placement::{Decision, Heard, Placement, ProofOrder, Report, Situation};
use ombak_runtime::{RuntimeExt, within};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

/// How long the driver waits for a report. A member that is too late is asked again.
const REPORT_MAX: Duration = Duration::from_secs(1);
/// How long the driver believes a member that it cannot take copies. What it had taken goes back
/// meanwhile, and so its disk has room again: without a pause the same would happen over and over.
/// The pause is well below the five minutes within which a change ends after healing.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(120);

/// What a driver knows. All of it is forgotten when the node is not the leader any more.
struct Driving {
    since: Instant,
    /// How many homes had the goal then.
    done_before: u32,
    /// The last report of each member, with its time.
    heard: BTreeMap<NodeId, (Report, Instant)>,
    /// When each member said last that it cannot take copies.
    full: BTreeMap<NodeId, Instant>,
    /// What each member is to prove.
    orders: BTreeMap<NodeId, Vec<ProofOrder>>,
    pace: Pace,
}

impl RingChange {
    /// Drives changes of the ring whenever this node is the leader, until it stops.
    pub fn start_driving(self: &Arc<Self>) {
        // A node that stops meanwhile is not held.
        let (node, runtime, timing) = (Arc::downgrade(self), self.runtime.clone(), self.timing.clone());
        self.runtime.spawn(Box::pin(async move {
            let mut driving = None;
            loop {
                let Some(this) = node.upgrade().filter(|this| !this.is_stopping()) else { return };
                let now = this.followed.get();
                let is_driver = this.metadata_node().is_leader() && is_changing(&now.metadata);
                let mut pause = timing.ring_round;
                if is_driver {
                    let pace = || Pace::new(timing.ring_round_min, timing.ring_round);
                    let driving = driving.get_or_insert_with(|| Driving::new(runtime.now(), &now.metadata, pace()));
                    let has_progressed = this.drive(driving, &now.metadata).await;
                    pause = driving.pace.after_round(has_progressed);
                    this.let_members_go(driving, &now.metadata).await;
                } else {
                    driving = None;
                    *this.driven.lock() = None;
                }
                let metadata = this.metadata_node();
                drop((this, now));
                // Also a node that is not the leader looks again: it may become the leader.
                let until = runtime.now() + pause;
                if let Ok(None) = within(&*runtime, Some(until), metadata.newer_than(metadata.applied())).await {
                    // This metadata has stopped. The node may follow another one.
                    runtime.sleep(timing.ring_round).await;
                }
            }
        }));
    }

    /// One round: reports, steps. Returns whether it learned or did something.
    async fn drive(self: &Arc<Self>, driving: &mut Driving, metadata: &Metadata) -> bool {
        let Some(placement) = metadata.placement() else { return false };
        let has_heard = self.hear(driving, metadata, placement).await;
        let members = staged_members(metadata);
        let now = self.runtime.now();
        let heard = members.keys().map(|node| (*node, driving.heard_of(*node, now))).collect();
        let ns = self.kv().buckets().snapshot().all_n_vals();
        let situation = Situation { placement, members: &members, ns: &ns, heard: &heard };
        let decision = situation.decide();
        *self.driven.lock() = Some(self.facts_of(driving, placement, &decision, now));
        let has_ordered = driving.orders != decision.proofs;
        driving.orders = decision.proofs;
        if decision.steps.is_empty() {
            return has_heard || has_ordered;
        }
        debug!(steps = decision.steps.len(), "homes take steps");
        let command = Command::TakeStep { steps: decision.steps };
        // Towards another goal they would be steps that its rules have not allowed.
        let seen = placement.version();
        let is_same = |now: &Metadata| now.placement().is_some_and(|placement| placement.version() == seen);
        match self.metadata_node().propose_while(is_same, command, self.question_deadline()).await {
            // Somebody else has taken them, or has set another goal.
            Ok(_) | Err(ProposeError::Refused(Refusal::Changed)) => {}
            Err(why) => {
                warn!(%why, "steps of homes could not be decided, and are tried again");
                return false;
            }
        }
        true
    }

    /// Asks every member for a report. Returns whether one of them said something new.
    async fn hear(self: &Arc<Self>, driving: &mut Driving, metadata: &Metadata, placement: &Placement) -> bool {
        let (deadline, lineage) = (self.runtime.now() + REPORT_MAX, placement.version().lineage);
        let knows_changes = |node: &NodeId| *node == self.id() || self.node.transport().shares(*node, RING_CHANGES);
        let members: Vec<NodeId> = staged_members(metadata).into_keys().filter(knows_changes).collect();
        let asked = members.iter().map(|node| {
            let orders = driving.orders.get(node).cloned().unwrap_or_default();
            async move { self.ask(*node, &Question::RingReport { orders, lineage }, deadline).await }
        });
        let answers = join_all(asked).await;
        let now = self.runtime.now();
        let mut is_new = false;
        for (node, answer) in members.into_iter().zip(answers) {
            match answer {
                Ok(Answer::RingReport(report)) => {
                    if report.takes_no_copies {
                        driving.full.insert(node, now);
                    }
                    is_new |= driving.heard.get(&node).is_none_or(|(last, _)| *last != *report);
                    driving.heard.insert(node, (*report, now));
                }
                Ok(_) => warn!(%node, "a member gave another answer than was asked for"),
                Err(why) => debug!(%node, why, "a member did not report"),
            }
        }
        driving.heard.retain(|node, _| metadata.members().contains_key(node));
        is_new
    }

    fn facts_of(&self, driving: &Driving, placement: &Placement, decision: &Decision, now: Instant) -> RingChangeFacts {
        let obstacle = |(obstacle, homes): (&ombak_ring::placement::Obstacle, &Vec<u32>)| RingObstacle {
            why: obstacle.text(|node| self.name_of(node)),
            homes: homes.len() as u32,
        };
        let done = done(placement);
        RingChangeFacts {
            driver: Some(self.me.name.clone()),
            obstacles: decision.obstacles.iter().map(obstacle).collect(),
            driven_secs: now.saturating_duration_since(driving.since).as_secs(),
            done_meanwhile: done.saturating_sub(driving.done_before),
            ..facts_of_placement(placement)
        }
    }

    /// What this node knows of the change that it drives.
    pub fn driven_change(&self) -> Option<RingChangeFacts> {
        self.driven.lock().clone()
    }

    /// How far the change of the ring is; `None` if there is none. Somebody may have committed it
    /// on another member a moment ago.
    pub async fn now(&self) -> Option<RingChangeFacts> {
        let node = self.metadata_node();
        node.catch_up(self.question_deadline()).await;
        self.change_in(&node.metadata()).await
    }

    /// How far the change is that a state of the metadata has; `None` if it has none.
    pub async fn change_in(&self, metadata: &Metadata) -> Option<RingChangeFacts> {
        let placement = metadata.placement().filter(|placement| !placement.is_settled())?;
        let leader = self.metadata_node().leader();
        let asked = match leader {
            Some(leader) => self.ask(leader, &Question::RingChange, self.question_deadline()).await,
            None => Err("no member leads".to_owned()),
        };
        Some(facts_heard(asked, leader.map(|leader| self.name_of(leader)), placement))
    }

    /// Answers what this node has adopted and proved, and takes orders to prove.
    pub async fn report_ring(&self, orders: &[ProofOrder], lineage: u64) -> Result<Answer, ClusterError> {
        let has_adopted = self.adopt_again().await;
        let (kv, repair) = (self.kv().clone(), self.repair().clone());
        if kv.placement().version().lineage != lineage {
            return Err(ClusterError::refused("it belongs to another cluster"));
        }
        repair.set_proofs_wanted(orders.to_vec());
        let report = self.blocking(move || repair.ring_report(kv.confirmed_placement())).await?;
        // Who cannot note a step cannot note what it would have to hold, either.
        let cannot_note = !has_adopted || self.metadata_node().waits_for_room();
        let takes_no_copies = report.takes_no_copies || cannot_note;
        Ok(Answer::RingReport(Box::new(Report { takes_no_copies, ..report })))
    }

    /// Adopts a placement that could not be saved when it was decided. Returns whether this node
    /// runs what it has heard to be decided.
    async fn adopt_again(&self) -> bool {
        let is_behind = |metadata: &Metadata| {
            metadata.placement().is_some_and(|placement| self.kv().placement().version() < placement.version())
        };
        if is_behind(&self.followed.get().metadata) {
            let _adopting = self.following.adopting.lock().await;
            self.following.adopt_placement(&self.followed.get().metadata).await;
        }
        !is_behind(&self.followed.get().metadata)
    }

    /// Members that leave go when they own nothing, hold nothing for others, owe nothing, and have
    /// ended their jobs.
    async fn let_members_go(self: &Arc<Self>, driving: &Driving, metadata: &Metadata) {
        for (node, member) in metadata.members() {
            let command = match member.status {
                MemberStatus::Leaving if self.has_given_all(*node, driving, metadata).await => {
                    let (expected, status) = (MemberStatus::Leaving, MemberStatus::Exiting);
                    Command::SetStatus { node: *node, expected, status }
                }
                // A member that votes would take a part of the majority with it, perhaps all of it.
                // The metadata soon chooses other voters in the place of one that leaves.
                MemberStatus::Exiting if self.metadata_node().voters().contains(&member.log) => continue,
                // It may have got something from a member that did not know yet that it exits.
                MemberStatus::Exiting
                    if self.is_known_to_exit(metadata).await && self.has_given_all(*node, driving, metadata).await =>
                {
                    Command::RemoveMember { node: *node }
                }
                _ => continue,
            };
            match self.metadata_node().propose(command, self.question_deadline()).await {
                Ok(_) => info!(member = member.name, was = %member.status, "a member goes on with its leave"),
                Err(why) => warn!(%why, member = member.name, "a leave does not go on yet, and this is tried again"),
            }
        }
    }

    async fn has_given_all(self: &Arc<Self>, node: NodeId, driving: &Driving, metadata: &Metadata) -> bool {
        let Some(placement) = metadata.placement() else { return false };
        // Under an older placement it would not count as a copy for others what it owned there.
        let has_adopted = driving.heard.get(&node).is_some_and(|(report, _)| report.confirmed >= placement.version());
        if !placement.is_settled() || placement.nodes().contains(&node) || !has_adopted {
            return false;
        }
        let said = self.ask(node, &Question::Settled, self.question_deadline()).await;
        let Ok(Answer::Settled(counts)) = said else { return false };
        let has_copies = counts.partitions_with_hints != 0 || counts.owed_marks != 0 || counts.transfers != 0;
        !has_copies && counts.key_jobs == 0
    }

    /// Whether all members follow a state in which the member exits. From then on nobody gives it
    /// anything, and it knows itself why it is removed.
    async fn is_known_to_exit(self: &Arc<Self>, metadata: &Metadata) -> bool {
        let at_least = self.followed.get().index;
        let lineage = metadata.lineage().map(|lineage| lineage.id);
        let members = metadata.members().iter().filter(|(_, member)| member.status != MemberStatus::Down);
        let question = Question::Followed { at_least, lineage };
        let deadline = self.question_deadline();
        let asked = join_all(members.map(|(node, _)| self.ask(*node, &question, deadline))).await;
        asked.into_iter().all(|said| matches!(said, Ok(Answer::Followed { index }) if index >= at_least))
    }
}

impl Driving {
    fn new(now: Instant, metadata: &Metadata, pace: Pace) -> Self {
        let done_before = metadata.placement().map_or(0, |placement| done(placement));
        Self { since: now, done_before, heard: BTreeMap::new(), full: BTreeMap::new(), orders: BTreeMap::new(), pace }
    }

    fn heard_of(&self, node: NodeId, now: Instant) -> Heard {
        let heard = self.heard.get(&node);
        let last = heard.map_or(self.since, |(_, at)| *at);
        let was_full = self.full.get(&node).is_some_and(|at| now.saturating_duration_since(*at) < FULL_DISK_PAUSE);
        let with_pause =
            |report: &Report| Report { takes_no_copies: report.takes_no_copies || was_full, ..report.clone() };
        let report = heard.map(|(report, _)| with_pause(report));
        Heard { report, silent_for: now.saturating_duration_since(last) }
    }
}

/// Whether there is something to drive.
fn is_changing(metadata: &Metadata) -> bool {
    let goes = |status| matches!(status, MemberStatus::Leaving | MemberStatus::Exiting);
    metadata.placement().is_some_and(|placement| !placement.is_settled())
        || (metadata.members().len() > 1 && metadata.members().values().any(|member| goes(member.status)))
}

fn done(placement: &Placement) -> u32 {
    placement.homes().filter(|home| placement.has_goal(home.home())).count() as u32
}

/// What is known of a change, given what the member with the name `leader` has said.
fn facts_heard(said: Result<Answer, String>, leader: Option<String>, placement: &Placement) -> RingChangeFacts {
    match said {
        Ok(Answer::RingChange(Some(facts))) => *facts,
        // It has not ended its first round yet.
        Ok(Answer::RingChange(None)) => RingChangeFacts { driver: leader, ..facts_of_placement(placement) },
        _ => facts_of_placement(placement),
    }
}

fn facts_of_placement(placement: &Placement) -> RingChangeFacts {
    RingChangeFacts {
        homes: placement.size().get(),
        done: done(placement),
        changing: placement.homes().filter(|home| home.is_changing()).count() as u32,
        ..RingChangeFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_ring::{Ring, RingVersion};

    #[test]
    fn a_leader_that_answers_is_the_driver_also_before_its_first_round_has_ended() {
        let ring = Ring::from_owners(&[NodeId::new(1); 8], RingVersion::first(1)).unwrap();
        let placement = Placement::of_ring(Arc::new(ring));
        let driver = |said| facts_heard(said, Some("a".to_owned()), &placement).driver;
        assert_eq!(driver(Ok(Answer::RingChange(None))), Some("a".to_owned()));
        let facts = RingChangeFacts { driver: Some("b".to_owned()), ..facts_of_placement(&placement) };
        assert_eq!(driver(Ok(Answer::RingChange(Some(Box::new(facts))))), Some("b".to_owned()));
        assert_eq!(driver(Err("no answer".to_owned())), None);
    }
}
