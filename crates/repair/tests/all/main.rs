//! Tests of the work on copies, in one program, because each program takes seconds to link. The
//! engines and faulty stores that they use are those of the tests of `ombak-kv`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod copies_age;
mod doubt;
mod engines;
mod exchanges;
mod fullness;
mod hostile_exchanges;
mod index_repair;
mod media_errors;
mod other_ways;
mod placements;
mod reap_orders;
mod replicas;
mod restored;
mod ring_change_marks;
mod rounds;
mod scrub;
mod starting;
mod sums;
#[path = "../../../kv/tests/all/support/mod.rs"]
mod support;
mod told;
mod transfer_threads;
mod transfers;
mod transfers_random;

// The engines of `ombak-kv` look for it here.
use engines::wires;
