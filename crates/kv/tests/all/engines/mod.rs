//! Several engines in one process, for tests. Tests of other crates use them, too.

#![allow(dead_code, reason = "the tests of each crate use a part of it")]

pub mod cluster;
pub mod wires;
