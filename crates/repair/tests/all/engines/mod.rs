//! Several engines in one process, with the work on their copies, for tests. Tests of other crates
//! use them, too.

#![allow(dead_code, reason = "the tests of each crate use a part of it")]

pub mod cluster;
#[path = "../../../../kv/tests/all/wires.rs"]
pub mod wires;
