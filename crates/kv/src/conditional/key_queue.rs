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
pub(crate) struct KeyQueue(Mutex<BTreeMap<Bytes, Slot>>);

/// A place in the queue of a key: the put waits, or it is its turn. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct QueuePlace<'a> {
    queue: &'a KeyQueue,
    key: Bytes,
    slot: Option<Slot>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl KeyQueue {
    /// Waits until no other put of the key has its turn.
    pub(crate) async fn enter(&self, key: Bytes) -> QueuePlace<'_> {
        let slot = self.0.lock().entry(key.clone()).or_default().clone();
        let mut place = QueuePlace { queue: self, key, slot: Some(slot.clone()), guard: None };
        place.guard = Some(slot.lock_owned().await);
        place
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let mut slots = self.queue.0.lock();
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
    fn puts_of_a_key_follow_each_other_and_leave_nothing_behind() {
        let queue = KeyQueue::default();
        let first = queue.enter("k".into()).now_or_never().unwrap();
        let mut second = Box::pin(queue.enter("k".into()));
        let mut third = Box::pin(queue.enter("k".into()));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop(queue.enter("other".into()).now_or_never().unwrap());
        drop(first);
        // One that was waiting goes away without its turn.
        drop(second);
        drop(third.now_or_never().unwrap());
        assert!(queue.0.lock().is_empty());
    }
}
