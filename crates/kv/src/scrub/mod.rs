//! Scrubbing: the stores of this node are read and checked at a paced rate although nobody asks for
//! what is in them ([`ombak_storage::scrub`] reads one store).
//!
//! ```text
//!            every 100 ms                         one step, without a lock
//!  thread ----------------> Schedule::next ------> ScrubbedStores::step ------> Schedule::stepped
//!                               |                        |                          |
//!                             wait                  damaged versions             scrub.json
//!                                                        |
//!                                                        v
//!                                   UnreadableKeys ------> repair from other primaries
//! ```
//!
//! What it is: [`Schedule`] decides which store is read next, how much of it, and when. It is a
//! state machine without I/O and clock. [`Scrubbing`] is the thread around it, which keeps its
//! state on disk, counts, and logs what is damaged.
//!
//! When all of a store has been read, its index entries are compared with its objects, and mended
//! ([`ombak_storage::Backend::check_terms`]).
//!
//! What it is not: it repairs no version. Damaged versions are in the list of unreadable keys, like
//! those that a read has met, and the work of `repair` brings them from other replicas. It removes
//! no version, on no node and in no state.
//!
//! Invariants:
//! * One store is read at a time, and never faster than the configured maximum.
//! * A pause, and a stop, wait for one step, which is short.
//! * A state on disk that is lost or damaged begins a new round, and does nothing else.

mod log_limit;
mod pace;
mod report;
mod schedule;
mod scrubbing;
mod state_file;
mod stores;

pub use report::{ScrubReport, ScrubState, ScrubbedStore};
pub(crate) use scrubbing::Scrubbing;
