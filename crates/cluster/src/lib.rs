//! One node of a cluster: it joins the engine, the transport between nodes, and what nodes agree
//! on.
//!
//! What it is: the services by which nodes work for each other, in the bytes that travel between
//! them, and the life of a node as a member. The program and the simulator run the same code: what
//! differs is the `Runtime`, the `Network` and the `FileSystem` that they pass.
//!
//! What it is not: it decides nothing about quorums, copies and clocks (`ombak_kv` does), frames no
//! bytes (`ombak_peer`), and has no sockets for clients (`ombak_api`).
//!
//! Five modules are about nodes. `node` starts and stops the engine and the transport of this node.
//! `member` is the life of this node as a member of a cluster (docs/architecture/member.md).
//! `peer_table` has the other members, as the engine sees them. `failure_detection` finds out which
//! of them are up. `metadata` carries what all have decided.
//!
//! Invariants:
//! * Everything that travels between nodes has a version, and an unknown version is refused.
//! * A failure keeps its kind on the way to the other node, so that a coordinator can decide.
//! * No bytes of a peer cause a panic, or an allocation that their length does not justify.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod capabilities;
mod coverage;
mod deliberate_faults;
mod exchange;
mod failure_detection;
#[doc(hidden)]
pub mod fuzzing;
mod jobs;
mod liveness;
mod member;
mod metadata;
mod node;
mod peer_table;
mod replica;
mod services;
mod told;
mod waking;
pub mod wire;

pub use capabilities::Speaks;
pub use failure_detection::Detection;
pub use liveness::{Liveness, NobodyIsUp, RequestOutcome};
pub use member::{
    ActiveTransfer, CaughtUp, ClusterError, ClusterFacts, Deciders, DetectionTimes, ExchangeChange, ExchangeOfClass,
    ExchangeRound, ExchangeThatWaits, Feature, FillingClass, Losses, MemberChange, MemberExchanges, MemberFacts,
    MemberNode, MemberParts, MemberStartError, MemberTiming, MemberTransfers, Missed, OfMember, PartitionHints,
    PlanShown, RingChangeFacts, RingObstacle, RingReady, Seed, SeedNames, Seeds, Settlement, Staging, TransferChange,
    Unfinished, Unsettled, UnsettledCounts, Whom,
};
pub use node::{ClusterNode, NodeNames, NodeParts, StartError};
pub use ombak_metadata::state::MemberStatus;
pub use ombak_metadata::{LogError as MetadataLogError, StartError as MetadataStartError};
pub use ombak_peer::handshake::Secret;
pub use peer_table::{ClusterPeers, Member};
pub use replica::RemoteReplica;
