//! Holds back the writes of clients while a change needs an empty cluster, or an empty bucket.
//!
//! A write takes a pass before it looks at the ring and at the properties of its bucket, and shows
//! the pass under the key's lock, immediately before its event is stamped. A closing ends the
//! passes of all writes, or of those to the part that it closes. So after a closing, and after each
//! key's lock was free once, no write that began before it can still take effect, whichever ring
//! and properties it has looked at (docs/design/replication.md §3).

use ombak_types::{Error, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Set in the generation while the gate is closed to all writes.
const CLOSED: u64 = 1;
/// Set in the generation while the gate is closed to the writes to a part.
const PART_CLOSED: u64 = 2;
/// What a change adds to the generation.
const STEP: u64 = 4;
/// So many closings of parts are remembered. Passes from before the oldest are not valid any more.
const PARTS_MAX: usize = 64;

/// The gate of one engine. It begins open.
#[derive(Debug, Default)]
pub(crate) struct WriteGate {
    /// It only grows. Its lowest bits say what is closed.
    generation: AtomicU64,
    history: Mutex<History>,
    opened: Notify,
}

/// What was closed. A part is the prefix of the storage keys that belong to it.
#[derive(Debug, Default)]
struct History {
    /// The part that is closed now.
    part: Option<Arc<[u8]>>,
    /// Passes from before this generation are not valid.
    all_end_at: u64,
    /// The closings of parts since, each with the generation that it began.
    parts: VecDeque<(u64, Arc<[u8]>)>,
}

/// Proof that a write began while the gate was open to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WritePass<'a> {
    gate: &'a WriteGate,
    generation: u64,
}

impl WriteGate {
    /// A pass for any write; `None` while the gate is closed to some writes.
    pub(crate) fn pass_to_all(&self) -> Option<WritePass<'_>> {
        let generation = self.generation.load(Ordering::SeqCst);
        (generation & (CLOSED | PART_CLOSED) == 0).then_some(WritePass { gate: self, generation })
    }

    /// A pass for a write to the keys with a prefix; `None` while the gate is closed to it.
    pub(crate) fn pass(&self, prefix: &[u8]) -> Option<WritePass<'_>> {
        let history = self.history.lock();
        let generation = self.generation.load(Ordering::SeqCst);
        let is_closed = generation & CLOSED != 0 || history.part.as_ref().is_some_and(|part| prefix.starts_with(part));
        (!is_closed).then_some(WritePass { gate: self, generation })
    }

    /// Waits for a pass.
    pub(crate) async fn wait(&self, prefix: &[u8]) -> WritePass<'_> {
        loop {
            let opened = self.opened.notified();
            if let Some(pass) = self.pass(prefix) {
                return pass;
            }
            opened.await;
        }
    }

    /// A pass of this generation, for another thread.
    pub(crate) const fn pass_of(&self, generation: u64) -> WritePass<'_> {
        WritePass { gate: self, generation }
    }

    /// Closes the gate to all writes. The caller waits afterwards until each key's lock was free.
    pub(crate) fn close(&self) {
        let mut history = self.history.lock();
        let generation = self.advance(|bits| bits | CLOSED);
        history.all_end_at = generation;
        history.parts.clear();
    }

    /// Opens the gate, except to a part that is closed.
    pub(crate) fn open(&self) {
        let history = self.history.lock();
        if self.generation.load(Ordering::SeqCst) & CLOSED != 0 {
            self.advance(|bits| bits & !CLOSED);
        }
        drop(history);
        self.opened.notify_waiters();
    }

    /// Closes the gate to the writes to the keys with a prefix, and to no others. The caller waits
    /// afterwards until each key's lock was free.
    pub(crate) fn close_part(&self, prefix: &[u8]) {
        let mut history = self.history.lock();
        let part: Arc<[u8]> = prefix.into();
        let generation = self.advance(|bits| bits | PART_CLOSED);
        history.part = Some(part.clone());
        history.parts.push_back((generation, part));
        if history.parts.len() > PARTS_MAX
            && let Some((forgotten, _)) = history.parts.pop_front()
        {
            history.all_end_at = history.all_end_at.max(forgotten);
        }
    }

    /// Opens the gate to the part that is closed.
    pub(crate) fn open_part(&self) {
        let mut history = self.history.lock();
        if history.part.take().is_some() {
            self.advance(|bits| bits & !PART_CLOSED);
        }
        drop(history);
        self.opened.notify_waiters();
    }

    /// Goes on to the next generation. The caller holds the lock of the history.
    fn advance(&self, bits: impl FnOnce(u64) -> u64) -> u64 {
        let next = bits(self.generation.load(Ordering::SeqCst) + STEP);
        self.generation.store(next, Ordering::SeqCst);
        next
    }

    /// Whether the gate is open. A part may be closed.
    pub(crate) fn is_open(&self) -> bool {
        self.generation.load(Ordering::SeqCst) & CLOSED == 0
    }

    /// The part that is closed.
    pub(crate) fn closed_part(&self) -> Option<Arc<[u8]>> {
        self.history.lock().part.clone()
    }

    /// The refusal of a write.
    pub(crate) fn refusal(&self) -> Error {
        let text = if self.is_open() {
            "the bucket takes no writes while the number or the places of its copies change; try again"
        } else {
            "the cluster takes no writes while it changes; try again"
        };
        StoreFailure::new(StoreFailureKind::ClosedToWrites, text).into()
    }
}

