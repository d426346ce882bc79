//! Several engines that are replicas of each other, in one process, with the work on their copies.
//! The engines are those of the tests of `ombak-kv`.

#[path = "../../../../kv/tests/all/replicas/cluster.rs"]
pub mod cluster;
mod hooks;
#[path = "../../../../kv/tests/all/replicas/network.rs"]
mod network;
mod reaping;
mod scenarios;
mod work;
