//! The read coordinator: a state machine without I/O, clock or randomness.
//!
//! It asks every replica for its head, except that its own node is asked for the whole object at
//! once. When enough answers have arrived, it reads the values that it lacks, once each, and
//! replies. The remaining answers arrive later and decide which replicas are repaired.
//!
//! Invariants: there is exactly one reply, at the latest with [`GetEvent::Timeout`]. A value in the
//! reply belongs to a copy whose clock descends the clock of that copy's head
//! (docs/design/replication.md §13). No action follows [`GetAction::Done`].

use super::plan::GetPlan;
use crate::coordination::{Replica, Tally, expiry};
use crate::interface::GetReply;
use ombak_types::{Error, Object, StoreFailure, StoreFailureKind};
use smallvec::{SmallVec, smallvec};

/// The data that a replica is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The clock and the metadata.
    Head,
    /// The clock, the metadata and the values.
    Object,
}

/// The answer of a replica.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The whole object.
    Object(Object),
    /// The object without its values.
    Head(Object),
    /// The replica does not have the key.
    NotFound {
        /// Whether this replica is known to hold everything of its class: only then does its "not
        /// found" prove absence.
        full: bool,
    },
    /// The replica failed to answer.
    Failed(Error),
}

/// An event of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum GetEvent {
    /// A replica answered the last question.
    Answer {
        /// The index of the replica in the request's list.
        replica: usize,
        /// The answer.
        answer: Answer,
    },
    /// The time limit passed.
    Timeout,
}

/// An action that the runtime must execute.
#[derive(Clone, Debug, PartialEq)]
pub enum GetAction {
    /// Ask a replica.
    Ask {
        /// The index of the replica in the request's list.
        replica: usize,
        /// The data to ask for.
        ask: Ask,
    },
    /// Answer the client.
    Reply(Result<GetReply, Error>),
    /// Send a replica the version that it lacks, to be merged by clock.
    Repair {
        /// The index of the replica in the request's list.
        replica: usize,
        /// The version that it lacks.
        object: Object,
    },
    /// No further action follows.
    Done,
}

/// The actions of one step.
pub type GetActions = SmallVec<[GetAction; 3]>;

#[derive(Debug)]
enum CopyState {
    Waiting,
    NotFound,
    Failed,
    Found { object: Object, body: BodyState },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    Here,
    NotAsked,
    Asked,
    Unreadable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client is waiting.
    Replying,
    /// The client was answered; replicas may still need repair.
    Repairing,
    Done,
}

/// The newest version, merged from all copies that no other copy dominates.
enum Newest {
    Ready(Object),
    /// The values of these replicas must be asked for. The list is empty while the values are on
    /// their way.
    MissingValues(SmallVec<[usize; 4]>),
    /// A version is known, but no replica can read its values.
    Unreadable,
    Absent,
}

/// One active read.
#[derive(Debug)]
pub struct GetCore {
    plan: GetPlan,
    replicas: SmallVec<[Replica; 3]>,
    copies: SmallVec<[CopyState; 3]>,
    ok: Tally,
    missing: Tally,
    failed: Tally,
    phase: Phase,
    /// The failure of the last replica that failed to answer.
    failure: Option<Error>,
}

impl GetCore {
    /// Starts a read of `replicas`. Returns the first actions.
    pub fn start(plan: GetPlan, replicas: &[Replica]) -> (Self, GetActions) {
        let core = Self {
            plan,
            replicas: SmallVec::from_slice(replicas),
            copies: replicas.iter().map(|_| CopyState::Waiting).collect(),
            ok: Tally::default(),
            missing: Tally::default(),
            failed: Tally::default(),
            phase: Phase::Replying,
            failure: None,
        };
        let whole = |i: usize| plan.local == Some(i) && !plan.head;
        let ask = |i: usize| if whole(i) { Ask::Object } else { Ask::Head };
        let actions = (0..replicas.len()).map(|replica| GetAction::Ask { replica, ask: ask(replica) }).collect();
        (core, actions)
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
        let mut actions = match (self.phase, self.newest()) {
            (Phase::Replying, _) => smallvec![GetAction::Reply(Err(Error::Timeout))],
            (_, Newest::Ready(object)) => self.repairs(&object),
            _ => SmallVec::new(),
        };
        self.finish(&mut actions);
        actions
    }

    fn finish(&mut self, actions: &mut GetActions) {
        self.phase = Phase::Done;
        actions.push(GetAction::Done);
    }

