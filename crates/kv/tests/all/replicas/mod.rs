//! Several engines that are replicas of each other, in one process. Their peers are called
//! directly, so that what is tested is the coordination and not the transport.

mod bucket_properties;
pub mod cluster;
mod commit_hooks;
mod conditional;
mod coordinators;
mod network;
mod puts;
mod reads;
mod ring_change;
