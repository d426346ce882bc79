//! Changes of the members while faults last: what operators do in a run, and what it takes where
//! engines are connected by single messages.
//!
//! What it is: [`Operator`] decides what happens when. `commands` gives the commands to members.
//! `decided`, `follower` and `driver` stand for the metadata where there are no members.
//!
//! What it is not: the goals and the steps come from the production code, also without members.

mod brought;
mod commands;
mod decided;
mod driver;
mod follower;
mod full_leavers;
mod leavers;
mod operator;
mod returns;
mod wanted;

pub(crate) use decided::{Decided, DecidedState};
pub(crate) use driver::Driver;
pub(crate) use follower::Follower;
pub(crate) use operator::Operator;
pub use wanted::ChangeKind;
