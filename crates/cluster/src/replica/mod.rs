//! The replicas of other nodes over the transport: [`RemoteReplica`] asks, and seven services
//! answer, which share a [`ReplicaService`].
//!
//! What it is: the way of the engine's questions ([`ombak_kv::replica::ReplicaClient`]) from one
//! node to another and of the answers back.
//!
//! What it is not: it tries nothing twice, and it does not choose nodes. The coordinators do.
//!
//! Invariants:
//! * An error says whether the request was provably not executed: then its kind is
//!   `StoreFailureKind::Unreachable` or `Error::Overload`.
//! * A request is not executed after its deadline or its lifetime.
//! * Nodes of different lineages of the ring exchange nothing.

mod coordinate;
mod counters;
pub(crate) mod failure;
mod promise;
mod read;
mod reap_orders;
mod reaping;
mod remote;
mod service;
mod store;
mod transfers;

pub(crate) use coordinate::COORDINATE;
pub(crate) use counters::ReplicaCounters;
pub(crate) use promise::PROMISE;
pub(crate) use read::READ;
pub(crate) use reap_orders::REAP_ORDERS;
pub(crate) use reaping::REAPING;
pub use remote::RemoteReplica;
pub(crate) use remote::{Caller, known_version};
pub(crate) use service::ReplicaService;
pub(crate) use store::STORE;
pub(crate) use transfers::TRANSFER;
