//! Folds: what operators and replication ask of many objects at once, such as counts, sizes,
//! tombstones, clocks and trees (docs/riak/semantics.md §8.3).
//!
//! What it is: [`FoldRange`] selects objects, [`FoldWants`] says what is gathered of them, and
//! [`FoldWalk`] gathers it from one store. What the stores of all nodes have gathered comes
//! together in a [`FoldResult`].
//!
//! What it is not: it does not know who answers for which home partition. That is the business of
//! the coverage question `coverage/questions/fold`. It changes no object.
//!
//! Invariants:
//! * Tombstones are objects like others, unless the fold asks for living ones.
//! * A walk reads heads and no values.
//! * A tree over the keys of an n_val has no buckets with `aae_tree_exclude`. If the store of a
//!   home partition keeps the tree (`kept_trees`), it answers in place of a walk, with the same
//!   parts.
//! * A result holds at most [`FOUND_MAX`] keys or buckets. A [`KeyConsumer`] gets any number of
//!   keys in bounded pieces, and no key twice.

mod entry;
mod gathered;
mod kept;
mod key_consumer;
mod progress;
mod range;
mod result;
mod stats;
mod walk;
mod wants;

pub use entry::GatheredEntry;
pub(crate) use kept::{gather_kept, kept_class};
pub use key_consumer::KeyConsumer;
pub use progress::FoldProgress;
pub use range::{FoldOf, FoldRange, SegmentFilter};
pub(crate) use result::FOUND_MAX;
pub use result::FoldResult;
pub use stats::FoldStats;
pub(crate) use walk::FoldWalk;
pub use wants::{FoldWants, Found, FoundKey};
