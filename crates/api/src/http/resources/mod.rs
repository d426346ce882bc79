//! The resources, one file each. A resource states its facts and makes its own answers;
//! [`super::decision_graph`] takes the decisions of HTTP.

pub mod administration;
pub mod buckets;
pub mod counter;
pub mod data_type;
pub mod folds;
pub mod health;
pub mod index;
pub mod keys;
pub mod link_walk;
mod listing;
pub mod map_reduce;
pub mod metrics;
pub mod object;
mod paged_document;
pub mod ping;
pub mod props;
mod props_body;
pub mod root;
pub mod search;
pub mod stats;
pub mod type_props;
pub mod unsupported;
