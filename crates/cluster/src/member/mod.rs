//! The life of a node as a member of a cluster.
//!
//! What it is: [`MemberNode`] runs the metadata beside the engine and the transport, and follows
//! what was decided: members, placement, bucket types. It also changes a cluster: nodes join, leave
//! and are replaced. While no node holds an object, a commit gives joining nodes their partitions
//! at once. Otherwise the leader of the metadata drives the change by steps. Each of these stories
//! has a room; docs/architecture/member.md draws them.
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

mod admin;
mod answers;
mod bucket_changes;
mod data_types_gate;
mod directory_age;
mod error;
mod features;
mod following;
mod ground;
mod joining;
mod member_node;
mod parts;
mod questions;
mod ring_change;
mod seeds;
mod service;
mod start;
#[cfg(test)]
mod tests;
mod tombstones_gate;
mod upkeep;

pub use admin::commands::{PlanShown, RingReady, Staging};
pub use admin::deciders::Deciders;
pub use admin::facts::{ClusterFacts, MemberFacts};
pub use admin::losses::Losses;
pub use admin::settlement::{Settlement, Unfinished, Unsettled};
pub use admin::transfers::{OfMember, Whom};
pub use error::ClusterError;
pub use features::Feature;
pub use joining::catching_up::CaughtUp;
pub use member_node::MemberNode;
pub use parts::{MemberParts, MemberTiming};
pub use questions::detection_times::DetectionTimes;
pub use questions::exchanges::{ExchangeChange, ExchangeOfClass, ExchangeThatWaits, MemberExchanges};
pub use questions::ring_change_facts::{RingChangeFacts, RingObstacle};
pub use questions::transfers::{ActiveTransfer, FillingClass, MemberTransfers, Missed, PartitionHints, TransferChange};
pub use questions::unsettled_counts::{ExchangeRound, UnsettledCounts};
pub use ring_change::member_change::MemberChange;
pub use seeds::{Seed, SeedNames, Seeds};
pub(crate) use service::{MEMBERS, MemberContext};
pub use start::MemberStartError;
