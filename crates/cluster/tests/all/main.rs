//! Tests of members that talk over real sockets, in one program, because each program takes
//! seconds to link.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod detection;
mod exchanges;
mod failures;
mod histories;
mod jobs;
mod listings;
mod memory;
mod reaping;
mod requests;
mod support;
mod transfers;
mod waiting;
mod waking;
