//! Answers the questions of nodes from the indexes of this node.
//!
//! What it is: [`SearchQuestion`] and [`NodeAnswer`] are what travels, with their bytes.
//! [`LocalAnswers`] answers for those home partitions of which an index is fresh.
//!
//! What it is not: it does not decide whether this node is a full replica. The engine does.
//!
//! Invariant: an answer is about the home partitions that it names, and has everything that was
//! stored in them until shortly before the query began, unless the question takes less.

mod local_answers;
mod messages;

pub(crate) use local_answers::LocalAnswers;
pub(crate) use messages::{FEATURE, NodeAnswer, SearchQuestion};
