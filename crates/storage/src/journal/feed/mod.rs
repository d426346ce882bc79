//! The change feed of stores with a journal (`crate::feed`).
//!
//! What it is: a walk that reads the data files with appends after a cursor, oldest first, and
//! keeps each record that the index of one moment points at; and what merges must keep for
//! consumers ([`Retention`]).
//!
//! What it is not: it keeps no files for consumers. A merge may remove superseded versions at any
//! time, because the feed has only the last state of each key. Only storage tombstones matter: a
//! merge that drops one which nothing else shows makes the cursors before it useless.
//!
//! Invariants:
//! * No storage tombstone above the floor was dropped ([`Retention::floor`]). The floor is on disk
//!   before the input files of the merge are removed.
//! * Each version of the moment of a walk is handed out once, also if a merge moves it meanwhile.

mod batch;
mod marks;
mod retention;
mod walk;

pub(super) use marks::ReadMarks;
pub(super) use retention::NAME;
pub(super) use retention::Retention;

use super::policy::JournalPolicy;
use super::snapshot::JournalSnapshot;
use super::store::Core;
use crate::error::StorageError;
use crate::feed::{ChangesQuery, ChangesSince, CursorLost, FeedCursor, IndexChanges, PlaceNow, Reach};
use std::collections::VecDeque;
use std::sync::Arc;
use walk::{JournalChanges, entry_in};

impl<P: JournalPolicy> Core<P> {
    /// Whether the data files show every removal that a caller asked for, as long as nobody drops
    /// the tombstones.
    fn has_lasting_journal() -> bool {
        P::merges_files()
    }

    /// Whether the store removes versions that its journal does not show as removed.
    fn has_unrecorded_removals(&self) -> bool {
        !Self::has_lasting_journal() || self.shared.config.forgets_expired()
    }

    /// Remembers a removal that the journal does not record for as long as consumers need it. The
    /// caller holds the writer's lock.
    pub(super) fn note_unrecorded_removal(&self, key: &[u8], last_seq: u64, by_itself: bool) {
        if by_itself || !Self::has_lasting_journal() {
            self.removals.note(key, last_seq, by_itself);
        }
    }

    fn place_now(&self, last_seq: u64) -> PlaceNow {
        PlaceNow {
            identity: self.identity.identity(),
            lost_ranges: self.known_lost_ranges(),
            opened_seq: self.retention.opened_seq(),
            last_seq,
        }
    }

    /// The cursor of a consumer that has seen everything.
    pub(super) fn feed_cursor(&self) -> FeedCursor {
        let (last_seq, removals) = {
            let writer = self.writer.lock();
            (writer.last_seq(), self.removals.last())
        };
        FeedCursor::of_store(self.place_now(last_seq).place(removals))
    }

    /// Keeps what consumers after `seq` need; none: there are no consumers.
    pub(super) fn retain_removals(&self, after: Option<u64>) -> Result<(), StorageError> {
        self.removals.switch(after.is_some() && self.has_unrecorded_removals());
        if !Self::has_lasting_journal() {
            return Ok(());
        }
        // A merge that has passed a tombstone already says so with the floor.
        self.retention.keep_after(after, self.identity.identity().boot)
    }

    pub(super) fn changes_since(self: &Arc<Self>, query: &ChangesQuery<'_>) -> Result<ChangesSince, StorageError> {
        self.check_open()?;
        // No merge moves a version or ends while the walk begins.
        let background = self.background.lock();
        let (last_seq, last_removal, removed, without) = {
            let writer = self.writer.lock();
            let seen = query.from.stores.first().map_or(0, |place| place.removals);
            let without = self.files_without_changes(&writer, &background.merges);
            (writer.last_seq(), self.removals.last(), self.removals.after(seen), without)
        };
        let now = self.place_now(last_seq);
        let place = match now.test(query.from) {
            Ok(place) => place,
            Err(why) => return Ok(ChangesSince::Lost(why)),
        };
        // The store may have had a limit of age when the cursor was made.
        let has_counted = place.run != now.run() && place.removals > 0;
        let forgotten = match removed {
            _ if !query.with_removals || !(self.has_unrecorded_removals() || has_counted) => VecDeque::new(),
            _ if place.run != now.run() => return Ok(ChangesSince::Lost(CursorLost::RunEnded)),
            Some((removed, _)) => removed,
            None => return Ok(ChangesSince::Lost(CursorLost::RemovalsForgotten)),
        };
        if query.with_removals && Self::has_lasting_journal() && place.seq < self.retention.floor() {
            return Ok(ChangesSince::Lost(CursorLost::RemovalsForgotten));
        }
        let secs_max = self.shared.config.snapshot_secs_max;
        let snapshot = JournalSnapshot::begin(self.clone(), secs_max)?;
        let files = if Self::has_lasting_journal() { self.files_with_changes(&without, place.seq) } else { Vec::new() };
        // What follows may read the disk for each removal. Background work goes on meanwhile.
        drop(background);
        let mut removed = VecDeque::new();
        for gone in forgotten {
            // A key that is there was put again, and the walk has it or an earlier one had.
            if entry_in(&snapshot, &gone.key)?.is_none() {
                removed.push_back(gone);
            }
        }
        let end = now.place(last_removal);
        let changes: Box<dyn crate::feed::Changes> = if Self::has_lasting_journal() {
            Box::new(JournalChanges::new(snapshot, files, (place, end), removed, query.detail))
        } else {
            let end = FeedCursor::of_store(end);
            Box::new(IndexChanges::new(Box::new(snapshot), query.from.clone(), end, removed, query.detail))
        };
        if query.reach == Reach::Durable {
            // The snapshot may have later appends, which must not be handed out before they are
            // durable either.
            let appended = self.writer.lock().last_seq();
            if !self.is_synced(appended) {
                self.sync(appended)?;
            }
        }
        Ok(ChangesSince::Found(changes))
    }
}
