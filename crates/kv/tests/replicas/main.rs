//! Several engines that are replicas of each other, in one process. Their peers are called
//! directly, so that what is tested is the coordination and not the transport.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cluster;
mod commit_hooks;
mod conditional;
mod coordinators;
#[allow(dead_code, reason = "other test files use the rest")]
#[path = "../support/faulty.rs"]
mod faulty;
mod hooks;
mod network;
mod properties;
mod puts;
#[allow(dead_code, reason = "other test files use the rest")]
#[path = "../support/random.rs"]
mod random;
mod reads;
mod reaping;
mod ring_change;
mod scenarios;
#[allow(dead_code, reason = "other test files use the rest")]
#[path = "../support/wires.rs"]
mod wires;
