//! The life of a node as a member of a cluster.
//!
//! What it is: [`MemberNode`] runs the metadata beside the engine and the transport, and follows
//! what was decided: members, placement, bucket types. It also changes a cluster: nodes join, leave
//! and are replaced. While no node holds an object, a commit gives joining nodes their partitions
//! at once. Otherwise the leader of the metadata drives the change by steps.
//!
//! What it is not: it claims no partitions and words no refusals of staged changes
//! (`ombak_ring::staging`), and replicates nothing.
//!
//! Invariants:
//! * Requests of clients never wait for the metadata. Writes wait, and are refused after a moment,
//!   only while a change needs an empty cluster, or an empty bucket or type to which they go.
//! * A ring that all homes get at once is followed only while this node takes no writes, and no
//!   write that began before it takes effect after it. A placement that homes reach by steps is
//!   followed while requests go on.
//! * A node whose directory is an older copy takes no part: it serves no client and no member, and
//!   never votes. A node whose directory is the newest one is never taken for that.
//! * A node that was removed serves nobody, and says so in words.
//! * A commit at once takes effect only while every member is closed to writes and has proved that
//!   it holds nothing. The metadata decides it in one entry with the end of the closing, so a
//!   driver that dies in the middle changes nothing, and members that wait too long end the closing
//!   by the same log.

mod admission;
mod closing;
mod commands;
mod data_types_gate;
mod detection_times;
mod error;
mod facts;
mod features;
mod follow;
mod join;
mod known_starts;
mod losses;
mod member_node;
mod members_up;
mod newcomer;
mod older;
mod operations;
mod pace;
mod parts;
mod placement;
mod properties;
mod questions;
mod removal;
mod ring_change_facts;
mod ring_changes;
mod seeds;
mod service;
mod settlement;
mod staged;
mod standing;
mod start;
#[cfg(test)]
mod tests;
mod tombstones_gate;
mod unfinished_join;

pub use commands::{MemberChange, PlanShown, RingReady, Staging};
pub use detection_times::DetectionTimes;
pub use error::ClusterError;
pub use facts::{ClusterFacts, MemberFacts};
pub use features::Feature;
pub use losses::Losses;
pub use member_node::MemberNode;
pub use operations::{
    ActiveTransfer, FillingClass, MemberTransfers, Missed, OfMember, PartitionHints, TransferChange, Whom,
};
pub use parts::{MemberParts, MemberTiming};
pub use ring_change_facts::{RingChangeFacts, RingObstacle};
pub use seeds::{Seed, SeedNames, Seeds};
pub(crate) use service::{MEMBERS, MemberContext};
pub use settlement::{Settlement, Unfinished, Unsettled, UnsettledCounts};
pub use start::MemberStartError;
