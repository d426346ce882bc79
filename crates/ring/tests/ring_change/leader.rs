//! The leader of the metadata: it asks for reports, and proposes what the driver decides. Leaders
//! change, and proposals come late or never.

use super::broken::Broken;
use super::member::Member;
use super::model::{Answer, Message, State};
use super::world::{Event, SECOND, World};
use ombak_ring::Ring;
use ombak_ring::placement::{Decision, Heard, Obstacle, Placement, Situation, StepOf};
use ombak_ring::staging::{Change, ClusterView, Joiner, MemberStatus, Members, StagedChanges, mark_down, plan};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// An entry of the metadata.
pub enum Entry {
    Steps(Vec<StepOf>),
    Goal(Vec<Change>),
    Down(NodeId),
    Up(NodeId),
    Exiting(NodeId),
    Gone(NodeId),
}

pub struct Leader {
    node: NodeId,
    term: u64,
    since: u64,
    question: u64,
    heard: BTreeMap<NodeId, (Answer, u64)>,
    /// The first question after everybody had confirmed that a member exits.
    exits: BTreeMap<NodeId, u64>,
    pub obstacles: BTreeMap<Obstacle, Vec<u32>>,
}

impl Leader {
    pub fn new(node: NodeId) -> Self {
        let (heard, exits, obstacles) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { node, term: 1, since: 0, question: 0, heard, exits, obstacles }
    }

    pub fn hear(&mut self, to: NodeId, from: NodeId, term: u64, answer: Answer, now: u64) {
        if (to, term) == (self.node, self.term) {
            // Answers pass each other.
            let is_newest = self.heard.get(&from).is_none_or(|(last, _)| last.question < answer.question);
            if is_newest {
                self.heard.insert(from, (answer, now));
            }
        }
    }
}

impl World {
    pub fn elect(&mut self) {
        let alive: Vec<NodeId> =
            self.shared.now().members.keys().copied().filter(|node| self.is_alive(*node)).collect();
        if let Some(node) = self.rng.pick(&alive) {
            let term = self.leader.term + 1;
            self.leader = Leader { term, since: self.now, ..Leader::new(node) };
        }
    }

    pub fn lead(&mut self) {
        self.at(SECOND, Event::Lead);
        let can_lead = self.is_alive(self.leader.node) && self.shared.now().members.contains_key(&self.leader.node);
        if !can_lead && self.rng.percent(30) || self.rng.percent(1) {
            self.elect();
        }
        if !self.is_alive(self.leader.node) || !self.shared.now().members.contains_key(&self.leader.node) {
            return;
        }
        let (leader, term, last) = (self.leader.node, self.leader.term, self.shared.log.len() - 1);
        self.leader.question += 1;
        let question = self.leader.question;
        let mut decision = self.decide();
        self.leader.obstacles = std::mem::take(&mut decision.obstacles);
        for node in self.shared.now().members.keys().copied().collect::<Vec<_>>() {
            if self.is_healed || self.rng.percent(70) {
                self.send(leader, node, Message::Metadata { last });
            }
            let orders = decision.proofs.remove(&node).unwrap_or_default();
            self.send(leader, node, Message::Question { term, question, orders });
        }
        if !decision.steps.is_empty() {
            self.propose(Entry::Steps(decision.steps));
        }
        self.propose_statuses();
    }

    fn propose(&mut self, entry: Entry) {
        if self.is_healed || !self.rng.percent(10) {
            let delay = if self.rng.percent(5) { self.rng.within(1, 6 * SECOND) } else { self.rng.within(1, 300) };
            self.at(delay, Event::Append(entry));
        }
    }

    fn heard(&self) -> BTreeMap<NodeId, Heard> {
        let state = self.shared.now();
        let heard = state.members.keys().map(|node| {
            let last = self.leader.heard.get(node);
            let silent_for = Duration::from_millis(self.now - last.map_or(self.leader.since, |(_, at)| *at));
            let mut report = last.map(|(answer, _)| answer.report.clone());
            if let Some(report) = report.as_mut().filter(|_| self.shared.is_broken(Broken::NoConfirmations)) {
                report.confirmed = state.placement.version();
            }
            (*node, Heard { report, silent_for })
        });
        heard.collect()
    }

    fn decide(&self) -> Decision {
        let State { placement, members } = self.shared.now();
        let mut members = members.clone();
        if self.shared.is_broken(Broken::DownIsRemoved) {
            members.retain(|_, status| *status != MemberStatus::Down);
        }
        Situation { placement, members: &members, ns: &self.shared.ns, heard: &self.heard() }.decide()
    }

