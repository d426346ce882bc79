//! Counts what clusters of different sizes send and store: for a put, at rest, and for a join.
//!
//! What it is: whole members over simulated streams, without faults and with the times of the
//! program. The counts of a size are the same in every process.
//!
//! What it is not: a measurement of time. Its seconds are those of the simulated world.

mod counting;
mod traffic;

pub use counting::{Counts, JoinCounts, PutCounts, count};
pub use traffic::Traffic;
