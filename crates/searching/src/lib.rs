//! Search on a node: it follows the stores with its indexes, and answers queries over all nodes.
//!
//! ```text
//!  put, get                         administration                     query
//!     |                                  |                               |
//!  stores of the node             catalog: records of               querying: which nodes have
//!     |  change feed              indexes and schemas,              something to say, merging
//!     v                           in the metadata                        |  coverage question
//!  following: one follower <------ one for each index                     v
//!  for each index and build ------------- index on disk <------ answering: a part of the
//!                                 (ombak-search-index)          home partitions, fresh enough
//! ```
//!
//! What it is: [`Search`] is the search of a node. `catalog` has the indexes and schemas of the
//! cluster, `following` keeps the indexes of this node equal to its stores, `answering` answers the
//! questions of nodes, and `querying` asks them. `key_search` reads on, page by page, for those who
//! need the keys of all that a query finds.
//!
//! What it is not: it knows no interface of clients. Queries, schemas and answers are in
//! `ombak-search`, and the files of an index in `ombak-search-index`.
//!
//! Invariants:
//! * An index is a function of the stores: what it has of a partition follows the change feed from
//!   the place that its last commit carries. If the feed lost that place, the partition is read
//!   anew, and what it had before goes.
//! * An index never has what a loss of power can take away from the store.
//! * A home partition is answered for by a replica that is full, and whose index has everything
//!   that was stored until shortly before the query. If there is none, the answer says that it is
//!   partial.
//! * A new build of an index answers when it is complete. Until then the build before it does.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod administration;
mod answering;
mod catalog;
mod config;
mod counts;
mod following;
mod key_search;
mod querying;
mod search;

pub use administration::{AdminError, IndexInfo, IndexStatus, PartitionStatus};
pub use catalog::{NAMESPACE, NameProblem, namespace_without_search};
pub use config::SearchConfig;
pub use key_search::{FoundKeys, KeySearch};
pub use querying::{Found, SearchError};
pub use search::Search;
