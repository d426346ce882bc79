//! Exchanges: differences between primaries that nobody reads are found and repaired
//! (docs/design/anti-entropy.md).
//!
//! What it is: one *exchange* has one direction. This node shows that everything it holds of a
//! class is durably at another primary, and so advances its *mark* there. It brings what the other
//! node lacks, and drops what was removed everywhere and is left here alone.
//!
//! ```text
//!   schedule --> runner --> steps  (I/O: one step after the other)   answers <-- another node
//!                             |  ^                                       |
//!                     Event   v  |  Action                               v
//!                           Exchange (a state machine)       marks, sums, lists (pure)
//!                             |
//!        root -> groups -> ranges -> (pause) -> again -> lists -> keys -> push, drop -> mark
//!
//!   walker: makes the sums exact that the stores keep, and compares them with the stores
//! ```
//!
//! What it is not: it is not the comparison of classes that are not full (`fill`), and not the
//! proof of a home that changes (`prove`). It pushes nothing by itself: `send` does.
//!
//! Invariants:
//! * A mark says that everything in this node's store up to a seq was included, durably, at one
//!   store of another primary that has been full since. It advances only to the seq of a cut of
//!   which every version was included.
//! * A version above all marks is pushed. Any other one that the other primary lacks is pushed or
//!   dropped only when all other primaries have answered and are full. It is dropped only if all of
//!   them lack it, and marks that hold cover it for each of them.
//! * What is dropped lies in a file before.
//! * Only a full class of a settled home begins an exchange, and only with a full one at the same
//!   version of the home.
//! * A difference counts when two looks have seen it.
//! * Everything is bounded: ranges and keys of one exchange, each message, what is remembered for
//!   the way back, and the exchanges that run or pause.

mod answers;
mod back;
mod class_fold;
mod client;
mod config;
mod control;
mod doubt;
mod dropped;
mod drops;
mod exchanges;
mod figures;
mod handle;
mod kept_sums;
mod lists;
mod machine;
mod other_ways;
mod outlines;
mod pairs;
mod proof_marks;
mod push_dropped;
mod runner;
mod schedule;
mod steps;
mod sums;
mod sums_difference;
mod sums_schedule;
#[cfg(test)]
mod tests;
mod verdict;
mod visits;
mod waiting;
mod walker;

pub use client::{
    ExchangeAnswer, ExchangeClient, ExchangePart, ExchangePeers, ExchangeQuestion, KeyHeld, KeysAnswer, KeysQuestion,
    ListQuestion, MarkQuestion, RootAnswer, RootQuestion, SOME_RANGES_MAX, Standing,
};
pub use config::ExchangeConfig;
pub use control::{ExchangeStatus, NodeRepair};
pub use dropped::DroppedCopy;
pub(crate) use exchanges::Exchanges;
pub use figures::{ClassExchanges, ExchangeFigures};
pub use lists::LIST_MIXES_MAX;
pub use outlines::OUTLINE_NUMBERS;
pub use push_dropped::{DroppedReport, DroppedVersion};
pub use sums::{GROUPS, GroupSet, NO_SLOTS, RANGES, RANGES_IN_GROUP};
pub(crate) use verdict::Verdict;
pub use waiting::WaitingExchange;
