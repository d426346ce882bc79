//! Coordination of a read: which replicas are asked for what, when the client is answered, and
//! which replicas are repaired.

mod core;
mod plan;
#[cfg(test)]
mod properties;

pub use self::core::{Answer, Ask, GetAction, GetActions, GetCore, GetEvent};
pub use self::plan::GetPlan;
