//! The replicas of other nodes over the transport: [`RemoteReplica`] asks, [`ReplicaService`]
//! answers.
//!
//! What it is: the way of the engine's questions ([`ombak_kv::ReplicaClient`]) from one node to
//! another and of the answers back.
//!
//! What it is not: it tries nothing twice, and it does not choose nodes. The coordinators do.
//!
//! Invariants:
//! * An error says whether the request was provably not executed: then its kind is
//!   `StoreFailureKind::Unreachable` or `Error::Overload`.
//! * A request is not executed after its deadline or its lifetime.
//! * Nodes of different lineages of the ring exchange nothing.

mod counters;
pub(crate) mod failure;
mod promise;
mod reaping;
mod remote;
mod service;
mod transfers;

pub(crate) use counters::ReplicaCounters;
pub use remote::RemoteReplica;
pub(crate) use remote::{Caller, known_version};
pub(crate) use service::ReplicaService;
