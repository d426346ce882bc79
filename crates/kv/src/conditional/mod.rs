//! Conditional puts over several nodes (docs/design/replication.md §17).
//!
//! What it is: the parts that need no network. [`MajorityRead`] judges what the primaries answer to
//! the question before a put, [`Ballots`] remembers what this node has promised, [`is_expected`]
//! says whether a primary may accept a put, and [`KeyQueue`] lets the puts of one key follow each
//! other on the node that coordinates them. `engine/conditional.rs` runs them.
//!
//! A conditional put has a *ballot*: the time that its value gets, and a random number. It asks the
//! primaries for their copies. A primary that answers promises to accept no put with an earlier
//! ballot. When a majority has promised, the put checks its condition against all that they hold,
//! and writes with the ballot's time. A primary accepts the value if its copy holds nothing that
//! the put has not seen, and if it has promised nothing later. The put is acknowledged when a
//! majority has accepted it.
//!
//! Why at most one of several puts with the same precondition is acknowledged, and why a put that
//! failed does not hide it: let X be acknowledged, and let Y have a majority of promises. Some
//! primary has accepted X and promised Y. If it promised Y first, then Y's ballot is earlier than
//! that of X, because otherwise it would not have accepted X. If it accepted X first, Y has seen X,
//! and the condition of Y does not hold any more. So every value of a conditional put that was
//! stored anywhere without having seen X has an earlier time than X, and whoever reduces to one
//! sibling keeps X. It does not matter where the value of Y was stored, when it arrives there, or
//! whether its coordinator is still alive.
//!
//! Invariants:
//! * A node never promises or accepts a ballot that is not later than one that it has promised for
//!   the key, also after a restart.
//! * A value is stored only after a majority of full primaries has promised its ballot.
//!
//! A put `asis` keeps the time that its client gave it. So it can hide another one.

mod ballot;
mod ballots;
mod conditional_puts;
mod expected;
mod key_queue;
mod majority;
#[cfg(test)]
mod tests;

pub use ballot::Ballot;
pub(crate) use ballots::{Admission, Ballots};
pub(crate) use conditional_puts::ConditionalPuts;
pub(crate) use expected::is_expected;
pub(crate) use key_queue::{KeyQueue, QueuePlace};
pub(crate) use majority::{Answered, MajorityRead, Outcome, majority};
