//! One node: the engine, the transport, and what joins them.

mod cluster_node;
mod parts;
mod start_error;

pub use cluster_node::ClusterNode;
pub use parts::NodeParts;
pub use start_error::StartError;
