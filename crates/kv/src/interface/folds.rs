//! Folds of the engine.

use crate::coverage::{Planner, fold, fold_keys};
use crate::engine::{Kv, check_bucket};
use crate::folds::{FoldOf, FoldProgress, FoldRange, FoldResult, FoldWants, KeyConsumer};
use crate::requests::MemoryReservation;
use ombak_types::Error;
use std::sync::Arc;
use std::time::Duration;

/// How long a fold may take. It is the time that Riak gives to a fold.
const FOLD_TIME_MAX: Duration = Duration::from_secs(3_600);

impl Kv {
    /// Gathers something of many objects over all nodes. Dropping the future ends the fold.
    ///
    /// What the nodes send is reserved in `room` as it comes, and needs as much again until it is
    /// merged.
    ///
    /// Fails if the bucket has no type, if some home partition has no replica that can answer, and
    /// with [`Error::TooManyFound`] if more is found than an answer can hold.
    pub async fn fold(
        &self,
        range: FoldRange,
        wants: FoldWants,
        room: &mut dyn MemoryReservation,
    ) -> Result<FoldResult, Error> {
        self.fold_watched(range, wants, room, &FoldProgress::default()).await
    }

    /// As [`Self::fold`]. `progress` says meanwhile how far it is.
    pub async fn fold_watched(
        &self,
        range: FoldRange,
        wants: FoldWants,
        room: &mut dyn MemoryReservation,
        progress: &FoldProgress,
    ) -> Result<FoldResult, Error> {
        let classes = self.classes_of(&range.of)?;
        self.engine.check_open()?;
        if classes.is_empty() || self.has_empty_folds() {
            return Ok(FoldResult::empty(&wants));
        }
        let deadline = self.now().checked_add(FOLD_TIME_MAX);
        let planner = Planner::new(self.engine.clone(), deadline)?;
        fold(planner, (Arc::new(range), wants), &classes, room, progress).await
    }

    /// Finds keys over all nodes, and gives them to a consumer in bounded pieces. So there may be
    /// more keys than a result can hold, also of one home partition. Returns the number of keys,
    /// and none of them comes twice.
    ///
    /// If it fails, the consumer may have got some of the keys. The errors are those of
    /// [`Self::fold`].
    pub async fn fold_keys(
        &self,
        range: FoldRange,
        wants: FoldWants,
        room: &mut dyn MemoryReservation,
        consumer: &mut dyn KeyConsumer,
    ) -> Result<u64, Error> {
        self.fold_keys_watched(range, wants, room, consumer, &FoldProgress::default()).await
    }

    /// As [`Self::fold_keys`]. `progress` says meanwhile how far it is.
    pub async fn fold_keys_watched(
        &self,
        range: FoldRange,
        wants: FoldWants,
        room: &mut dyn MemoryReservation,
        consumer: &mut dyn KeyConsumer,
        progress: &FoldProgress,
    ) -> Result<u64, Error> {
        let classes = self.classes_of(&range.of)?;
        self.engine.check_open()?;
        if classes.is_empty() || self.has_empty_folds() {
            return Ok(0);
        }
        let deadline = self.now().checked_add(FOLD_TIME_MAX);
        let planner = Planner::new(self.engine.clone(), deadline)?;
        fold_keys(planner, (Arc::new(range), wants), &classes, (room, progress), consumer).await
    }

    /// Whether folds find nothing because the configuration says so.
    pub fn has_empty_folds(&self) -> bool {
        self.engine.config.queries.has_empty_folds
    }

    /// The n_vals of all types and buckets.
    pub fn n_vals(&self) -> Vec<u32> {
        self.engine.buckets.snapshot().all_n_vals().into_iter().collect()
    }

    /// The n_vals that a fold asks for and that some bucket has.
    fn classes_of(&self, of: &FoldOf) -> Result<Vec<u32>, Error> {
        match of {
            FoldOf::Bucket(bucket) => {
                check_bucket(bucket)?;
                Ok(vec![self.engine.buckets.props(bucket)?.n_val])
            }
            FoldOf::Classes(wanted) => Ok(self.n_vals().into_iter().filter(|n| wanted.contains(n)).collect()),
        }
    }
}
