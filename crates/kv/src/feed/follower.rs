//! One consumer, and how far it is in each partition.

use super::pause::Pause;
use super::places::Places;
use super::telling::{Everything, Telling};
use crate::hooks::{Anew, ChangeConsumer, FollowedStore};
use crate::partition::Partition;
use ombak_storage::{Change, ChangesQuery, ChangesSince, CursorLost, FeedCursor, FeedStep, KeyState, Reach, Scope};
use ombak_types::Error;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tracing::{info, warn};

/// The most changes that a consumer gets at once.
const CHANGES_MAX: usize = 1_000;
/// The most bytes of files that are read at once.
const BYTES_MAX: u64 = 4 << 20;
/// The most steps in one partition before others have their turn.
const STEPS_MAX: usize = 16;

/// One consumer; see the module.
pub(super) struct Follower {
    consumer: Arc<dyn ChangeConsumer>,
    places: Places,
    tellings: BTreeMap<u32, Telling>,
    /// The partitions in which it has come to the end in this round.
    up_to_date: BTreeMap<u32, Instant>,
    /// The partitions in which something failed since the consumer was last up to date there.
    pauses: BTreeMap<u32, Pause>,
}

impl Follower {
    pub(super) fn new(consumer: Arc<dyn ChangeConsumer>, places: Places) -> Self {
        let (tellings, up_to_date, pauses) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { consumer, places, tellings, up_to_date, pauses }
    }

    pub(super) fn is_of(&self, consumer: &Arc<dyn ChangeConsumer>) -> bool {
        Arc::ptr_eq(&self.consumer, consumer)
    }

    /// Gives up what is read of partitions that are not open any more, so that their files can go.
    pub(super) fn keep_open(&mut self, is_open: impl Fn(u32) -> bool) {
        self.tellings.retain(|partition, _| is_open(*partition));
    }

    /// Goes on in a partition for a bounded number of steps. After an error the consumer begins
    /// again from its place some rounds later. A version that cannot be read holds it up until it
    /// is repaired. `now` is a moment that lies before the call.
    pub(super) fn follow(&mut self, (partition, store): (&Partition, &dyn FollowedStore), now: Instant) {
        if self.pauses.get_mut(&partition.number()).is_some_and(Pause::lasts) {
            return;
        }
        let mut steps = 0;
        let followed = loop {
            match self.step((partition, store), now) {
                Ok(true) if steps < STEPS_MAX => steps += 1,
                ended => break ended,
            }
        };
        if let Ok(false) = followed {
            self.pauses.remove(&partition.number());
        }
        if let Err(error) = followed {
            self.tellings.remove(&partition.number());
            let pause = Pause::after(self.pauses.get(&partition.number()));
            self.pauses.insert(partition.number(), pause);
            if !matches!(error, Error::Stopping) {
                let (consumer, partition) = (self.consumer.name(), partition.number());
                warn!(consumer, partition, %error, "a consumer could not follow the changes; this is tried again");
            }
        }
    }

    /// Tells one batch of changes, and one batch of everything if that is wanted. Returns whether
    /// there may be more.
    fn step(&mut self, at: (&Partition, &dyn FollowedStore), now: Instant) -> Result<bool, Error> {
        let number = at.0.number();
        let is_told_everything = self.tellings.get(&number).is_some_and(|telling| telling.everything.is_some());
        if !is_told_everything && self.wants_everything(number) {
            let why = if self.places.get(number).is_none() { Anew::First } else { Anew::Wanted };
            self.begin_anew(at, why)?;
        }
        let mut goes_on = self.tell_changes(at, now)?;
        goes_on |= self.tell_everything(at)?;
        if self.tellings.get(&number).is_some_and(Telling::is_nothing) {
            self.tellings.remove(&number);
        }
        Ok(goes_on)
    }

    fn wants_everything(&self, number: u32) -> bool {
        self.places.get(number).is_none() || self.consumer.wants_everything(number)
    }

    /// Tells one batch of changes. Returns whether there may be more.
    fn tell_changes(&mut self, at: (&Partition, &dyn FollowedStore), now: Instant) -> Result<bool, Error> {
        let number = at.0.number();
        let is_walking = self.tellings.get(&number).is_some_and(|telling| telling.changes.is_some());
        if !is_walking && !self.begin_walk(at, now)? {
            return Ok(false);
        }
        let walking = self.tellings.get_mut(&number).and_then(|telling| telling.changes.as_mut());
        let Some((walk, since)) = walking else { return Ok(true) };
        let step = walk.next(CHANGES_MAX, BYTES_MAX)?;
        let (cursor, since) = (walk.cursor(), *since);
        match step {
            FeedStep::Some(changes) => {
                let changes = Self::shown(at.0, changes);
                if !changes.is_empty() {
                    self.consumer.apply(at.1, &changes)?;
                }
                self.set_place(number, cursor);
                Ok(true)
            }
            FeedStep::End => {
                self.set_place(number, cursor);
                self.up_to_date.insert(number, since);
                if let Some(telling) = self.tellings.get_mut(&number) {
                    telling.changes = None;
                }
                Ok(false)
            }
            FeedStep::Lost(why) => self.lost(at, why),
        }
    }

