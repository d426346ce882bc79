//! The order of the conditional puts of one key on the node that coordinates them.
//!
//! Two puts at a time would outbid each other, and both could fail. So the second one waits until
//! the first has ended. Nothing else depends on that: puts that other nodes coordinate do not wait.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

type Slot = Arc<tokio::sync::Mutex<()>>;

/// The storage keys with a conditional put under way. Bounded by the number of requests.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<BTreeMap<Bytes, Slot>>);

/// A turn, or the wait for one. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    key: Bytes,
    slot: Option<Slot>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits until no other turn of the key is under way.
    pub(crate) async fn take(&self, key: Bytes) -> Turn<'_> {
        let slot = self.0.lock().entry(key.clone()).or_default().clone();
        let mut turn = Turn { turns: self, key, slot: Some(slot.clone()), guard: None };
        turn.guard = Some(slot.lock_owned().await);
        turn
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut slots = self.turns.0.lock();
        // Both are dropped while the table is locked, so the last one of a key sees that it is.
        drop((self.guard.take(), self.slot.take()));
        if slots.get(&self.key).is_some_and(|slot| Arc::strong_count(slot) == 1) {
            slots.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn turns_of_a_key_follow_each_other_and_leave_nothing_behind() {
        let turns = Turns::default();
        let first = turns.take("k".into()).now_or_never().unwrap();
        let mut second = Box::pin(turns.take("k".into()));
        let mut third = Box::pin(turns.take("k".into()));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop(turns.take("other".into()).now_or_never().unwrap());
        drop(first);
        // One that was waiting goes away without its turn.
        drop(second);
        drop(third.now_or_never().unwrap());
        assert!(turns.0.lock().is_empty());
    }
}
