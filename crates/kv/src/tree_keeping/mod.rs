//! Which of Riak's trees a node keeps, and when it makes them (`kept_trees` has the trees).
//!
//! ```text
//!              every 100 ms                  one step, without a lock
//!   thread ----------------> TreeSchedule -----------------------> TreeBuild of one class
//!                                 ^                                       |
//!      a fold asks for an n_val --+-- ended, failed <---------------------+
//! ```
//!
//! What it is: [`TreeSchedule`] decides which class comes next. It is a state machine without I/O
//! and clock. [`TreeKeeping`] is the thread around it, which counts and logs.
//!
//! What it is not: it answers no fold. A fold that finds no tree walks, as if there were none.
//!
//! Invariants:
//! * A node keeps trees of the classes that it is a primary of, and no others.
//! * One tree is built at a time, and never faster than the configured number of versions a second.
//! * All trees together take no more memory than the configuration allows. One tree keeps its room,
//!   so that trees can be made anew also when no further one has room.
//! * A build, and a stop, wait for one step, which is short.

mod keeping;
mod schedule;
mod status;

pub(crate) use keeping::{ROUND, TreeKeeping};
pub use status::{KeptTree, TreeState};
