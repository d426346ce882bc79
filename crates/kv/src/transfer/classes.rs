//! Whether the replicas of this node are full or filling, per class (docs/design/replication.md
//! §1).
//!
//! A class is *full* when this node is known to hold everything of it, and otherwise *filling*. All
//! classes of a new node are full: it founds a cluster, or joins one that has no data. A store that
//! may lack something makes all classes of its partition filling. Each becomes full by itself, when
//! it was compared with every other primary.
//!
//! While a home changes, the classes that this node is to get are *joining*: they are filling, too,
//! whatever else is known of them (docs/design/ring-changes.md). That follows from the placement
//! alone and is not saved.

use super::roles::Span;
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::replica::ClassId;
use ombak_storage::{Backend, StoreIdentity};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a replica does not know that it holds everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillReason {
    /// The store, or the whole directory of the node, is new.
    NewStore,
    /// The newest writes were not synced, and the machine went down, or the file system was mounted
    /// again.
    LostWrites,
    /// The store is a copy or came from a backup.
    Restored,
    /// A part of the store cannot be read.
    Unreadable,
    /// The home is changing, and the class is to be here when it has changed. It is never saved.
    Joining,
}

/// What was known of a store when its classes were last saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownStore {
    /// The store's id; 0 while nothing was ever written to it.
    #[serde(with = "ombak_node_files::hex")]
    pub(crate) store_id: u64,
    /// The last start of the store whose losses were accounted for.
    pub(crate) boot: u64,
    /// The number of unreadable places that were accounted for.
    pub(crate) lost_ranges: u64,
}

impl KnownStore {
    /// With the unreadable places that were accounted for. The store may have more by now.
    pub(crate) fn of(store: &dyn Backend, lost_ranges: u64) -> Self {
        let identity = store.identity();
        let store_id = if identity.boot == 0 { 0 } else { identity.store_id };
        Self { store_id, boot: identity.boot, lost_ranges }
    }

    /// Whether anything was ever written to the store, as far as was known.
    pub(crate) const fn was_written(&self) -> bool {
        self.store_id != 0
    }

    /// Why a store that was known like this may lack something now.
    pub(crate) fn loss_of(self, store: &dyn Backend) -> Option<FillReason> {
        self.loss_in(&store.identity(), store.status().lost_ranges)
    }

    fn loss_in(self, identity: &StoreIdentity, lost_ranges: u64) -> Option<FillReason> {
        let is_other = self.store_id != 0 && self.store_id != identity.store_id;
        match () {
            () if identity.is_restored && self.store_id != identity.store_id => Some(FillReason::Restored),
            () if is_other => Some(FillReason::NewStore),
            // Both may have happened. What is lost in the middle says more: it ends the tokens.
            () if lost_ranges > self.lost_ranges => Some(FillReason::Unreadable),
            () if identity.lost_writes_boot.is_some_and(|boot| boot > self.boot) => Some(FillReason::LostWrites),
            () => None,
        }
    }
}

/// The classes of a partition that are not full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filling {
    /// Why they are not.
    pub reason: FillReason,
    /// The n of the classes that have become full again.
    pub full: BTreeSet<u32>,
}

#[derive(Default)]
struct Place {
    is_filling: AtomicBool,
    /// The joining classes, as [`Span::to_bits`].
    joining: AtomicU64,
    /// Rises with each change.
    changes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    filling: Option<Filling>,
    /// The number of losses since the start.
    losses: u64,
}

/// The classes of all partitions of this node.
pub struct Classes {
    places: Box<[Place]>,
    /// Rises with each change.
    changes: AtomicU64,
}

impl Classes {
    pub(crate) fn new(ring_size: usize) -> Self {
        Self { places: (0..ring_size).map(|_| Place::default()).collect(), changes: AtomicU64::new(0) }
    }

    /// Whether a class is full.
    pub fn is_full(&self, partition: u32, n: u32) -> bool {
        let is_joining = self.is_joining(partition, n) && !is_broken(BrokenRule::JoiningClassesAreNotFull);
        !is_joining && self.would_be_full(partition, n)
    }

