//! The other members of the cluster, as the engine sees them: their names, their addresses and
//! their replicas.
//!
//! What it is not: it does not decide who is a member (`ombak_metadata`), nor who is up
//! ([`crate::Liveness`]).

mod cluster_peers;
mod member;

pub use cluster_peers::ClusterPeers;
pub(crate) use cluster_peers::ExcludedNodes;
pub use member::Member;
