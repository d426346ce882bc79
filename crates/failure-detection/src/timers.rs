//! What the core has to do later, in order.

use std::collections::BTreeMap;
use std::time::Duration;

/// Events by the local time at which they are due. Events of one time keep the order in which they
/// were added.
#[derive(Debug)]
pub(crate) struct Timers<E> {
    events: BTreeMap<(Duration, u64), E>,
    added: u64,
}

impl<E> Timers<E> {
    pub(crate) const fn new() -> Self {
        Self { events: BTreeMap::new(), added: 0 }
    }

    pub(crate) fn add(&mut self, at: Duration, event: E) {
        self.events.insert((at, self.added), event);
        self.added += 1;
    }

    /// When the first event is due.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the first event that is due.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<E> {
        if self.next()? > now {
            return None;
        }
        self.events.pop_first().map(|(_, event)| event)
    }
}
