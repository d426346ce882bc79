//! Coverage questions: listings, index queries, and whatever else all nodes answer together, each
//! for some home partitions (docs/design/replication.md §16).
//!
//! ```text
//!    the node that asks                         a node that answers
//!    ------------------                         -------------------
//!    Planner: who answers for what
//!       |
//!    HomesRun, EntriesRun ----- CoverageRequest ----> LocalAnswer: may it answer?
//!       |   question: number, content                    |  registry: the kind of the number
//!       |                                             LocalPart: reads the stores by steps
//!    merging part <----------- CoverageItem ------------ items of each step
//!       piece: number, entries
//! ```
//!
//! What it is: `LocalAnswer` answers parts from the stores of this node. `Planner` chooses who
//! answers which part. `HomesRun` gathers what comes home partition by home partition in no
//! order, and `EntriesRun` merges ordered entries. Both give the parts of a node that fails to
//! other replicas. `registry` lists the kinds of questions, and `questions` has a file for each.
//!
//! What it is not: it has no transport. Nodes are reached through `Peers`. It lays out no bytes: a
//! question writes its parts to a [`ContentWriter`].
//!
//! Invariants:
//! * Each key comes once, also when a part is answered by two nodes one after the other.
//! * A part is answered by a replica that is full for its classes under the ring of the plan,
//!   before and after each step of its answer.
//! * A node that failed in a part is not asked for it again, so a run ends.
//! * Items are asked for as the caller takes them: at most one item of each node waits.
//! * The number of a question or of a piece is never used for something else later.

mod entries_run;
mod homes_run;
mod local_answer;
mod local_part;
mod node_answer;
mod planner;
mod question_kind;
mod questions;
mod registry;

pub use crate::replica::{BadContent, ContentReader, ContentWriter, CoveragePiece};
pub(crate) use entries_run::EntriesRun;
pub(crate) use homes_run::NamesRun;
pub(crate) use local_answer::LocalAnswer;
pub(crate) use planner::Planner;
pub use questions::FeatureAnswersOfNodes;
pub(crate) use questions::{ask_feature, fold, fold_keys, list_buckets, list_keys};
pub use registry::{HOME_DONE, ITEM_PART, LAST_ITEM_PART};
