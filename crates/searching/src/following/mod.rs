//! Keeps the indexes of this node equal to its stores.
//!
//! What it is: [`IndexFollower`] follows the change feed for one build of an index. [`Builds`] has
//! the builds of a node: it opens those that the catalog wants, and removes others when they are
//! not needed any more. [`Association`] says which buckets an index has.
//!
//! What it is not: it reads no queries, and chooses no node.
//!
//! Invariants:
//! * One thread at a time changes an index: one of those of the change feed.
//! * The document of a key is made from its present version, so the order in which changes come
//!   makes no difference.
//! * A commit carries the places in the feed. What was not committed is told again.

mod association;
mod builds;
mod documents;
mod index_follower;
mod places;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use builds::Builds;
pub(crate) use index_follower::IndexFollower;
