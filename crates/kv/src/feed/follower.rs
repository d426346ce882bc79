//! One consumer, and how far it is in each partition.

use super::pause::Pause;
use super::places::Places;
use super::telling::{Everything, Telling};
use crate::hooks::{Anew, ChangeConsumer, FollowedStore};
use crate::partition::Partition;
use ombak_storage::{Change, ChangesQuery, ChangesSince, CursorLost, FeedCursor, FeedStep, KeyState, Reach, Scope};
use ombak_types::{Error, StoreFailure};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

    /// Gives up what is read of partitions that are not open any more, so that their files can go.
    pub(super) fn keep_open(&mut self, is_open: impl Fn(u32) -> bool) {
        self.tellings.retain(|partition, _| is_open(*partition));
    }

    /// Goes on in a partition for a bounded number of steps, and begins none when `is_over`.
    /// Returns whether there may be more. After an error the consumer begins again from its place
    /// some time later. A version that cannot be read holds it up until it is repaired. `now` is a
    /// moment that lies before the call.
    pub(super) fn follow(
        &mut self,
        at: (&Partition, &dyn FollowedStore),
        now: Instant,
        is_over: &dyn Fn() -> bool,
    ) -> bool {
        let number = at.0.number();
        if self.pauses.get(&number).is_some_and(|pause| pause.lasts(now)) {
            return false;
        }
        // What a consumer took of a step before it panicked comes again.
        let followed = catch_unwind(AssertUnwindSafe(|| self.steps(at, now, is_over)))
            .unwrap_or_else(|_| Err(StoreFailure::internal("a consumer of changes panicked").into()));
        match followed {
            Ok(true) => return true,
            Ok(false) => drop(self.pauses.remove(&number)),
            Err(error) => {
                self.tellings.remove(&number);
                let pause = Pause::after(self.pauses.get(&number), now);
                self.pauses.insert(number, pause);
                if !matches!(error, Error::Stopping) {
                    let consumer = self.consumer.name();
                    let what = "a consumer could not follow the changes; this is tried again";
                    warn!(consumer, partition = number, %error, "{what}");
                }
            }
        }
        false
    }

    fn steps(
        &mut self,
        at: (&Partition, &dyn FollowedStore),
        now: Instant,
        is_over: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        for _ in 0..STEPS_MAX {
            if !self.step(at, now)? {
                return Ok(false);
            }
            if is_over() {
                break;
            }
        }
        Ok(true)
    }

    /// Tells one batch of changes, and one batch of everything if that is wanted. Returns whether
    /// there may be more.
    fn step(&mut self, at: (&Partition, &dyn FollowedStore), now: Instant) -> Result<bool, Error> {
        let number = at.0.number();
        let is_told_everything = self.tellings.get(&number).is_some_and(|telling| telling.everything.is_some());
        if !is_told_everything && self.wants_everything(at.1) {
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

    fn wants_everything(&self, store: &dyn FollowedStore) -> bool {
        self.places.get(store.number()).is_none() || self.consumer.wants_everything(store)
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

    /// The seq of its place in each partition that has one. Those of a partition of which it is
    /// told everything go on from where that began.
    pub(super) fn seqs(&self) -> BTreeMap<u32, u64> {
        let mut seqs = self.places.seqs();
        for (number, telling) in &self.tellings {
            if let Some(everything) = &telling.everything {
                let seq = seqs.entry(*number).or_insert(everything.cursor.seq);
                *seq = everything.cursor.seq.min(*seq);
            }
        }
        seqs
    }
}
