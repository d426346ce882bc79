//! Several engines that are replicas of each other, in one process. Their peers are called
//! directly, so that what is tested is the coordination and not the transport.

pub mod cluster;
mod commit_hooks;
mod conditional;
mod coordinators;
mod hooks;
mod network;
mod properties;
mod puts;
mod reads;
mod reaping;
mod ring_change;
mod scenarios;
