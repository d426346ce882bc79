//! Runs of the simulator, in one program, because each program takes seconds to link.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod bites;
mod data_types;
mod scale;
mod seeds;
