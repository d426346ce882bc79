//! Coordination of a read: what is asked of whom, when the client is answered, who is repaired.

mod core;
mod plan;
#[cfg(test)]
mod properties;

pub use self::core::{Answer, Ask, GetAction, GetActions, GetCore, GetEvent};
pub use self::plan::GetPlan;
