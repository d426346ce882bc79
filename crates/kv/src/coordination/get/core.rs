//! The read coordinator: a state machine without I/O, clock or randomness.
//!
//! It asks every replica for its head, except that its own node is asked for the whole object at
//! once. When enough answers have arrived, it reads the values that it lacks, once each, and
//! replies. The remaining answers arrive later and decide which replicas are repaired.
//!
//! The "not found" of a stand-in counts only after every owner has answered or is late
//! (docs/design/replication.md §14): a stand-in cannot know what an owner that is slow has. A late
//! answer counts neither for nor against the read. So the outcome does not depend on which clock
//! first tells that the time is over.
//!
//! Two copies are the same version if their digests are equal, which the replicas tell with their
//! answers. So copies with equal clocks and different contents are repaired, too, and replicas that
//! agree cost a comparison of numbers.
//!
//! Invariants: there is exactly one reply, at the latest with [`GetEvent::Timeout`]. A value in the
//! reply belongs to a copy whose clock descends the clock of that copy's head
//! (docs/design/replication.md §13). No action follows [`GetAction::Done`].

use super::actions::{GetAction, GetActions};
use super::copies::Copies;
use super::copy::{BodyState, CopyState};
use super::events::{Answer, Ask, GetEvent};
use super::newest::Newest;
use super::plan::GetPlan;
use super::refusal::unmet;
use super::reply::reply_with;
use super::votes::Votes;
use crate::coordination::Replica;
use crate::hooks::ValueKind;
use crate::requests::GetReply;
use ombak_types::{Error, StoreFailure, StoreFailureKind, VectorClock};
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client is waiting.
    Replying,
    /// The client was answered; replicas may still need repair.
    Repairing,
    Done,
}

/// One active read.
#[derive(Debug)]
pub struct GetCore {
    plan: GetPlan,
    copies: Copies,
    votes: Votes,
    /// The kind of the bucket's values, if they merge into one.
    values: Option<Arc<dyn ValueKind>>,
    phase: Phase,
}

impl GetCore {
    /// Starts a read of `replicas`. Returns the first actions.
    pub fn start(plan: GetPlan, replicas: &[Replica]) -> (Self, GetActions) {
        let copies = Copies::new(replicas, plan.local);
        let core = Self { plan, copies, votes: Votes::new(), values: None, phase: Phase::Replying };
        let whole = |i: usize| plan.local == Some(i) && !plan.head;
        let ask = |i: usize| if whole(i) { Ask::Object } else { Ask::Head };
        let actions = (0..replicas.len()).map(|replica| GetAction::Ask { replica, ask: ask(replica) }).collect();
        (core, actions)
    }

    /// Merges concurrent values into one, by their kind.
    pub(crate) fn of_kind(self, values: Option<Arc<dyn ValueKind>>) -> Self {
        Self { values, ..self }
    }

    /// The clock of the copy of a replica, if it has found one.
    pub(crate) fn clock_of(&self, replica: usize) -> Option<&VectorClock> {
        self.copies.found(replica).map(|copy| &copy.object.clock)
    }

    /// Processes an event and returns the next actions. Unexpected answers are ignored.
    pub fn on(&mut self, event: GetEvent) -> GetActions {
        match event {
            _ if self.phase == Phase::Done => SmallVec::new(),
            GetEvent::Answer { replica, answer } => {
                if self.record(replica, answer) {
                    self.advance()
                } else {
                    SmallVec::new()
                }
            }
            GetEvent::Timeout => self.time_out(),
        }
    }

    fn time_out(&mut self) -> GetActions {
        self.copies.time_out();
        self.count_held_answers();
        let mut actions = GetActions::new();
        if self.phase == Phase::Replying {
            let reply = self.reply(&mut actions).unwrap_or(Err(Error::Timeout));
            // No further question is asked after the time.
            actions.clear();
            actions.push(GetAction::Reply(reply));
            self.phase = Phase::Repairing;
        }
        if self.copies.len() > 1
            && let Newest::Ready(object, digest) = self.copies.newest(false)
        {
            actions.extend(self.copies.repairs(&object, digest));
        }
        self.finish(&mut actions);
        actions
    }

    fn finish(&mut self, actions: &mut GetActions) {
        self.phase = Phase::Done;
        actions.push(GetAction::Done);
    }

    /// Records an answer. Returns false when no answer of this replica was expected.
    fn record(&mut self, replica: usize, answer: Answer) -> bool {
        match self.copies.of_replica(replica) {
            Some((copy @ CopyState::Waiting, weight)) => {
                *copy = self.votes.count(answer, weight, &self.plan);
                self.count_held_answers();
                true
            }
            Some((CopyState::Found(copy), _)) if copy.body == BodyState::Asked => {
                copy.take_values(answer);
                true
            }
            _ => false,
        }
    }

    /// Counts what stand-ins have not found, once every owner has answered or is late.
    fn count_held_answers(&mut self) {
        self.copies.release_held(|weight| self.votes.not_found(weight, self.plan.notfound_ok));
    }

    fn advance(&mut self) -> GetActions {
        let mut actions = SmallVec::new();
        if self.phase == Phase::Replying {
            let Some(reply) = self.reply(&mut actions) else { return actions };
            actions.push(GetAction::Reply(reply));
            self.phase = Phase::Repairing;
        }
        if self.copies.all_answered() {
            self.repair(&mut actions);
        }
        actions
    }

    /// The answer to the client, if it is already known. Asks for values that it still lacks.
    fn reply(&mut self, actions: &mut GetActions) -> Option<Result<GetReply, Error>> {
        let plan = &self.plan;
        let ok = &self.votes.ok;
        let met = ok.positions >= plan.r && ok.primaries >= plan.pr && ok.nodes >= plan.node_confirms;
        if !met {
            return unmet(plan, &mut self.votes, &mut self.copies);
        }
        match self.copies.newest(plan.head) {
            Newest::Ready(object, _) => Some(reply_with(object, plan, self.values.as_deref())),
            Newest::Absent => Some(Ok(GetReply::NotFound { tombstone: None })),
            Newest::MissingValues(replicas) => {
                self.ask_values(&replicas, actions);
                None
            }
            // Another replica may still have the values.
            Newest::Unreadable if !self.copies.all_answered() => None,
            Newest::Unreadable if self.copies.is_anything_late() => Some(Err(Error::Timeout)),
            Newest::Unreadable if self.copies.is_body_busy() => Some(Err(Error::Overload)),
            Newest::Unreadable => Some(Err(Error::Storage(StoreFailure::new(
                StoreFailureKind::Unreadable,
                "the newest version cannot be read",
            )))),
        }
    }

    fn ask_values(&mut self, replicas: &[usize], actions: &mut GetActions) {
        for &replica in replicas {
            if self.copies.ask_values(replica) {
                actions.push(GetAction::Ask { replica, ask: Ask::Object });
            }
        }
    }

    fn repair(&mut self, actions: &mut GetActions) {
        if self.copies.len() > 1 && !self.copies.all_agree() {
            match self.copies.newest(false) {
                Newest::Ready(object, digest) => actions.extend(self.copies.repairs(&object, digest)),
                Newest::MissingValues(replicas) => {
                    self.ask_values(&replicas, actions);
                    return;
                }
                Newest::Unreadable | Newest::Absent => {}
            }
        }
        self.finish(actions);
    }
}
