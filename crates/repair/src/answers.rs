//! The answers of this node to other nodes: the one list of them, and who gives each.

use crate::compare;
use crate::rounds::answers;
use crate::work::Work;
use ombak_kv::repair_host::{RepairAnswers, RepairHost};
use ombak_kv::replica::{
    AskRequest, Compare, Compared, Give, Giving, Push, Pushed, ReapReply, RemoveRequest, Summarize, Summary, Vote,
    VoteRequest,
};
use ombak_runtime::Waited;
use ombak_types::Error;

impl RepairAnswers for Work {
    fn compare(&self, here: &dyn RepairHost, question: &Compare) -> Result<Compared, Error> {
        compare::compare(here, question)
    }

    fn push(&self, here: &dyn RepairHost, copies: &Push) -> Result<Pushed, Error> {
        self.take_push(here, copies)
    }

    fn summarize(&self, here: &dyn RepairHost, question: &Summarize, waited: &Waited<'_>) -> Result<Summary, Error> {
        compare::summarize(here, question, waited)
    }

    fn give(&self, here: &dyn RepairHost, order: &Give) -> Result<Giving, Error> {
        self.take_order(here, order)
    }

    fn vote(&self, here: &dyn RepairHost, question: &VoteRequest) -> Result<ReapReply<Vote>, Error> {
        answers::vote(here, question)
    }

    fn ask(&self, here: &dyn RepairHost, question: &AskRequest) -> Result<ReapReply<bool>, Error> {
        answers::ask(here, question)
    }

    fn remove(&self, here: &dyn RepairHost, order: &RemoveRequest) -> Result<ReapReply<bool>, Error> {
        answers::remove(here, order)
    }
}
