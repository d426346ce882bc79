//! Histories of partitions that are replicas of each other.

mod ages;
mod expiry;
mod hidden;
mod histories;
mod kinds;
mod kv679;
mod merging;
mod replica;
mod sums;
mod trees;