    /// Records an answer. Returns false when no answer of this replica was expected.
    fn record(&mut self, replica: usize, answer: Answer) -> bool {
        let (Some(copy), Some(&weight)) = (self.copies.get_mut(replica), self.replicas.get(replica)) else {
            return false;
        };
        match copy {
            CopyState::Waiting => {
                *copy = match answer {
                    Answer::Object(object) => CopyState::Found { object, body: BodyState::Here },
                    Answer::Head(object) => CopyState::Found { object, body: BodyState::NotAsked },
                    Answer::NotFound { full } => {
                        let counts = full && self.plan.notfound_ok;
                        if counts {
                            self.ok.add(weight)
                        } else {
                            self.missing.add(weight)
                        }
                        *copy = CopyState::NotFound;
                        return true;
                    }
                    Answer::Failed(error) => {
                        self.failed.add(weight);
                        self.failure = Some(error);
                        *copy = CopyState::Failed;
                        return true;
                    }
                };
                self.ok.add(weight);
                true
            }
            CopyState::Found { object, body } if *body == BodyState::Asked => {
                match answer {
                    Answer::Object(whole) if whole.clock.descends(&object.clock) => {
                        *object = whole;
                        *body = BodyState::Here;
                    }
                    // The values are corrupt or gone, or belong to an older version than the
                    // replica's head.
                    _ => *body = BodyState::Unreadable,
                }
                true
            }
            _ => false,
        }
    }

    fn advance(&mut self) -> GetActions {
        let mut actions = SmallVec::new();
        if self.phase == Phase::Replying {
            let Some(reply) = self.reply(&mut actions) else { return actions };
            actions.push(GetAction::Reply(reply));
            self.phase = Phase::Repairing;
        }
        if self.all_answered() {
            self.repair(&mut actions);
        }
        actions
    }

    /// The answer to the client, if it is already known. Asks for values that it still lacks.
    fn reply(&mut self, actions: &mut GetActions) -> Option<Result<GetReply, Error>> {
        let plan = &self.plan;
        let ok = &self.ok;
        let met = ok.positions >= plan.r && ok.primaries >= plan.pr && ok.nodes >= plan.node_confirms;
        if !met {
            let against = self.missing.positions + self.failed.positions;
            let given_up = against >= plan.fail_threshold || self.all_answered();
            return given_up.then(|| self.refusal());
        }
        match self.newest() {
            Newest::Ready(object) => Some(Ok(self.found(object))),
            Newest::Absent => Some(Ok(GetReply::NotFound { tombstone: None })),
            Newest::MissingValues(replicas) => {
                self.ask_bodies(&replicas, actions);
                None
            }
            // Another replica may still have the values.
            Newest::Unreadable if !self.all_answered() => None,
            Newest::Unreadable => Some(Err(Error::Storage(StoreFailure::new(
                StoreFailureKind::Unreadable,
                "the newest version cannot be read",
            )))),
        }
    }

    fn refusal(&mut self) -> Result<GetReply, Error> {
        // The error of the only replica says more than a missed quorum.
        if self.replicas.len() == 1
            && let Some(error) = self.failure.take()
        {
            return Err(error);
        }
        let (plan, ok) = (self.plan, self.ok);
        if ok.positions >= plan.r && ok.primaries < plan.pr {
            return Err(Error::QuorumUnsatisfied { option: "pr", need: plan.pr, got: ok.primaries });
        }
        if ok.positions >= plan.r {
            return Err(Error::InsufficientNodes { have: ok.nodes, need: plan.node_confirms });
        }
        let alive = |c: &CopyState| matches!(c, CopyState::Found { object, .. } if !object.is_absent(plan.now));
        if self.failed.positions == 0 && !self.copies.iter().any(alive) {
            let tombstone = match self.newest() {
                Newest::Ready(object) => Some(object.clock),
                _ => None,
            };
            return Ok(GetReply::NotFound { tombstone });
        }
        Err(Error::QuorumUnsatisfied { option: "r", need: plan.r, got: ok.positions })
    }

    fn found(&self, mut object: Object) -> GetReply {
        if self.plan.newest_only {
            object.keep_newest();
        }
        // Expired siblings are dropped after the newest was chosen: a replaced sibling must not
        // reappear when the newest expires.
        let is_expired = !object.is_deleted() && object.is_absent(self.plan.now);
        if is_expired {
            return GetReply::NotFound { tombstone: None };
        }
        expiry::show(&mut object, self.plan.now);
        if object.is_deleted() {
            let has_tombstone = !object.siblings.is_empty();
            return GetReply::NotFound { tombstone: has_tombstone.then_some(object.clock) };
        }
        if self.plan.head {
            object.siblings.iter_mut().for_each(|s| s.value.clear());
        }
        GetReply::Found(object)
    }

    fn ask_bodies(&mut self, replicas: &[usize], actions: &mut GetActions) {
        for &replica in replicas {
            if let Some(CopyState::Found { body, .. }) = self.copies.get_mut(replica) {
                *body = BodyState::Asked;
                actions.push(GetAction::Ask { replica, ask: Ask::Object });
            }
        }
    }