impl WritePass<'_> {
    /// The generation of the gate.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Fails if the gate was closed to a write of this key since the pass was given out.
    pub(crate) fn check(&self, key: &[u8]) -> Result<(), Error> {
        if self.gate.generation.load(Ordering::SeqCst) == self.generation { Ok(()) } else { self.check_history(key) }
    }

    #[cold]
    fn check_history(&self, key: &[u8]) -> Result<(), Error> {
        let history = self.gate.history.lock();
        let is_ended = self.generation < history.all_end_at
            || history.parts.iter().any(|(since, part)| self.generation < *since && key.starts_with(part));
        drop(history);
        if is_ended { Err(self.gate.refusal()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass<'a>(gate: &'a WriteGate, key: &[u8]) -> Option<WritePass<'a>> {
        let pass = gate.pass(key);
        assert!(gate.pass_to_all().is_none() || pass.is_some());
        pass
    }

    #[test]
    fn a_pass_ends_with_the_closing() {
        let gate = WriteGate::default();
        let before = pass(&gate, b"k").unwrap();
        assert_eq!(before.check(b"k"), Ok(()));
        gate.close();
        gate.close();
        assert!(pass(&gate, b"k").is_none() && before.check(b"k").is_err());
        gate.open();
        assert!(before.check(b"k").is_err(), "the write has looked at what was there before");
        let after = pass(&gate, b"k").unwrap();
        gate.open();
        assert_eq!((after.check(b"k"), gate.pass_of(after.generation()).check(b"k")), (Ok(()), Ok(())));
    }

    #[test]
    fn the_closing_of_a_part_ends_the_passes_of_the_part_alone() {
        let gate = WriteGate::default();
        let [inside, outside] = [b"ab", b"xb"].map(|key| pass(&gate, key).unwrap());
        gate.close_part(b"a");
        assert!(gate.is_open() && inside.check(b"ab").is_err() && pass(&gate, b"ab").is_none());
        assert_eq!((outside.check(b"xb"), pass(&gate, b"xb").unwrap().check(b"xb")), (Ok(()), Ok(())));
        let beside = pass(&gate, b"xb").unwrap();
        gate.open_part();
        assert!(inside.check(b"ab").is_err(), "the write has looked at what was there before");
        assert_eq!((outside.check(b"xb"), beside.check(b"xb")), (Ok(()), Ok(())));
        assert_eq!(pass(&gate, b"ab").unwrap().check(b"ab"), Ok(()));
        gate.close();
        assert!(outside.check(b"xb").is_err() && beside.check(b"xb").is_err());
        gate.open();
        assert!(outside.check(b"xb").is_err() && pass(&gate, b"xb").is_some());
    }

    #[test]
    fn a_part_and_the_whole_are_closed_apart_from_each_other() {
        let gate = WriteGate::default();
        gate.close_part(b"a");
        gate.close();
        gate.open();
        assert!(pass(&gate, b"a").is_none() && pass(&gate, b"b").is_some());
        gate.close();
        gate.open_part();
        assert!(pass(&gate, b"a").is_none() && pass(&gate, b"b").is_none());
        gate.open();
        assert!(pass(&gate, b"a").is_some());
    }

    #[test]
    fn a_pass_from_before_a_closing_that_is_forgotten_is_not_valid() {
        let gate = WriteGate::default();
        let old = pass(&gate, b"k").unwrap();
        for _ in 0..PARTS_MAX {
            gate.close_part(b"a");
            gate.open_part();
        }
        let newer = pass(&gate, b"k").unwrap();
        assert_eq!(old.check(b"k"), Ok(()));
        gate.close_part(b"b");
        gate.open_part();
        assert!(old.check(b"a").is_err());
        assert_eq!(newer.check(b"k"), Ok(()));
    }

    #[tokio::test]
    async fn who_waits_goes_on_when_the_gate_opens() {
        let gate = WriteGate::default();
        gate.close();
        let (pass, ()) = tokio::join!(gate.wait(b"k"), async { gate.open() });
        assert_eq!(pass.check(b"k"), Ok(()));
        gate.close_part(b"k");
        let (pass, ()) = tokio::join!(gate.wait(b"k"), async { gate.open_part() });
        assert_eq!(pass.check(b"k"), Ok(()));
    }
}
