//! Tests of the work on copies, in one program, because each program takes seconds to link. The
//! engines and faulty stores that they use are those of the tests of `ombak-kv`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod copies_age;
mod engines;
mod exchanges;
mod media_errors;
mod placements;
mod replicas;
mod restored;
mod rounds;
mod scrub;
mod starting;
mod sums;
#[path = "../../../kv/tests/all/support/mod.rs"]
mod support;
mod transfer_threads;
mod transfers;
mod transfers_random;

// The engines of `ombak-kv` look for it here.
use engines::wires;
