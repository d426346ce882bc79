//! One node: the engine, the transport, and what joins them.

mod cluster_node;
mod names;
mod parts;
mod start_error;

pub use cluster_node::ClusterNode;
pub use names::NodeNames;
pub use parts::NodeParts;
pub use start_error::StartError;