    /// A member that was marked as down and reports is up. A member that leaves exits when it holds
    /// and owes nothing. It goes when everybody knows that, and when it still holds nothing then.
    fn propose_statuses(&mut self) {
        let state = self.shared.now().clone();
        for (node, status) in &state.members {
            let Some((answer, at)) = self.leader.heard.get(node) else { continue };
            let is_fresh = self.now - at < 3 * SECOND;
            match status {
                MemberStatus::Down if is_fresh => self.propose(Entry::Up(*node)),
                MemberStatus::Leaving => {
                    let knows = answer.report.confirmed == state.placement.version();
                    if state.placement.is_settled() && answer.is_empty && knows && is_fresh {
                        self.propose(Entry::Exiting(*node));
                    }
                }
                MemberStatus::Exiting => {
                    let since = self.shared.log.iter().rposition(|state| state.status(*node) != Some(*status));
                    let since = since.map_or(0, |entry| entry + 1);
                    let know = |peer: &NodeId| {
                        let answer = self.leader.heard.get(peer);
                        peer == node || answer.is_some_and(|(answer, _)| answer.confirmed_entry >= since)
                    };
                    let all_know = state.members.keys().all(know);
                    if all_know {
                        let question = self.leader.question;
                        let asked_after = *self.leader.exits.entry(*node).or_insert(question);
                        if answer.is_empty && answer.question > asked_after {
                            self.propose(Entry::Gone(*node));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    pub fn append(&mut self, entry: Entry) {
        let State { placement, mut members } = self.shared.now().clone();
        let mut next = placement.clone();
        let mut taken = Vec::new();
        match entry {
            Entry::Steps(steps) => match placement.after(&steps) {
                Some(after) => (next, taken) = (after, steps),
                None => return,
            },
            Entry::Goal(changes) => return self.append_goal(&changes),
            Entry::Down(node) => {
                let Ok(marked) = mark_down(&members, node, self.is_alive(node)) else { return };
                if members[&node] != MemberStatus::Valid {
                    return;
                }
                self.oracle.forget_overlap();
                members = marked;
            }
            Entry::Up(node) if members.get(&node) == Some(&MemberStatus::Down) => {
                members.insert(node, MemberStatus::Valid);
            }
            Entry::Exiting(node) if members.get(&node) == Some(&MemberStatus::Leaving) && next.is_settled() => {
                members.insert(node, MemberStatus::Exiting);
            }
            Entry::Gone(node) => {
                if members.remove(&node).is_none() {
                    return;
                }
                if let Some(gone) = self.members.remove(&node) {
                    self.oracle.written_over.extend(gone.marking.written_over);
                }
            }
            Entry::Up(_) | Entry::Exiting(_) => return,
        }
        self.shared.log.push(State { placement: next, members });
        self.oracle.check_steps(&self.shared, &self.members, &taken);
    }

    fn append_goal(&mut self, changes: &[Change]) {
        let State { placement, members } = self.shared.now().clone();
        let Some((goal, after)) = planned(&placement, &members, changes) else { return };
        let goal = self.with_more_moves(goal);
        let Ok(placement) = placement.with_goal(Arc::new(goal), &self.shared.ns) else { return };
        self.shared.log.push(State { placement, members: after.clone() });
        for node in members.keys().filter(|node| !after.contains_key(node)) {
            self.oracle.destroy(&self.shared, &self.members, *node);
            self.members.remove(node);
        }
        let known = self.shared.log.len() - 1;
        for node in after.into_keys() {
            if let std::collections::btree_map::Entry::Vacant(place) = self.members.entry(node) {
                place.insert(Member::new(node, known, self.shared.keys.len()));
                self.at(0, Event::Work(node));
            }
        }
        for key in 0..self.shared.keys.len() {
            self.oracle.check_key(&self.shared, &self.members, key, "another goal");
        }
    }

    /// A plan moves as little as it can. The rules must hold for any goal, so sometimes more moves.
    fn with_more_moves(&mut self, goal: Ring) -> Ring {
        let mut owners: Vec<NodeId> = goal.owners().collect();
        if self.rng.percent(50) {
            for _ in 0..self.rng.within(1, 8) {
                let place = |rng: &mut crate::rng::Rng| rng.within(0, 7) as usize;
                let (one, other) = (place(&mut self.rng), place(&mut self.rng));
                owners.swap(one, other);
            }
        }
        Ring::from_owners(&owners, goal.version()).unwrap_or(goal)
    }
}

/// The next goal and the members after staged changes, if they are accepted.
pub fn planned(placement: &Placement, members: &Members, changes: &[Change]) -> Option<(Ring, Members)> {
    let view = ClusterView {
        ring: placement.goal(),
        members,
        claimant: None,
        is_converged: true,
        target_n_val: 3,
        target_location_n_val: 1,
        locations: &ombak_ring::Locations::new(),
    };
    let mut staged = StagedChanges::default();
    for change in changes {
        let accepted = match *change {
            Change::Join { node } => staged.join(&view, Joiner { node, ring_size: view.ring.size(), is_alone: true }),
            other => staged.stage(&view, other),
        };
        accepted.ok()?;
    }
    let plan = plan(&view, &staged).ok()?;
    let owners: Vec<NodeId> = plan.ring.owners().collect();
    Some((Ring::from_owners(&owners, placement.version().next()).ok()?, plan.members))
}
