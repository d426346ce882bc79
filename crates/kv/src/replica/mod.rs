//! A replica as a coordinator sees it: a partition of this node, or of another node.
//!
//! What it is: the questions that a coordinator asks ([`ReplicaClient`]) and those of listings,
//! queries, transfers and reaping, with their answers, and the set of nodes that a request asks.
//!
//! What it is not: it has no quorums (`coordination`) and no transport. Another node's replica is
//! whatever the node was given as [`Peers`], and this node's is `engine/local_replica.rs`.

mod begun;
mod client;
mod conditional;
mod content;
mod counters;
mod coverage;
mod peers;
mod piece;
mod question;
mod reap_order;
mod reaping;
mod request_replicas;
mod target;
mod told;
mod transfer;

pub use begun::Begun;
pub use client::{
    ForwardedPut, PutFailure, ReadReply, ReplicaClient, ReplicaRead, ReplicaStore, StoreKind, StoreMode, StoreOutcome,
    StoreReply, StoredVersion,
};
pub use conditional::{ConditionalClient, PromiseReply, PromiseRequest};
pub use content::{BadContent, ContentReader, ContentWriter};
pub use counters::{KnownCounters, NodeCounter};
pub use coverage::{CoverageClient, CoverageHome, CoverageItem, CoverageRequest, CoverageStream};
pub use peers::{NoPeers, Peers, UnreachableNode};
pub use piece::CoveragePiece;
pub(crate) use piece::PieceContent;
pub use question::CoverageQuestion;
pub(crate) use question::QuestionContent;
pub use reap_order::{Ordered, ReapOrder};
pub use reaping::{
    AskRequest, REAP_BYTES_MAX, REAP_KEYS_MAX, ReapReply, Reapable, ReapingClient, RemoveRequest, Round,
    TOLD_NODES_MAX, Vote, VoteRequest,
};
pub(crate) use request_replicas::{RequestReplicas, Viewer};
pub(crate) use target::Target;
pub use told::ToldSeq;
pub use transfer::{
    COMPARE_KEYS_MAX, ClassId, Compare, Compared, Give, GivePass, Giving, Held, HeldVersion, Push, Pushed, RangeSum,
    SUMMARY_RANGES_MAX, Summarize, Summary, TRANSFER_ANSWER_MAX, TRANSFER_BYTES_MAX, TransferClient, checksum_of,
    range_of,
};
