//! What a node does when it goes on after a pause: it asks the other members what they hold for it,
//! and answers no read before (docs/cluster.md, "When a node was paused").
//!
//! `watch` notices the pause and asks. `service` answers, and lets what is held be brought at once.

pub(crate) mod messages;
mod service;
mod watch;

pub(crate) use service::HOLDINGS;
pub(crate) use watch::{Watch, watch};
