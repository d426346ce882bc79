//! What monitoring systems read from a node: Riak's `/stats` and Prometheus' `/metrics`.
//!
//! What it is: the two text formats, the tables of names, and the facts about the machine and the
//! process (`/proc`). The numbers come from [`ombak_stats::Stats`] and from the status of the
//! stores.
//!
//! What it is not: it counts nothing and answers no request.
//!
//! Invariants:
//! * Every name of Riak 3.2.3 is answered; a statistic without a meaning in Ombak is 0.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod cluster;
#[cfg(test)]
mod constant_names;
mod exposition;
#[cfg(test)]
mod metric_rules;
mod prometheus;
mod riak_json;
mod riak_names;
mod system;

pub use exposition::Exposition;
pub use prometheus::{CONTENT_TYPE as PROMETHEUS_CONTENT_TYPE, prometheus_text};
pub use riak_json::riak_stats;
pub use system::{Disk, NodeFacts, SystemFacts};
