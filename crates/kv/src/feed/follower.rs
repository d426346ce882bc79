//! One consumer, and how far it is in each partition.

use super::cursor_file::CursorFile;
use super::pause::Pause;
use crate::hooks::ChangeConsumer;
use crate::partition::Partition;
use ombak_storage::{
    Change, Changes, ChangesQuery, ChangesSince, CursorLost, FeedCursor, FeedStep, KeyState, Reach, Scope, Snapshot,
};
use ombak_types::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::{info, warn};

/// The most changes that a consumer gets at once.
const CHANGES_MAX: usize = 1_000;
/// The most bytes of files that are read at once.
const BYTES_MAX: u64 = 4 << 20;
/// The most steps in one partition before others have their turn.
const STEPS_MAX: usize = 16;

/// What a consumer reads in a partition.
enum Reading {
    /// The changes after its place.
    Changes(Box<dyn Changes>),
    /// Everything. Then its place is the cursor.
    Everything(Box<dyn Snapshot>, FeedCursor),
}

/// One consumer; see the module.
pub(super) struct Follower {
    consumer: Arc<dyn ChangeConsumer>,
    cursors: CursorFile,
    readings: BTreeMap<u32, Reading>,
    /// The partitions in which something failed since the consumer was last up to date there.
    pauses: BTreeMap<u32, Pause>,
}

impl Follower {
    pub(super) fn new(consumer: Arc<dyn ChangeConsumer>, cursors: CursorFile) -> Self {
        Self { consumer, cursors, readings: BTreeMap::new(), pauses: BTreeMap::new() }
    }

    /// Gives up what is read of partitions that are not open any more, so that their files can go.
    pub(super) fn keep_open(&mut self, is_open: impl Fn(u32) -> bool) {
        self.readings.retain(|partition, _| is_open(*partition));
    }

    /// Goes on in a partition for a bounded number of steps. After an error the consumer begins
    /// again from its place some rounds later. A version that cannot be read holds it up until it
    /// is repaired.
    pub(super) fn follow(&mut self, partition: &Partition) {
        if self.pauses.get_mut(&partition.number()).is_some_and(Pause::lasts) {
            return;
        }
        let mut steps = 0;
        let followed = loop {
            match self.step(partition) {
                Ok(true) if steps < STEPS_MAX => steps += 1,
                ended => break ended,
            }
        };
        if let Ok(false) = followed {
            self.pauses.remove(&partition.number());
        }
        if let Err(error) = followed {
            self.readings.remove(&partition.number());
            let pause = Pause::after(self.pauses.get(&partition.number()));
            self.pauses.insert(partition.number(), pause);
            if !matches!(error, Error::Stopping) {
                let (consumer, partition) = (self.consumer.name(), partition.number());
                warn!(consumer, partition, %error, "a consumer could not follow the changes; this is tried again");
            }
        }
    }

    /// Reads and applies one batch. Returns whether there may be more.
    fn step(&mut self, partition: &Partition) -> Result<bool, Error> {
        let number = partition.number();
        let is_reading = self.readings.contains_key(&number) || self.begin(partition)?;
        let Some(reading) = self.readings.get_mut(&number).filter(|_| is_reading) else { return Ok(false) };
        let (changes, cursor) = match reading {
            Reading::Changes(walk) => match walk.next(CHANGES_MAX, BYTES_MAX)? {
                FeedStep::Some(changes) => (changes, Some(walk.cursor())),
                FeedStep::End => {
                    let end = walk.cursor();
                    self.readings.remove(&number);
                    self.cursors.set(number, Some(end));
                    return Ok(false);
                }
                FeedStep::Lost(why) => return self.begin_anew(partition, Some(why)),
            },
            Reading::Everything(snapshot, cursor) => {
                let entries = snapshot.next(&Scope::EVERYTHING, self.consumer.detail(), CHANGES_MAX)?;
                if entries.is_empty() {
                    let cursor = cursor.clone();
                    self.readings.remove(&number);
                    self.cursors.set(number, Some(cursor));
                    return Ok(true);
                }
                let change = |entry| Change { state: KeyState::Stored(entry), origin: Default::default() };
                (entries.into_iter().map(change).collect(), None)
            }
        };
        self.apply(partition, changes)?;
        if cursor.is_some() {
            self.cursors.set(number, cursor);
        }
        Ok(true)
    }

