//! Histories of partitions that are replicas of each other.

mod expiry;
mod hidden;
mod histories;
mod kinds;
mod kv679;
mod merging;
mod replica;
