//! The write coordinator: a state machine without I/O, clock or randomness.
//!
//! The coordinating replica stores first, under a new event; the other replicas then get the
//! version that it stored. Without a coordinator (`asis`, `write_once`) all replicas get the object
//! at once. An acknowledgement means that the write call has returned, and also the sync where the
//! request asks for one. It counts for `w` and `dw` alike.
//!
//! A coordinating replica that fails has made the event nevertheless: what failed is its sync. (A
//! node that refuses to coordinate never gets here.) So the others get the version.
//!
//! While the home of the key changes, each quorum must be met in two sets
//! (docs/design/ring-changes.md). A replica that knows a newer placement has the object counted
//! anew, among the replicas of that placement.
//!
//! A late answer counts neither for nor against the write. So the outcome does not depend on which
//! clock first tells that the time is over.
//!
//! Invariants: there is exactly one reply, at the latest with [`PutEvent::Timeout`]. Nothing is
//! sent to the other replicas before the coordinator has answered. No action follows
//! [`PutAction::Done`].

use super::plan::PutPlan;
use crate::coordination::{CountedSets, Replica, ReplicaFailure, Tallies};
use ombak_types::Error;
use smallvec::{SmallVec, smallvec};

/// An event of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum PutEvent {
    /// A replica has stored the object.
    Stored {
        /// The index of the replica in the request's list.
        replica: usize,
    },
    /// A replica failed to store the object.
    Failed {
        /// The index of the replica in the request's list.
        replica: usize,
        /// The error of the replica.
        error: Error,
    },
    /// The condition of the put does not hold at a replica, which has not stored the object.
    Conflict {
        /// The index of the replica in the request's list.
        replica: usize,
    },
    /// The time limit passed.
    Timeout,
}

/// An action that the runtime must execute.
#[derive(Clone, Debug, PartialEq)]
pub enum PutAction {
    /// Let a replica merge the object with its own copy, make an event, and store the result.
    Coordinate {
        /// The index of the replica in the request's list.
        replica: usize,
    },
    /// Let a replica merge the object by clock and store the result.
    Store {
        /// The index of the replica in the request's list.
        replica: usize,
    },
    /// Answer the client.
    Reply(Result<(), Error>),
    /// No further action follows.
    Done,
}

/// The actions of one step.
pub type PutActions = SmallVec<[PutAction; 3]>;

/// What a replica has done before a write is counted anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It has not stored the object, as far as is known.
    Nothing,
    /// It has stored the object.
    Stored,
    /// It has failed to store the object, and is not asked again.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ack {
    /// The replica was not asked yet.
    Idle,
    Waiting,
    Stored,
    Failed,
    /// The answer did not come in time.
    Late,
}

/// One active write.
#[derive(Debug)]
pub struct PutCore {
    plan: PutPlan,
    replicas: SmallVec<[(Replica, Ack); 3]>,
    stored: Tallies,
    /// The replicas that have stored the object or may still store it.
    possible: Tallies,
    /// Whether all replicas that failed did so because a queue was full: then the client is told to
    /// retry.
    only_busy: bool,
    /// Whether the condition of the put did not hold at a replica.
    is_in_conflict: bool,
    replied: bool,
    done: bool,
}

impl PutCore {
    /// Starts a write to `replicas`. Returns the first actions.
    pub fn start(plan: PutPlan, replicas: &[Replica]) -> (Self, PutActions) {
        let mut core = Self {
            plan,
            replicas: replicas.iter().map(|r| (*r, Ack::Idle)).collect(),
            stored: Tallies::none(plan.sets),
            possible: Tallies::of(plan.sets, replicas.iter().copied()),
            only_busy: true,
            is_in_conflict: false,
            replied: false,
            done: false,
        };
        let actions = match plan.coordinator.and_then(|i| Some((i, core.replicas.get_mut(i)?))) {
            Some((replica, (_, ack))) => {
                *ack = Ack::Waiting;
                smallvec![PutAction::Coordinate { replica }]
            }
            None => core.store_at_the_rest(),
        };
        (core, actions)
    }

    /// Counts anew among other replicas, because the home of the key changes. `before` says what
    /// each of them has done already. The version exists, so all others are sent it. Returns the
    /// next actions.
    pub fn recount(&mut self, sets: CountedSets, replicas: &[(Replica, Before)]) -> PutActions {
        if self.done {
            return SmallVec::new();
        }
        (self.plan.sets, self.plan.coordinator) = (sets, None);
        (self.only_busy, self.is_in_conflict) = (true, false);
        (self.stored, self.possible) = (Tallies::none(sets), Tallies::none(sets));
        self.replicas.clear();
        for (replica, before) in replicas {
            let ack = match before {
                Before::Nothing => Ack::Idle,
                Before::Stored => Ack::Stored,
                Before::Failed => Ack::Failed,
            };
            self.only_busy &= ack != Ack::Failed;
            if ack != Ack::Failed {
                self.possible.add(*replica);
            }
            if ack == Ack::Stored {
                self.stored.add(*replica);
            }
            self.replicas.push((*replica, ack));
        }
        let mut actions = SmallVec::new();
        self.reply_if_decided(&mut actions);
        actions.extend(self.store_at_the_rest());
        self.finish_if_settled(&mut actions);
        actions
    }

