//! The place of a consumer in the feed of a store, and the test whether it is still of use.

use crate::identity::StoreIdentity;

/// Where a consumer has arrived in the feed of a store. The consumer keeps it durably, and only
/// after what it applied is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedCursor {
    /// Every change up to this place in the append order of the partition was seen.
    pub seq: u64,
    /// The place in the store; one for each child of a store that consists of several, in their
    /// order.
    pub stores: Vec<StorePlace>,
}

impl FeedCursor {
    /// The cursor of one store.
    pub(crate) fn of_store(place: StorePlace) -> Self {
        Self { seq: place.seq, stores: vec![place] }
    }

    /// This cursor, or the one from before the append after `seq`, if that is earlier. It is of use
    /// in the same run only: nothing is known of the removals in between.
    #[must_use]
    pub fn not_after(mut self, seq: u64) -> Self {
        self.seq = self.seq.min(seq);
        self.stores.iter_mut().for_each(|place| place.seq = place.seq.min(seq));
        self
    }
}

/// What a cursor says of one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorePlace {
    /// [`StoreIdentity::store_id`]; 0 if nothing had ever been written to the store, whose id is
    /// not on disk then.
    pub store_id: u64,
    /// The run in which the cursor was made: [`StoreIdentity::boot`], at least 1.
    pub run: u64,
    /// Every change of this store up to here was seen.
    pub seq: u64,
    /// The lost ranges of the store that were known then.
    pub lost_ranges: u64,
    /// How many removals of this run that only its memory has were seen; 0: that was not counted.
    pub removals: u64,
}

/// Why a consumer cannot go on from its cursor. It begins anew with a fold over everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorLost {
    /// The cursor belongs to another store: this one was created anew, restored or copied.
    #[error("the store is another one")]
    OtherStore,
    /// The store has lost writes that the consumer may have seen.
    #[error("the store has lost its newest writes")]
    LostTail,
    /// Something that was stored cannot be read any more, so a change may be missing.
    #[error("a part of the store is damaged")]
    Damaged,
    /// The consumer was too far behind: removals after its cursor are not known any more.
    #[error("the store has forgotten removals after the cursor")]
    RemovalsForgotten,
    /// The store remembers its removals only as long as it is open, and was opened anew.
    #[error("the store remembers removals only as long as it is open")]
    RunEnded,
}

/// What a store knows of itself when a cursor is tested.
pub(crate) struct PlaceNow {
    pub(crate) identity: StoreIdentity,
    pub(crate) lost_ranges: u64,
    /// The last append that this start found.
    pub(crate) opened_seq: u64,
    pub(crate) last_seq: u64,
}

impl PlaceNow {
    /// The number of this run. A store that nothing was ever written to has none on disk yet.
    pub(crate) fn run(&self) -> u64 {
        self.identity.boot.max(1)
    }

    /// The place of a consumer that has seen everything.
    pub(crate) fn place(&self, removals: u64) -> StorePlace {
        let store_id = if self.identity.boot == 0 { 0 } else { self.identity.store_id };
        let (run, seq) = (self.run(), self.last_seq);
        StorePlace { store_id, run, seq, lost_ranges: self.lost_ranges, removals }
    }

    /// Whether the store still has everything that a consumer at this cursor has seen. Removals are
    /// not tested here.
    pub(crate) fn test(&self, cursor: &FeedCursor) -> Result<StorePlace, CursorLost> {
        let [place] = cursor.stores[..] else { return Err(CursorLost::OtherStore) };
        if place.store_id != 0 && place.store_id != self.identity.store_id {
            return Err(CursorLost::OtherStore);
        }
        // A run between the cursor's and this one may have begun without what the consumer had
        // seen, and have made appends with higher numbers. Only the last run with a loss is known:
        // if it is this one, an earlier one may have had a loss, too.
        let may_hide_another = |boot: u64| boot < self.run() || place.run + 1 < boot;
        let was_lost_between =
            self.identity.lost_writes_boot.is_some_and(|boot| place.run < boot && may_hide_another(boot));
        let is_beyond = place.seq > if place.run == self.run() { self.last_seq } else { self.opened_seq };
        if place.run > self.run() || was_lost_between || is_beyond {
            return Err(CursorLost::LostTail);
        }
        if self.lost_ranges > place.lost_ranges {
            return Err(CursorLost::Damaged);
        }
        Ok(place)
    }
}
