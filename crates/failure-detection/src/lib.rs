//! Which nodes of a cluster are up, what nodes tell each other about themselves, and which of them
//! answer requests.
//!
//! What it is:
//! * [`DetectionCore`] detects failures with the SWIM protocol (the library foca) and hands the
//!   [`SoftState`] of each node to the others. It is a state machine: packets and the time go in,
//!   packets and changes come out.
//! * [`RequestHealth`] learns from the outcomes of requests. A peer that answers gossip but no
//!   requests is not up for requests: a stopped process, a link that works one way, a slow disk.
//! * [`LivenessTable`] joins both into one answer that each request reads without a lock.
//! * [`FailureDetector`] runs all of this over a [`Runtime`](ombak_runtime::Runtime) and a
//!   [`DetectionTransport`].
//!
//! What it is not: it does not decide which nodes are members. Members come from outside
//! ([`FailureDetector::set_members`]); a node that is not a member is neither probed nor believed.
//! It has no sockets, and it does not prove who a sender is: the transport does. Nothing here is
//! durable, and nothing that must agree on all nodes may be derived from it.
//!
//! Invariants:
//! * The core has no I/O, reads no clock and draws its randomness from one seed.
//! * Only differences of one node's own clock count. A node that was paused does not take its own
//!   pause for the silence of others ([`config`]).
//! * No bytes of a peer cause a panic, or an allocation that their length does not justify.
//! * Everything that is sent has a version and a limit ([`DetectionConfig`], [`soft_state`]).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod codec;
pub mod config;
mod core;
mod detector;
mod driver;
mod evidence;
pub mod health;
mod liveness;
mod local_clock;
mod packet;
mod process;
mod reader;
pub mod soft_state;
mod state_exchange;
mod timers;
mod transport;
mod view;

pub use config::{DetectionConfig, InvalidTimes};
pub use core::{Change, DetectionCore, Effects};
pub use driver::{FailureDetector, FailureDetectorParts, StartError};
pub use health::{HealthConfig, Outcome, RequestHealth};
pub use liveness::LivenessTable;
pub use process::Process;
pub use soft_state::{ClassSet, RingVersionKnown, SoftState};
pub use transport::{DetectionTransport, HealthProbe};
pub use view::{PeerState, PeerView, PeersView};

#[cfg(test)]
mod tests;
