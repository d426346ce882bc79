//! Coordination of a write: which replica stores first, which replicas store next, and when the
//! client is answered.

mod core;
mod plan;
#[cfg(test)]
mod tests;

pub use self::core::{Before, PutAction, PutActions, PutCore, PutEvent};
pub use self::plan::PutPlan;
