//! Staged changes of a cluster: what `cluster join`, `leave`, `replace`, `force-replace`,
//! `force-remove`, `location`, `plan`, `commit`, `clear` and `down` do, as functions of plain data.
//!
//! What it is: operators stage changes; a plan shows the ring that would result; a commit makes
//! exactly the plan that was shown (docs/riak/semantics.md §1.1). Refusals have Riak's words
//! (docs/riak/semantics.md §16).
//!
//! What it is not: it reaches no node and stores nothing. The caller passes in the cluster as it
//! is, and keeps what comes out. Whether a change is safe for data is the caller's
//! [precondition](commit).
//!
//! Invariants:
//! * Equal inputs give equal plans. A plan is nevertheless computed once and then passed on: a
//!   later version of the program may claim in another way.
//! * A commit never makes a ring that was not shown.
//! * Changes and plans that have nothing to do with locations are stored as versions stored them
//!   that knew no locations, so that those can read them.
//!
//! Differences from Riak: a node that wants to join is not a member before the commit, so `clear`
//! has nothing to undo at that node, and a leave of such a node withdraws its join. All changes of
//! a plan make one ring, where Riak may need two.

mod change;
mod format;
mod plan;
mod plan_text;
mod refusal;
#[cfg(test)]
mod tests;
mod view;

pub use change::{Change, Joiner, StagedChanges};
pub use plan::{CommitRefusal, Plan, Share, Transfer, Warning, commit, plan};
pub use refusal::Refusal;
pub use view::{ClusterView, MemberStatus, Members, mark_down};
