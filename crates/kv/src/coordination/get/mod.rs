//! Coordination of a read: which replicas are asked for what, when the client is answered, and
//! which replicas are repaired.

mod actions;
mod copies;
mod copy;
mod core;
mod events;
mod newest;
mod plan;
mod refusal;
mod repairs;
mod reply;
#[cfg(test)]
mod tests;
mod votes;

pub use self::actions::{GetAction, GetActions, Lack};
pub use self::core::GetCore;
pub use self::events::{Answer, Ask, GetEvent};
pub use self::plan::GetPlan;
pub(crate) use self::reply::reply_with;
