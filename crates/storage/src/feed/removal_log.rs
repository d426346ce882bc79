//! The last removals of a store that no file of the store records, in memory.
//!
//! A journal records each removal that a caller asked for. It does not record versions that a store
//! forgets by their age. Stores without a lasting journal record nothing.

use super::change::{Change, Origin};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most removals that are remembered.
const REMOVALS_MAX: usize = 65_536;
/// The most bytes of their keys.
const KEY_BYTES_MAX: usize = 4 << 20;

/// A removal.
#[derive(Clone, Debug)]
pub(crate) struct Removed {
    pub(crate) key: Bytes,
    /// The last append of the store when the key was removed.
    pub(crate) seq: u64,
    /// Whether the store removed the key by itself.
    pub(crate) by_itself: bool,
}

impl Removed {
    pub(crate) fn into_change(self) -> Change {
        Change::removed(self.key, self.seq, if self.by_itself { Origin::Expiry } else { Origin::Unknown })
    }
}

#[derive(Default)]
struct State {
    /// The number of the first removal that is remembered. Numbers begin with 1.
    first: u64,
    removals: VecDeque<Removed>,
    key_bytes: usize,
}

impl State {
    /// The number of the last removal.
    fn last(&self) -> u64 {
        self.first - 1 + self.removals.len() as u64
    }

    fn forget_first(&mut self) {
        if let Some(gone) = self.removals.pop_front() {
            self.first += 1;
            self.key_bytes -= gone.key.len();
        }
    }
}

/// The last removals of a store. Without consumers it remembers nothing.
#[derive(Default)]
pub(crate) struct RemovalLog {
    is_on: AtomicBool,
    state: Mutex<State>,
}

impl RemovalLog {
    /// Remembers removals from now on, or forgets all and remembers none.
    pub(crate) fn switch(&self, is_on: bool) {
        let mut state = self.state.lock();
        if self.is_on.swap(is_on, Ordering::AcqRel) == is_on {
            return;
        }
        // What happened in between is not known, so no earlier number is of use. The first number
        // is 2, because a cursor that was made before has 0.
        *state = State { first: state.first + state.removals.len() as u64 + 2, ..State::default() };
    }

    /// Notes a removal. The caller holds the lock that orders the store's appends.
    pub(crate) fn note(&self, key: &[u8], seq: u64, by_itself: bool) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state.lock();
        state.key_bytes += key.len();
        state.removals.push_back(Removed { key: Bytes::copy_from_slice(key), seq, by_itself });
        while state.removals.len() > REMOVALS_MAX || state.key_bytes > KEY_BYTES_MAX {
            state.forget_first();
        }
    }

    /// The number of the last removal; 0 as long as none is remembered at all.
    pub(crate) fn last(&self) -> u64 {
        if self.is_on.load(Ordering::Acquire) { self.state.lock().last() } else { 0 }
    }

    /// The removals after a number, and the number of the last one; none if some are forgotten.
    pub(crate) fn after(&self, number: u64) -> Option<(VecDeque<Removed>, u64)> {
        if !self.is_on.load(Ordering::Acquire) {
            return None;
        }
        let state = self.state.lock();
        if number + 1 < state.first || number > state.last() {
            return None;
        }
        let seen = (number + 1 - state.first) as usize;
        Some((state.removals.range(seen..).cloned().collect(), state.last()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(found: Option<(VecDeque<Removed>, u64)>) -> Option<Vec<Bytes>> {
        found.map(|(removals, _)| removals.into_iter().map(|removed| removed.key).collect())
    }

    #[test]
    fn removals_are_remembered_from_the_first_consumer_on() {
        let log = RemovalLog::default();
        log.note(b"before", 1, false);
        assert_eq!((log.last(), log.after(0).is_none()), (0, true));
        log.switch(true);
        let begun = log.last();
        assert!(log.after(0).is_none(), "a cursor from before may have missed some");
        log.note(b"a", 2, false);
        log.switch(true);
        log.note(b"b", 3, true);
        assert_eq!(keys(log.after(begun)).unwrap(), ["a", "b"]);
        assert_eq!(keys(log.after(begun + 1)).unwrap(), ["b"]);
        assert_eq!(keys(log.after(log.last())).unwrap(), [""; 0]);
        assert!(log.after(log.last() + 1).is_none());
        log.switch(false);
        log.switch(true);
        assert!(log.after(begun + 2).is_none(), "nobody knows what happened in between");
    }

    #[test]
    fn more_than_fit_are_forgotten() {
        let log = RemovalLog::default();
        log.switch(true);
        let begun = log.last();
        (0..REMOVALS_MAX as u64).for_each(|n| log.note(&n.to_be_bytes(), n, false));
        assert_eq!(keys(log.after(begun)).unwrap().len(), REMOVALS_MAX);
        log.note(b"one more", 7, false);
        assert!(log.after(begun).is_none());
        assert_eq!(keys(log.after(begun + 1)).unwrap().len(), REMOVALS_MAX);
        (0..5).for_each(|n| log.note(&vec![0; KEY_BYTES_MAX / 4], n, false));
        assert!(log.after(log.last() - 5).is_none());
        assert_eq!(keys(log.after(log.last() - 4)).unwrap().len(), 4);
    }
}
