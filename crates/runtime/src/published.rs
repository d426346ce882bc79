//! A value of which everybody sees the newest version, and for whose change tasks can wait.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A value that changes. Those who wait for a change wake in the order in which they began to wait,
/// so a seed decides what follows. (tokio's channel `watch` does the same, and draws the order from
/// a random source of its own.)
#[derive(Debug, Default)]
pub struct Published<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State<T> {
    value: T,
    has_ended: bool,
}

impl<T: Clone> Published<T> {
    /// Begins with a value.
    pub fn new(value: T) -> Self {
        Self { state: Mutex::new(State { value, has_ended: false }), changed: Notify::new() }
    }

    /// The newest value.
    pub fn get(&self) -> T {
        self.state.lock().value.clone()
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        self.state.lock().value = value;
        self.changed.notify_waiters();
    }

    /// There will be no other value.
    pub fn end(&self) {
        self.state.lock().has_ended = true;
        self.changed.notify_waiters();
    }

    /// Waits for a value with some property, and returns it; `None` if there will be none.
    pub async fn wait_for(&self, mut holds: impl FnMut(&T) -> bool) -> Option<T> {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state.lock();
                if holds(&state.value) {
                    return Some(state.value.clone());
                }
                if state.has_ended {
                    return None;
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiters_see_what_they_wait_for_or_the_end() {
        let number = Published::new(1);
        let (found, missed, ()) = tokio::join!(number.wait_for(|n| *n > 2), number.wait_for(|n| *n > 9), async {
            number.set(2);
            number.set(3);
            number.end();
        });
        assert_eq!((found, missed, number.get()), (Some(3), None, 3));
        assert_eq!(number.wait_for(|n| *n == 3).await, Some(3), "the last value stays");
    }
}