    /// Begins to walk over what is new. Returns whether there may be something to tell.
    fn begin_walk(&mut self, at: (&Partition, &dyn FollowedStore), now: Instant) -> Result<bool, Error> {
        let (number, store) = (at.0.number(), at.0.store());
        let Some(from) = self.place(number).cloned() else { return Ok(false) };
        if from == store.feed_cursor() {
            self.up_to_date.insert(number, now);
            return Ok(false);
        }
        let detail = self.consumer.detail();
        let query = ChangesQuery { from: &from, detail, reach: Reach::Durable, with_removals: true };
        match store.changes_since(&query)? {
            ChangesSince::Found(walk) => self.tellings.entry(number).or_default().changes = Some((walk, now)),
            ChangesSince::Lost(why) => return self.lost(at, why),
        }
        Ok(true)
    }

    /// Tells one batch of everything. Returns whether there may be more.
    fn tell_everything(&mut self, at: (&Partition, &dyn FollowedStore)) -> Result<bool, Error> {
        let number = at.0.number();
        let telling = self.tellings.get_mut(&number).and_then(|telling| telling.everything.as_mut());
        let Some(Everything { snapshot, .. }) = telling else { return Ok(false) };
        let entries = snapshot.next(&Scope::EVERYTHING, self.consumer.detail(), CHANGES_MAX)?;
        if entries.is_empty() {
            self.consumer.told_everything(at.1)?;
            let told = self.tellings.get_mut(&number).and_then(|telling| telling.everything.take());
            if let Some(Everything { cursor, .. }) = told {
                self.places.set(number, Some(cursor));
            }
            return Ok(false);
        }
        let change = |entry| Change { state: KeyState::Stored(entry), origin: Default::default() };
        let versions = Self::shown(at.0, entries.into_iter().map(change).collect());
        if !versions.is_empty() {
            self.consumer.apply_everything(at.1, &versions)?;
        }
        Ok(true)
    }

    /// Where the consumer goes on with changes in a partition.
    fn place(&self, number: u32) -> Option<&FeedCursor> {
        let everything = self.tellings.get(&number).and_then(|telling| telling.everything.as_ref());
        everything.map(|everything| &everything.cursor).or_else(|| self.places.get(number))
    }

    /// A consumer that is being told everything has a place when that has ended.
    fn set_place(&mut self, number: u32, cursor: FeedCursor) {
        let telling = self.tellings.get_mut(&number).and_then(|telling| telling.everything.as_mut());
        match telling {
            Some(everything) => everything.cursor = cursor,
            None => self.places.set(number, Some(cursor)),
        }
    }

    fn lost(&mut self, at: (&Partition, &dyn FollowedStore), why: CursorLost) -> Result<bool, Error> {
        let (consumer, partition) = (self.consumer.name(), at.0.number());
        info!(consumer, partition, %why, "a consumer of changes begins anew");
        self.begin_anew(at, Anew::Lost(why))?;
        Ok(true)
    }

    /// Begins to tell everything. A consumer whose place is of no use any more has none until the
    /// end.
    fn begin_anew(&mut self, (partition, followed): (&Partition, &dyn FollowedStore), why: Anew) -> Result<(), Error> {
        let (number, store) = (partition.number(), partition.store());
        let mut cursor = store.feed_cursor();
        match self.places.get(number).filter(|_| why == Anew::Wanted) {
            // Its changes go on where they are: it may be told everything of other keys only.
            Some(place) => cursor = place.clone(),
            None => drop(self.tellings.remove(&number)),
        }
        let snapshot = partition.snapshot()?;
        store.sync(store.last_seq())?;
        if why != Anew::Wanted {
            // A consumer that has forgotten everything must not go on from its old place.
            if self.places.get(number).is_some() {
                self.places.set(number, None);
                self.keep()?;
            }
        }
        self.consumer.begin_anew(followed, why)?;
        self.tellings.entry(number).or_default().everything = Some(Everything { snapshot, cursor });
        Ok(())
    }

    /// The changes without those of versions that are set aside, with their origins.
    fn shown(partition: &Partition, mut changes: Vec<Change>) -> Vec<Change> {
        let set_aside_to = partition.set_aside_to();
        changes.retain(|change| match &change.state {
            KeyState::Stored(entry) => entry.seq > set_aside_to,
            KeyState::Removed { .. } => true,
        });
        changes.iter_mut().for_each(|change| change.origin = partition.origin_of(change));
        changes
    }

    /// Makes the places durable. If a consumer that keeps them itself cannot, it goes on where it
    /// was when it last could.
    pub(super) fn keep(&mut self) -> Result<(), Error> {
        let kept = self.places.keep(&*self.consumer, &self.up_to_date);
        self.up_to_date.clear();
        if kept.is_err()
            && let Some(places) = self.consumer.kept_places()
        {
            self.tellings.clear();
            self.places = Places::Consumer(places);
        }
        kept
    }

    /// The append after which the store of a partition keeps removals for the consumer, which may
    /// not lag without bound. Appends of this run have numbers from `first_seq` to `last_seq`.
    pub(super) fn needs_after(&self, partition: u32, first_seq: u64, last_seq: u64) -> u64 {
        let everything = self.tellings.get(&partition).and_then(|telling| telling.everything.as_ref());
        let cursors = [self.places.get(partition), everything.map(|everything| &everything.cursor)];
        let place = cursors.into_iter().flatten().map(|cursor| cursor.seq).min().unwrap_or(0);
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
