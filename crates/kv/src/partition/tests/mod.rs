//! Histories of partitions that are replicas of each other.

mod expiry;
mod histories;
mod kv679;
mod replica;
