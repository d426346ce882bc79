//! The forwarded puts that this node has lately received.

use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};

/// How many numbers are remembered.
const REMEMBERED_MAX: usize = 10_000;

/// The numbers of forwarded puts. A node executes each number at most once, however often the put
/// reaches it.
#[derive(Debug, Default)]
pub(crate) struct ForwardedPuts(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    known: BTreeSet<u64>,
    /// The oldest first.
    order: VecDeque<u64>,
}

impl ForwardedPuts {
    /// Notes a number. Returns false if it was noted before.
    pub(crate) fn begin(&self, number: u64) -> bool {
        let mut remembered = self.0.lock();
        if !remembered.known.insert(number) {
            return false;
        }
        remembered.order.push_back(number);
        if remembered.order.len() > REMEMBERED_MAX
            && let Some(oldest) = remembered.order.pop_front()
        {
            remembered.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_begins_once_and_is_forgotten_in_time() {
        let puts = ForwardedPuts::default();
        assert!(puts.begin(0) && !puts.begin(0));
        assert!((1..=REMEMBERED_MAX as u64).all(|number| puts.begin(number)));
        assert!(!puts.begin(1) && puts.begin(0), "the oldest was forgotten");
    }
}
