//! The answers of this node to other nodes that compare, push or reap copies.
//!
//! What it is: what another node may ask, and the place where the engine keeps whoever answers. The
//! crate `ombak-repair` gives the answers to the engine when its handle is made.
//!
//! What it is not: it chooses no thread. `interface/local_replica.rs` runs each answer on the
//! threads that such work has.
//!
//! Invariant: a question that comes before the answers are there is refused as busy, and the other
//! node asks again.

use super::repair_host::RepairHost;
use crate::replica::{
    AskRequest, Compare, Compared, Give, Giving, Push, Pushed, ReapReply, RemoveRequest, Summarize, Summary, Vote,
    VoteRequest,
};
use ombak_runtime::Waited;
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// Answers the questions of other nodes about copies. Each is told the node that is asked. All
/// calls but [`Self::give`] block.
pub trait RepairAnswers: Any + Send + Sync {
    /// Compares versions with those of this node.
    fn compare(&self, here: &dyn RepairHost, question: &Compare) -> Result<Compared, Error>;

    /// Stores copies that another node pushes.
    fn push(&self, here: &dyn RepairHost, copies: &Push) -> Result<Pushed, Error>;

    /// Sums up a class. Ends early when nobody waits for the sums any more.
    fn summarize(&self, here: &dyn RepairHost, question: &Summarize, waited: &Waited<'_>) -> Result<Summary, Error>;

    /// Takes an order to push what another node lacks.
    fn give(&self, here: &dyn RepairHost, order: &Give) -> Result<Giving, Error>;

    /// Compares this primary's copies with the versions that a round is to remove.
    fn vote(&self, here: &dyn RepairHost, question: &VoteRequest) -> Result<ReapReply<Vote>, Error>;

    /// Says whether this member, which is no primary, holds nothing of each key of a round.
    fn ask(&self, here: &dyn RepairHost, question: &AskRequest) -> Result<ReapReply<bool>, Error>;

    /// Removes the versions that are still what this primary has voted on.
    fn remove(&self, here: &dyn RepairHost, order: &RemoveRequest) -> Result<ReapReply<bool>, Error>;
}

/// Whoever answers, once somebody does.
#[derive(Default)]
pub(crate) struct AnswersSlot(OnceLock<Arc<dyn RepairAnswers>>);

impl AnswersSlot {
    /// Whoever answers, or the refusal of the question.
    pub(crate) fn get(&self) -> Result<&dyn RepairAnswers, Error> {
        let starting =
            || StoreFailure::new(StoreFailureKind::Busy, "this node is starting, and compares no copies yet");
        self.0.get().map(|answers| &**answers).ok_or_else(|| starting().into())
    }

    /// Keeps what `make` makes, unless there is something. Returns what there is then.
    pub(super) fn get_or_set(&self, make: &dyn Fn() -> Arc<dyn RepairAnswers>) -> Arc<dyn RepairAnswers> {
        self.0.get_or_init(make).clone()
    }
}
