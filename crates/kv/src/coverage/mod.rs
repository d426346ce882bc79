//! Listings and index queries over several nodes (docs/design/replication.md §16).
//!
//! What it is: [`LocalAnswer`] answers parts from the stores of this node. [`Planner`] chooses who
//! answers which part. [`NamesRun`] gathers unordered names, and [`EntriesRun`] merges ordered
//! entries. Both give the parts of a node that fails to other replicas.
//!
//! What it is not: it has no transport. Nodes are reached through `Peers`.
//!
//! Invariants:
//! * Each key comes once, also when a part is answered by two nodes one after the other.
//! * A part is answered by a replica that is full for its classes under the ring of the plan,
//!   before and after each piece that it gives.
//! * A node that failed in a part is not asked for it again, so a run ends.
//! * Pieces are asked for as the caller takes them: at most one piece of each node waits.

mod counts;
mod entries_run;
mod local_answer;
mod names_run;
mod node_answer;
mod planner;

pub(crate) use counts::CoverageCounts;
pub(crate) use entries_run::EntriesRun;
pub(crate) use local_answer::LocalAnswer;
pub(crate) use names_run::NamesRun;
pub(crate) use planner::Planner;
