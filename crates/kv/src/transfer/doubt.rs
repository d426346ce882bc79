//! Up to which seq the copies of each store are in doubt (docs/design/anti-entropy.md §5).
//!
//! A store that was restored, was set back, or lost something in its middle may show copies that
//! were replaced or removed. Whatever it stored up to that moment is *in doubt*: it is no evidence,
//! and nobody gets it from here. What the store gets later cannot be a copy that came back.
//!
//! What it is not: what is set aside is invisible besides (`set_aside`). A copy in doubt is read
//! as before.
//!
//! Invariants:
//! * The seq of a partition only rises, until its doubt ends as a whole.
//! * It is in the state file before the classes of the partition can be full again.
//! * A node that owns everything alone has no doubt: nobody knows more.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The doubt of all stores of a node.
pub struct Doubt {
    places: Box<[Place]>,
    is_alone: AtomicBool,
    /// Rises with each change.
    changes: AtomicU64,
    /// Locked by each change: otherwise a doubt that ends could hide one that rises beside it.
    changing: Mutex<()>,
}

#[derive(Default)]
struct Place {
    /// What is saved.
    saved: AtomicU64,
    /// What requests go by: 0 while the node is alone.
    in_force: AtomicU64,
}

impl Doubt {
    pub(crate) fn new(ring_size: usize) -> Self {
        let places = (0..ring_size).map(|_| Place::default()).collect();
        Self { places, is_alone: AtomicBool::new(false), changes: AtomicU64::new(0), changing: Mutex::new(()) }
    }

    /// The seq up to which the copies of a partition are in doubt; 0: none is.
    pub fn up_to(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.in_force.load(Ordering::Acquire))
    }

    /// Whether the copy with a seq is in doubt. It costs one atomic load.
    pub fn is_in_doubt(&self, partition: u32, seq: u64) -> bool {
        seq <= self.up_to(partition)
    }

    /// Puts everything up to a seq in doubt. It is durable after the next save.
    pub fn raise(&self, partition: u32, seq: u64) {
        let Some(place) = self.places.get(partition as usize) else { return };
        let _changing = self.changing.lock();
        place.saved.fetch_max(seq, Ordering::AcqRel);
        self.put_in_force(place);
    }

    /// Ends the doubt of a partition. The next checkpoint saves that: until then a restart brings
    /// the doubt back, which costs another round.
    pub fn end(&self, partition: u32) {
        self.restore(partition, 0);
    }

    /// Ends the doubt of a partition, unless it has risen above a seq. Returns whether it has
    /// ended.
    pub fn end_up_to(&self, partition: u32, seq: u64) -> bool {
        let Some(place) = self.places.get(partition as usize) else { return false };
        let _changing = self.changing.lock();
        let has_ended = place.saved.compare_exchange(seq, 0, Ordering::AcqRel, Ordering::Acquire).is_ok();
        self.put_in_force(place);
        has_ended
    }

    /// What is saved of a partition.
    pub(crate) fn saved(&self, partition: u32) -> u64 {
        self.places.get(partition as usize).map_or(0, |place| place.saved.load(Ordering::Acquire))
    }

    /// Takes what was saved.
    pub(crate) fn restore(&self, partition: u32, seq: u64) {
        let Some(place) = self.places.get(partition as usize) else { return };
        let _changing = self.changing.lock();
        place.saved.store(seq, Ordering::Release);
        self.put_in_force(place);
    }

    /// Nothing is in doubt while this node owns everything alone.
    pub(crate) fn apply(&self, is_alone: bool) {
        let _changing = self.changing.lock();
        if self.is_alone.swap(is_alone, Ordering::AcqRel) != is_alone {
            self.places.iter().for_each(|place| self.put_in_force(place));
        }
    }

    /// `changing` is locked.
    fn put_in_force(&self, place: &Place) {
        let is_alone = self.is_alone.load(Ordering::Acquire);
        let in_force = if is_alone { 0 } else { place.saved.load(Ordering::Acquire) };
        place.in_force.store(in_force, Ordering::Release);
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of changes since the start.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_rises_and_ends_as_a_whole() {
        let doubt = Doubt::new(8);
        assert!(!doubt.is_in_doubt(3, 1));
        doubt.raise(3, 9);
        doubt.raise(3, 4);
        assert_eq!((doubt.up_to(3), doubt.saved(3), doubt.up_to(4)), (9, 9, 0));
        assert!(doubt.is_in_doubt(3, 9) && !doubt.is_in_doubt(3, 10));
        assert!(!doubt.end_up_to(3, 8) && doubt.up_to(3) == 9, "it has risen meanwhile");
        assert!(doubt.end_up_to(3, 9) && doubt.up_to(3) == 0);
        doubt.raise(3, 9);
        doubt.end(3);
        assert_eq!((doubt.up_to(3), doubt.saved(3)), (0, 0));
    }

    /// A doubt that rises while an earlier one ends is in force afterwards.
    #[test]
    fn a_doubt_that_ends_hides_none_that_rises_beside_it() {
        let doubt = Doubt::new(8);
        for seq in (1..2_000).step_by(2) {
            doubt.raise(3, seq);
            std::thread::scope(|scope| {
                scope.spawn(|| doubt.end_up_to(3, seq));
                scope.spawn(|| doubt.raise(3, seq + 1));
            });
            assert_eq!((doubt.up_to(3), doubt.saved(3)), (seq + 1, seq + 1));
        }
    }

    #[test]
    fn a_node_that_is_alone_keeps_its_doubt_for_later() {
        let doubt = Doubt::new(8);
        doubt.raise(3, 9);
        doubt.apply(true);
        doubt.raise(4, 5);
        assert_eq!([3, 4].map(|partition| (doubt.up_to(partition), doubt.saved(partition))), [(0, 9), (0, 5)]);
        doubt.apply(false);
        assert_eq!([3, 4].map(|partition| doubt.up_to(partition)), [9, 5]);
    }
}