    /// Begins to read what is new; false if nothing is.
    fn begin(&mut self, partition: &Partition) -> Result<bool, Error> {
        let (number, store) = (partition.number(), partition.store());
        let Some(from) = self.cursors.get(number) else { return self.begin_anew(partition, None) };
        if *from == store.feed_cursor() {
            return Ok(false);
        }
        let detail = self.consumer.detail();
        let query = ChangesQuery { from, detail, reach: Reach::Durable, with_removals: true };
        match store.changes_since(&query)? {
            ChangesSince::Found(walk) => drop(self.readings.insert(number, Reading::Changes(walk))),
            ChangesSince::Lost(why) => return self.begin_anew(partition, Some(why)),
        }
        Ok(true)
    }

    fn begin_anew(&mut self, partition: &Partition, why: Option<CursorLost>) -> Result<bool, Error> {
        let (number, store) = (partition.number(), partition.store());
        self.readings.remove(&number);
        if let Some(why) = why {
            info!(consumer = self.consumer.name(), partition = number, %why, "a consumer of changes begins anew");
        }
        let cursor = store.feed_cursor();
        let snapshot = partition.snapshot()?;
        store.sync(store.last_seq())?;
        // A consumer that has forgotten everything must not go on from its old place.
        self.cursors.set(number, None);
        self.save()?;
        self.consumer.begin_anew(number, why)?;
        self.readings.insert(number, Reading::Everything(snapshot, cursor));
        Ok(true)
    }

    fn apply(&self, partition: &Partition, mut changes: Vec<Change>) -> Result<(), Error> {
        let set_aside_to = partition.set_aside_to();
        changes.retain(|change| match &change.state {
            KeyState::Stored(entry) => entry.seq > set_aside_to,
            KeyState::Removed { .. } => true,
        });
        changes.iter_mut().for_each(|change| change.origin = partition.origin_of(change));
        if changes.is_empty() { Ok(()) } else { self.consumer.apply(partition.number(), &changes) }
    }

    /// Makes the places durable.
    pub(super) fn save(&mut self) -> Result<(), Error> {
        self.cursors.save().map_err(|error| {
            let kind = ombak_types::StoreFailureKind::Io;
            ombak_types::StoreFailure::new(kind, format!("the places of a consumer cannot be saved: {error}")).into()
        })
    }

    /// The append after which the store of a partition keeps removals for the consumer, which may
    /// not lag without bound. Appends of this run have numbers from `first_seq` to `last_seq`.
    pub(super) fn needs_after(&self, partition: u32, first_seq: u64, last_seq: u64) -> u64 {
        let place = match self.readings.get(&partition) {
            Some(Reading::Everything(_, cursor)) => cursor.seq,
            _ => self.cursors.get(partition).map_or(0, |cursor| cursor.seq),
        };
        place.max(lag_bound(first_seq, last_seq, self.consumer.lag_max()))
    }
}

/// The place of a consumer that is `lag_max` appends behind; 0 if that lies before this run. Each
/// start skips many numbers, so a difference between numbers of two runs says nothing about the
/// appends between them.
fn lag_bound(first_seq: u64, last_seq: u64, lag_max: u64) -> u64 {
    let bound = last_seq.saturating_sub(lag_max);
    if bound < first_seq { 0 } else { bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_start_skips_are_no_lag() {
        assert_eq!(lag_bound(1, 90, 100), 0);
        assert_eq!(lag_bound(1, 190, 100), 90);
        let first = 1 << 26;
        assert_eq!(lag_bound(first, 500, 100), 0, "nothing was appended in this run");
        assert_eq!(lag_bound(first, first + 99, 100), 0);
        assert_eq!(lag_bound(first, first + 100, 100), first);
        assert_eq!(lag_bound(first, first + 250, 100), first + 150);
    }
}