    /// Whether a class is full, or would be if it joined now.
    pub fn would_be_full(&self, partition: u32, n: u32) -> bool {
        let Some(place) = self.places.get(partition as usize) else { return false };
        !place.is_filling.load(Ordering::SeqCst)
            || place.state.lock().filling.as_ref().is_none_or(|filling| filling.full.contains(&n))
    }

    /// Whether a class is to be here when its home has changed.
    pub fn is_joining(&self, partition: u32, n: u32) -> bool {
        let place = self.places.get(partition as usize);
        place.is_some_and(|place| Span::from_bits(place.joining.load(Ordering::SeqCst)).includes(n))
    }

    /// Sets which classes of a partition are joining.
    pub(crate) fn set_joining(&self, partition: u32, joining: Span) {
        if let Some(place) = self.places.get(partition as usize) {
            if place.joining.load(Ordering::SeqCst) == joining.to_bits() {
                return;
            }
            // Whoever sees the new state sees one of these numbers, or a later one.
            place.changes.fetch_add(1, Ordering::SeqCst);
            place.joining.store(joining.to_bits(), Ordering::SeqCst);
            place.changes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Makes some classes of a partition filling: they are new here, and were not brought. `ns` are
    /// the n of all classes.
    pub(crate) fn set_new(&self, partition: u32, new: Span, ns: &BTreeSet<u32>) {
        let Some(place) = self.places.get(partition as usize) else { return };
        let mut state = place.state.lock();
        let before = state.filling.take();
        let was_full = |n: &u32| before.as_ref().is_none_or(|before| before.full.contains(n));
        let full = ns.iter().copied().filter(|n| was_full(n) && !new.includes(*n)).collect();
        let reason = before.as_ref().map_or(FillReason::NewStore, |before| before.reason);
        self.replace(place, &mut state, Some(Filling { reason, full }));
    }

    /// Forgets what a partition lacks, because this node gets all of its classes anew. What a store
    /// of unknown age holds must still be compared.
    pub(crate) fn begin_anew(&self, partition: u32) {
        let Some(place) = self.places.get(partition as usize) else { return };
        let mut state = place.state.lock();
        if state.filling.as_ref().is_some_and(|filling| filling.reason != FillReason::Restored) {
            self.replace(place, &mut state, None);
        }
    }

    /// Makes all classes of a partition filling. That its store was restored stays the reason: a
    /// later loss does not make its old versions any younger.
    pub(crate) fn set_filling(&self, partition: u32, reason: FillReason) {
        let Some(place) = self.places.get(partition as usize) else { return };
        let mut state = place.state.lock();
        let was_restored = state.filling.as_ref().is_some_and(|before| before.reason == FillReason::Restored);
        let stays = was_restored && reason != FillReason::NewStore;
        let reason = if stays { FillReason::Restored } else { reason };
        self.replace(place, &mut state, Some(Filling { reason, full: BTreeSet::new() }));
    }

    /// Takes what was saved.
    pub(crate) fn restore(&self, partition: u32, filling: Option<Filling>) {
        let Some(place) = self.places.get(partition as usize) else { return };
        self.replace(place, &mut place.state.lock(), filling);
    }

    fn replace(&self, place: &Place, state: &mut State, filling: Option<Filling>) {
        place.is_filling.store(filling.is_some(), Ordering::SeqCst);
        state.filling = filling;
        state.losses += 1;
        self.note_change(place);
    }

    /// The number of losses that a partition has had: a comparison that begins now covers these.
    pub fn losses(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.state.lock().losses)
    }

    /// Makes a class full, because it was compared with every other primary. A loss that came after
    /// the first `losses` needs another comparison; then this returns false.
    pub fn became_full(&self, class: ClassId, losses: u64) -> bool {
        let Some(place) = self.places.get(class.partition as usize) else { return false };
        let mut state = place.state.lock();
        if state.losses != losses {
            return false;
        }
        if let Some(filling) = &mut state.filling {
            filling.full.insert(class.n);
            self.note_change(place);
        }
        true
    }

    /// Why a partition is filling, and which of its classes are full nevertheless.
    pub fn filling(&self, partition: u32) -> Option<Filling> {
        let place = self.places.get(partition as usize)?;
        if !place.is_filling.load(Ordering::SeqCst) {
            return None;
        }
        place.state.lock().filling.clone()
    }

    fn note_change(&self, place: &Place) {
        place.changes.fetch_add(1, Ordering::SeqCst);
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of changes of a partition since the start. As long as it is the same, the same
    /// classes are full.
    pub(crate) fn changes_of(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.changes.load(Ordering::SeqCst))
    }

    /// The number of changes since the start.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn class(partition: u32, n: u32) -> ClassId {
        ClassId { partition, n }
    }

