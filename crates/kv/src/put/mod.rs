//! Coordination of a write: who stores first, who stores then, when the client is answered.

mod core;
mod plan;
#[cfg(test)]
mod properties;

pub use self::core::{PutAction, PutActions, PutCore, PutEvent};
pub use self::plan::PutPlan;
