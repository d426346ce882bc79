//! What follows the changes of the stores and may lag behind them.

use super::followed_store::FollowedStore;
use crate::buckets::BucketRegistry;
use ombak_storage::{Change, CursorLost, Detail, FeedCursor};
use ombak_types::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// Follows the change feed of each partition (`ombak_storage::feed`): search and replication
/// between clusters are consumers. One thread at a time calls it, and different threads lead
/// different consumers.
///
/// The node keeps the place of a consumer in the file `feed-<name>.json`, unless the consumer keeps
/// its places itself, together with what it makes of the changes.
pub trait ChangeConsumer: Send + Sync {
    /// The name: lower-case letters and hyphens, if the node keeps the places. It never changes.
    /// Another consumer of the node with the same name would use the same file, so such a node does
    /// not start.
    fn name(&self) -> &str;

    /// How much of each version it wants.
    fn detail(&self) -> Detail {
        Detail::Objects
    }

    /// How many appends of a store since its start it may lag behind. Beyond that the store keeps
    /// nothing for it, so it may have to begin anew.
    fn lag_max(&self) -> u64 {
        10_000_000
    }

    /// The places that it keeps itself, by partition; `None` if the node keeps them. Called at the
    /// start, and after [`keep`](Self::keep) has failed: then it forgets what it has not kept.
    fn kept_places(&self) -> Option<BTreeMap<u32, FeedCursor>> {
        None
    }

    /// Whether it wants to be told everything of a partition once more, although its place there is
    /// of use. Its changes go on meanwhile.
    fn wants_everything(&self, _store: &dyn FollowedStore) -> bool {
        false
    }

    /// Begins to be told everything of a partition: all versions that its store has follow with
    /// [`apply`](Self::apply). Unless it wanted that itself, it forgets what it has of the
    /// partition.
    ///
    /// Changes come in between. So a version that comes may be older than one that came before.
    /// Whoever needs the present version reads it ([`FollowedStore::present`]).
    fn begin_anew(&self, store: &dyn FollowedStore, why: Anew) -> Result<(), Error>;

    /// Takes changes of a partition. If the node keeps the places, what it took is durable when
    /// this returns, because the node does not repeat it. Changes may come again after a restart.
    /// After an error they come again later.
    fn apply(&self, store: &dyn FollowedStore, changes: &[Change]) -> Result<(), Error>;

    /// Takes versions of a partition that come because it is told everything.
    fn apply_everything(&self, store: &dyn FollowedStore, versions: &[Change]) -> Result<(), Error> {
        self.apply(store, versions)
    }

    /// Everything of a partition was told since [`begin_anew`](Self::begin_anew).
    fn told_everything(&self, _store: &dyn FollowedStore) -> Result<(), Error> {
        Ok(())
    }

    /// The end of a turn, in which it was led along some partitions or all. A consumer that keeps
    /// its places makes durable what it took, together with these. After an error it is told again
    /// what came since then.
    fn keep(&self, _progress: &FeedProgress<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// Why a consumer is told everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anew {
    /// It has no place in the partition.
    First,
    /// It could not be told everything that followed its place.
    Lost(CursorLost),
    /// It wanted that.
    Wanted,
}

/// How far a consumer is at the end of a turn.
#[derive(Clone, Copy, Debug)]
pub struct FeedProgress<'a> {
    /// Where it goes on in each partition after a restart.
    pub places: &'a BTreeMap<u32, FeedCursor>,
    /// The partitions in which it has come to the end in this turn, and a moment for each: it knows
    /// everything that was stored before.
    pub up_to_date: &'a BTreeMap<u32, Instant>,
}

/// Consumers that come and go while the node runs, such as one for each search index.
pub trait ConsumerSource: Send + Sync {
    /// The consumers at present. Called about every 200 ms, while other threads lead consumers. A
    /// consumer that is the same as before (`Arc::ptr_eq`) goes on; another one begins at its own
    /// places. One that is gone may have a turn under way, which ends soon. They keep their places
    /// themselves.
    ///
    /// `None`: that is not known yet. Until it is, stores keep everything that a consumer may need.
    ///
    /// `partitions` are those that are open.
    fn consumers(&self, buckets: &BucketRegistry, partitions: &BTreeSet<u32>) -> Option<Vec<Arc<dyn ChangeConsumer>>>;
}