    #[test]
    fn each_class_becomes_full_by_itself() {
        let classes = Classes::new(8);
        assert!(classes.is_full(3, 1) && classes.is_full(3, 3));
        classes.set_filling(3, FillReason::LostWrites);
        assert!(!classes.is_full(3, 1) && !classes.is_full(3, 3) && classes.is_full(4, 3));
        let losses = classes.losses(3);
        assert!(classes.became_full(class(3, 3), losses));
        assert!(classes.is_full(3, 3) && !classes.is_full(3, 1));
        assert_eq!(classes.filling(3).map(|filling| filling.full), Some(BTreeSet::from([3])));
    }

    #[test]
    fn a_loss_during_a_comparison_needs_another_one() {
        let classes = Classes::new(8);
        classes.set_filling(3, FillReason::LostWrites);
        let losses = classes.losses(3);
        classes.set_filling(3, FillReason::Unreadable);
        assert!(!classes.became_full(class(3, 3), losses));
        assert!(!classes.is_full(3, 3));
    }

    #[test]
    fn another_loss_does_not_hide_that_a_store_was_restored() {
        let classes = Classes::new(8);
        let reason = || classes.filling(3).map(|filling| filling.reason);
        classes.set_filling(3, FillReason::Restored);
        for loss in [FillReason::LostWrites, FillReason::Unreadable] {
            classes.set_filling(3, loss);
            assert_eq!(reason(), Some(FillReason::Restored), "after {loss:?}");
        }
        classes.set_filling(3, FillReason::NewStore);
        assert_eq!(reason(), Some(FillReason::NewStore), "nothing of the old store is left");
    }

    #[test]
    fn a_store_that_may_lack_something_is_noticed() {
        let identity = |store_id, boot| StoreIdentity { store_id, boot, ..StoreIdentity::default() };
        let known = KnownStore { store_id: 7, boot: 3, lost_ranges: 1 };
        assert_eq!(known.loss_in(&identity(7, 4), 1), None);
        assert_eq!(known.loss_in(&identity(8, 1), 0), Some(FillReason::NewStore));
        assert_eq!(known.loss_in(&identity(7, 4), 2), Some(FillReason::Unreadable));
        let lost = |boot| StoreIdentity { lost_writes_boot: Some(boot), ..identity(7, 5) };
        assert_eq!(known.loss_in(&lost(3), 0), None, "it was accounted for");
        assert_eq!(known.loss_in(&lost(4), 0), Some(FillReason::LostWrites), "also if a later start lost nothing");
        assert_eq!(known.loss_in(&lost(4), 2), Some(FillReason::Unreadable), "the middle says more than the tail");
        let restored = |store_id| StoreIdentity { is_restored: true, ..identity(store_id, 1) };
        assert_eq!(known.loss_in(&restored(8), 0), Some(FillReason::Restored));
        assert_eq!(known.loss_in(&restored(7), 0), None, "it was accounted for");
        let empty = KnownStore::default();
        assert_eq!(empty.loss_in(&identity(9, 0), 0), None, "nothing was ever in it");
        assert_eq!(empty.loss_in(&identity(9, 1), 0), None);
    }
}