    /// Whether the client has its answer.
    pub const fn has_replied(&self) -> bool {
        self.replied
    }

    fn store_at_the_rest(&mut self) -> PutActions {
        let idle = self.replicas.iter_mut().enumerate().filter(|(_, (_, ack))| *ack == Ack::Idle);
        idle.map(|(replica, (_, ack))| {
            *ack = Ack::Waiting;
            PutAction::Store { replica }
        })
        .collect()
    }

    /// Processes an event and returns the next actions. Unexpected answers are ignored.
    pub fn on(&mut self, event: PutEvent) -> PutActions {
        match event {
            _ if self.done => SmallVec::new(),
            PutEvent::Stored { replica } => self.on_stored(replica),
            PutEvent::Failed { replica, error } => self.on_failed(replica, error),
            PutEvent::Conflict { replica } => {
                self.is_in_conflict = true;
                self.on_failed(replica, Error::Modified)
            }
            PutEvent::Timeout => {
                let mut actions = SmallVec::new();
                self.reply(Err(Error::Timeout), &mut actions);
                self.finish(&mut actions);
                actions
            }
        }
    }

    fn on_stored(&mut self, replica: usize) -> PutActions {
        let Some((weight, ack @ Ack::Waiting)) = self.replicas.get_mut(replica) else { return SmallVec::new() };
        *ack = Ack::Stored;
        self.stored.add(*weight);
        let mut actions = SmallVec::new();
        self.reply_if_decided(&mut actions);
        actions.extend(self.store_at_the_rest());
        self.finish_if_settled(&mut actions);
        actions
    }

    fn on_failed(&mut self, replica: usize, error: Error) -> PutActions {
        let (failure, is_only) = (ReplicaFailure::of(&error), self.replicas.len() == 1);
        let Some((weight, ack @ Ack::Waiting)) = self.replicas.get_mut(replica) else { return SmallVec::new() };
        if failure == ReplicaFailure::Late {
            *ack = Ack::Late;
        } else {
            *ack = Ack::Failed;
            self.possible.take(*weight);
            self.only_busy &= failure == ReplicaFailure::Busy;
        }
        let mut actions = SmallVec::new();
        if is_only {
            // The error of the only replica says more than a missed quorum.
            self.reply(Err(error), &mut actions);
        }
        self.reply_if_decided(&mut actions);
        actions.extend(self.store_at_the_rest());
        self.finish_if_settled(&mut actions);
        actions
    }

    fn reply_if_decided(&mut self, actions: &mut PutActions) {
        let PutPlan { w, dw, pw, node_confirms, .. } = self.plan;
        let (stored, possible) = (self.stored.least(), self.possible.least());
        let need = [
            ("w", w, stored.positions, possible.positions),
            ("dw", dw, stored.positions, possible.positions),
            ("pw", pw, stored.primaries, possible.primaries),
            ("node_confirms", node_confirms, stored.nodes, possible.nodes),
        ];
        if need.iter().all(|(_, need, got, _)| got >= need) {
            self.reply(Ok(()), actions);
            return;
        }
        let Some(&(option, need, got, _)) = need.iter().find(|(_, need, _, possible)| possible < need) else { return };
        let error = match option {
            _ if self.is_in_conflict && possible.primaries < pw => Error::Modified,
            _ if self.only_busy => Error::Overload,
            "node_confirms" => Error::NodeConfirmsUnsatisfied { need, got },
            option => Error::QuorumUnsatisfied { option, need, got },
        };
        self.reply(Err(error), actions);
    }

    fn reply(&mut self, reply: Result<(), Error>, actions: &mut PutActions) {
        if !self.replied {
            self.replied = true;
            actions.push(PutAction::Reply(reply));
        }
    }

    fn finish_if_settled(&mut self, actions: &mut PutActions) {
        if self.replicas.iter().all(|(_, ack)| matches!(ack, Ack::Stored | Ack::Failed | Ack::Late)) {
            // What is still undecided is so because of late answers.
            self.reply(Err(Error::Timeout), actions);
            self.finish(actions);
        }
    }

    fn finish(&mut self, actions: &mut PutActions) {
        self.done = true;
        actions.push(PutAction::Done);
    }
}
