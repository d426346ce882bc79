//! Which nodes hold each home partition, also while the ring changes (docs/design/ring-changes.md).
//!
//! What it is: a [`Placement`], the steps of a change, and the driver's rules as a pure state
//! machine. A placement has one ring in force for each home, and at most one other ring.
//!
//! What it is not: it sends nothing and stores nothing, and it does not choose the goal.
//!
//! Invariants:
//! * The version rises with each change, and the home version of exactly those homes that changed.
//! * A home has at most one ring beside the one in force.
//! * Ring slots never move one at a time: a home goes from one ring to another as a whole.

mod driver;
#[cfg(test)]
mod driver_tests;
mod home;
mod home_change;
mod obstacle;
#[expect(clippy::module_inception, reason = "the main type of the folder")]
mod placement;
mod report;
mod saved;
#[cfg(test)]
mod tests;

pub use driver::{Decision, Heard, ProofOrder, SILENCE_MAX, Situation, UP_WITHIN};
pub use home::{HomePlacement, Phase};
pub use obstacle::Obstacle;
pub use placement::{Placement, PlacementError, Step, StepOf};
pub use report::{LackingHome, ProvedHome, Report};
