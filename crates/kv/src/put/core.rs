//! The write coordinator: a state machine without I/O, clock or randomness.
//!
//! The coordinating replica stores first, under a new event; what it stored goes to the others as it is. Without a
//! coordinator (`asis`, `write_once`) everybody gets the object at once. An acknowledgement means that the write call
//! has returned, and the sync where one was asked for; it counts for `w` and `dw` alike.
//!
//! Invariants: exactly one reply, at the latest with [`PutEvent::Timeout`]; nothing is sent to the others before the
//! coordinator stored it; nothing follows [`PutAction::Done`].

use super::plan::PutPlan;
use crate::replica::{Replica, Tally};
use ombak_types::Error;
use smallvec::{SmallVec, smallvec};

/// What happens to a write.
#[derive(Clone, Debug, PartialEq)]
pub enum PutEvent {
    /// A replica has stored it.
    Stored {
        /// Its place in the request's list.
        replica: usize,
    },
    /// A replica has not stored it.
    Failed {
        /// Its place in the request's list.
        replica: usize,
        /// Why not.
        error: Error,
    },
    /// The time limit passed.
    Timeout,
}

/// What the runtime is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum PutAction {
    /// Let a replica merge it with its own copy, make an event, and store it.
    Coordinate {
        /// Its place in the request's list.
        replica: usize,
    },
    /// Let a replica merge it by clock and store it.
    Store {
        /// Its place in the request's list.
        replica: usize,
    },
    /// Answer the client.
    Reply(Result<(), Error>),
    /// Nothing follows.
    Done,
}

/// Actions of one step.
pub type PutActions = SmallVec<[PutAction; 3]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ack {
    /// Not asked yet.
    Idle,
    Waiting,
    Stored,
    Failed,
}

/// One write under way.
#[derive(Debug)]
pub struct PutCore {
    plan: PutPlan,
    replicas: SmallVec<[(Replica, Ack); 3]>,
    stored: Tally,
    /// What has stored it or still may.
    possible: Tally,
    /// Set when all who failed did so for lack of room in a queue: the client is told to come back.
    only_overload: bool,
    replied: bool,
    done: bool,
}

impl PutCore {
    /// A write to `replicas`, and what to do first.
    pub fn start(plan: PutPlan, replicas: &[Replica]) -> (Self, PutActions) {
        let mut core = Self {
            plan,
            replicas: replicas.iter().map(|r| (*r, Ack::Idle)).collect(),
            stored: Tally::default(),
            possible: Tally::of(replicas),
            only_overload: true,
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

    fn store_at_the_rest(&mut self) -> PutActions {
        let idle = self.replicas.iter_mut().enumerate().filter(|(_, (_, ack))| *ack == Ack::Idle);
        idle.map(|(replica, (_, ack))| {
            *ack = Ack::Waiting;
            PutAction::Store { replica }
        })
        .collect()
    }

    /// Takes an event and says what to do. Answers that nobody waits for are passed over.
    pub fn on(&mut self, event: PutEvent) -> PutActions {
        match event {
            _ if self.done => SmallVec::new(),
            PutEvent::Stored { replica } => self.on_stored(replica),
            PutEvent::Failed { replica, error } => self.on_failed(replica, error),
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
        self.judge(&mut actions);
        actions.extend(self.store_at_the_rest());
        self.finish_if_settled(&mut actions);
        actions
    }

    fn on_failed(&mut self, replica: usize, error: Error) -> PutActions {
        let Some((weight, ack @ Ack::Waiting)) = self.replicas.get_mut(replica) else { return SmallVec::new() };
        *ack = Ack::Failed;
        self.possible.positions -= weight.positions;
        self.possible.primaries -= weight.primaries;
        self.possible.nodes -= 1;
        let mut actions = SmallVec::new();
        if self.plan.coordinator == Some(replica) {
            // Nobody else has it: the coordinator's reason is the request's.
            self.reply(Err(error), &mut actions);
            self.finish(&mut actions);
            return actions;
        }
        self.only_overload &= error == Error::Overload;
        self.judge(&mut actions);
        self.finish_if_settled(&mut actions);
        actions
    }

    fn judge(&mut self, actions: &mut PutActions) {
        let PutPlan { w, dw, pw, node_confirms, .. } = self.plan;
        let need = [
            ("w", w, self.stored.positions, self.possible.positions),
            ("dw", dw, self.stored.positions, self.possible.positions),
            ("pw", pw, self.stored.primaries, self.possible.primaries),
            ("node_confirms", node_confirms, self.stored.nodes, self.possible.nodes),
        ];
        if need.iter().all(|(_, need, got, _)| got >= need) {
            self.reply(Ok(()), actions);
            return;
        }
        let Some(&(option, need, got, _)) = need.iter().find(|(_, need, _, possible)| possible < need) else { return };
        let error = match option {
            _ if self.only_overload => Error::Overload,
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
        if self.replicas.iter().all(|(_, ack)| matches!(ack, Ack::Stored | Ack::Failed)) {
            self.finish(actions);
        }
    }

    fn finish(&mut self, actions: &mut PutActions) {
        self.done = true;
        actions.push(PutAction::Done);
    }
}
