//! Where the places of a consumer are kept.

use super::cursor_file::CursorFile;
use crate::hooks::{ChangeConsumer, FeedProgress};
use ombak_storage::FeedCursor;
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::collections::BTreeMap;
use std::time::Instant;

/// The places of one consumer, by partition.
pub(super) enum Places {
    /// The node keeps them in a file.
    File(CursorFile),
    /// The consumer keeps them itself. This is what it will keep next.
    Consumer(BTreeMap<u32, FeedCursor>),
}

impl Places {
    /// The place in the feed of a partition.
    pub(super) fn get(&self, partition: u32) -> Option<&FeedCursor> {
        match self {
            Self::File(file) => file.get(partition),
            Self::Consumer(places) => places.get(&partition),
        }
    }

    /// The seq of each place, by partition.
    pub(super) fn seqs(&self) -> BTreeMap<u32, u64> {
        match self {
            Self::File(file) => file.seqs(),
            Self::Consumer(places) => places.iter().map(|(number, cursor)| (*number, cursor.seq)).collect(),
        }
    }

    /// Changes a place, or forgets it. It is durable after the next [`keep`](Self::keep).
    pub(super) fn set(&mut self, partition: u32, cursor: Option<FeedCursor>) {
        match (self, cursor) {
            (Self::File(file), cursor) => file.set(partition, cursor),
            (Self::Consumer(places), Some(cursor)) => drop(places.insert(partition, cursor)),
            (Self::Consumer(places), None) => drop(places.remove(&partition)),
        }
    }

    /// Makes the places durable.
    pub(super) fn keep(
        &mut self,
        consumer: &dyn ChangeConsumer,
        up_to_date: &BTreeMap<u32, Instant>,
    ) -> Result<(), Error> {
        match self {
            Self::File(file) => file.save().map_err(|error| {
                let text = format!("the places of a consumer cannot be saved: {error}");
                StoreFailure::new(StoreFailureKind::Io, text).into()
            }),
            Self::Consumer(places) => consumer.keep(&FeedProgress { places, up_to_date }),
        }
    }
}
