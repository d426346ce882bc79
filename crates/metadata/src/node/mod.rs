//! A node of the metadata group: starts it, proposes through the leader, and keeps the right number
//! of voters.

mod error;
mod joining;
mod maintenance;
mod metadata_node;
#[cfg(test)]
mod tests;
mod timing;
mod transport;
mod voters;

pub use error::{ProposeError, StartError};
pub use metadata_node::{MetadataNode, Myself, OwnMilestones, Setup};
pub use timing::Timing;
pub use transport::{NoAnswer, RaftTransport};
pub(crate) use voters::Step;