    fn all_answered(&self) -> bool {
        !self.copies.iter().any(|c| matches!(c, CopyState::Waiting))
    }

    fn repair(&mut self, actions: &mut GetActions) {
        if self.copies.len() > 1 {
            match self.newest() {
                Newest::Ready(object) => actions.extend(self.repairs(&object)),
                Newest::MissingValues(replicas) => {
                    self.ask_bodies(&replicas, actions);
                    return;
                }
                Newest::Unreadable | Newest::Absent => {}
            }
        }
        self.finish(actions);
    }

    /// Sends `newest` to every owner that is behind. Fallbacks are not repaired: old copies must not
    /// pass between them (docs/design/replication.md §6).
    fn repairs(&self, newest: &Object) -> GetActions {
        let behind = |i: &usize| match &self.copies[*i] {
            _ if self.replicas[*i].primaries == 0 => false,
            CopyState::Found { object, .. } => newest.clock.dominates(&object.clock),
            CopyState::NotFound => true,
            CopyState::Waiting | CopyState::Failed => false,
        };
        let repair = |replica| GetAction::Repair { replica, object: newest.clone() };
        (0..self.copies.len()).filter(behind).map(repair).collect()
    }

    fn head_of(&self, i: usize) -> Option<(&Object, BodyState)> {
        match self.copies.get(i) {
            Some(CopyState::Found { object, body }) => Some((object, *body)),
            _ => None,
        }
    }

    /// Merges the copies that no other copy dominates.
    fn newest(&mut self) -> Newest {
        if let [CopyState::Found { object, body: BodyState::Here }] = self.copies.as_mut_slice() {
            // This is the only replica, so its copy is not needed afterwards.
            return Newest::Ready(std::mem::take(object));
        }
        let frontier = self.frontier();
        if frontier.is_empty() {
            return Newest::Absent;
        }
        let heads_suffice = self.heads_suffice(&frontier);
        let mut chosen: SmallVec<[usize; 4]> = SmallVec::new();
        let mut missing: SmallVec<[usize; 4]> = SmallVec::new();
        let mut on_the_way = false;
        for &i in &frontier {
            let Some(source) = (if heads_suffice { Some(i) } else { self.source_of(i) }) else {
                return Newest::Unreadable;
            };
            match self.head_of(source) {
                Some((_, BodyState::NotAsked)) if !heads_suffice => missing.push(source),
                Some((_, BodyState::Asked)) if !heads_suffice => on_the_way = true,
                _ => chosen.push(source),
            }
        }
        if on_the_way || !missing.is_empty() {
            return Newest::MissingValues(missing);
        }
        let mut merged = Object::default();
        for i in chosen {
            if let Some((object, _)) = self.head_of(i) {
                merged.merge(object.clone(), self.plan.dvv);
            }
        }
        Newest::Ready(merged)
    }

    /// Whether the heads suffice. They do when all copies are tombstones. They also do when the
    /// request wants no values, no replica will be sent any, and there are no siblings, whose order
    /// depends on the values.
    fn heads_suffice(&self, frontier: &[usize]) -> bool {
        let (mut siblings, mut all_deleted) = (0, true);
        for (object, _) in frontier.iter().filter_map(|&i| self.head_of(i)) {
            siblings += object.siblings.len();
            all_deleted &= object.is_deleted();
        }
        (self.plan.head && self.phase == Phase::Replying && siblings <= 1) || all_deleted
    }

    /// One copy of each version that no other copy dominates.
    fn frontier(&self) -> SmallVec<[usize; 4]> {
        let mut out: SmallVec<[usize; 4]> = SmallVec::new();
        for i in 0..self.copies.len() {
            let Some((object, _)) = self.head_of(i) else { continue };
            let known = |&j: &usize| self.head_of(j).is_some_and(|(other, _)| other.clock.descends(&object.clock));
            if out.iter().any(known) {
                continue;
            }
            out.retain(|j| self.head_of(*j).is_none_or(|(other, _)| !object.clock.descends(&other.clock)));
            out.push(i);
        }
        out
    }

    /// The replica whose values are used for the version of replica `i`: first a replica whose
    /// values have arrived, then one whose values are on their way, then this node, then any other.
    fn source_of(&self, i: usize) -> Option<usize> {
        let wanted = self.head_of(i)?.0;
        let rank = |j: usize| {
            let (object, body) = self.head_of(j)?;
            let usable = object.clock.descends(&wanted.clock) && body != BodyState::Unreadable;
            let distance = match body {
                BodyState::Here => 0,
                BodyState::Asked => 1,
                _ if self.plan.local == Some(j) => 2,
                _ => 3,
            };
            usable.then_some((distance, j))
        };
        (0..self.copies.len()).filter_map(rank).min().map(|(_, j)| j)
    }
}
