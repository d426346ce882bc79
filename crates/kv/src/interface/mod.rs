//! What the rest of the program does with the engine: the methods of [`Kv`](crate::Kv), the import
//! of objects, and what this node answers to other nodes.
//!
//! What it is not: requests and replies are in `requests`. The work that brings copies back to
//! where they belong is in the crate `ombak-repair`, which gets the engine as a
//! [`RepairHost`](crate::repair_host::RepairHost).

mod copies;
mod costs;
mod emptiness;
mod features;
mod folds;
mod hot;
mod import;
mod kept_trees;
mod kv;
mod leaving;
mod local_replica;
mod node_view;
mod partitions;
mod put_in_cluster;
mod queries;
mod reap_orders;
mod scrub;
mod shares;
mod slow;
mod sums;
mod waking;

pub use features::FeatureRequest;
pub use hot::{RequestCounts, TopOfNode};
pub use import::{ImportOutcome, Importer};
pub use node_view::Health;
pub use shares::Share;
pub use slow::EndedJob;
