//! Which classes another node compares with this one at this moment, because they differ.
//!
//! All primaries of a class find the same difference. Only one of them repairs it: the others, and
//! this node's own exchanges of the class, wait until that is done. Otherwise each difference would
//! be listed and brought several times.
//!
//! What it is not: it decides nothing about what is pushed. A visit that was forgotten, or of a
//! node that is gone, ends by itself.

use super::pairs::Pair;
use ombak_kv::ClassId;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long an exchange of this node that is due waits for the visits of further nodes. They could
/// follow each other for ever.
const HELD_BACK_MAX: Duration = Duration::from_secs(10);

/// The visits of other nodes. There is at most one for each class.
#[derive(Debug)]
pub(super) struct Visits {
    /// How long a visit lasts after a question.
    lasts: Duration,
    by_class: Mutex<BTreeMap<ClassId, Visit>>,
}

#[derive(Clone, Copy, Debug)]
struct Visit {
    from: NodeId,
    until: Instant,
}

impl Visits {
    pub(super) const fn new(lasts: Duration) -> Self {
        Self { lasts, by_class: Mutex::new(BTreeMap::new()) }
    }

    /// A node begins to compare a class that differs. Returns whether it may: not while another one
    /// does.
    pub(super) fn begin(&self, class: ClassId, from: NodeId, now: Instant) -> bool {
        let mut by_class = self.by_class.lock();
        if by_class.get(&class).is_some_and(|visit| visit.from != from && now < visit.until) {
            return false;
        }
        by_class.insert(class, Visit { from, until: now + self.lasts });
        true
    }

    /// A node goes on with its visit, if it has one.
    pub(super) fn go_on(&self, class: ClassId, from: NodeId, now: Instant) {
        if let Some(visit) = self.by_class.lock().get_mut(&class).filter(|visit| visit.from == from) {
            visit.until = now + self.lasts;
        }
    }

    /// A node has ended its visit.
    pub(super) fn end(&self, class: ClassId, from: NodeId) {
        let mut by_class = self.by_class.lock();
        if by_class.get(&class).is_some_and(|visit| visit.from == from) {
            by_class.remove(&class);
        }
    }

    /// Whether another node compares a class with this one.
    pub(super) fn is_visited(&self, class: ClassId, now: Instant) -> bool {
        self.by_class.lock().get(&class).is_some_and(|visit| now < visit.until)
    }

    /// Whether visits hold back an exchange of this node with another one that has been due since a
    /// moment: what the visitor repairs need not be compared again.
    pub(super) fn hold_back(&self, (class, node): Pair, due: Instant, now: Instant) -> bool {
        let is_long_due = now >= due + HELD_BACK_MAX;
        if is_long_due { self.is_visited_by(class, node, now) } else { self.is_visited(class, now) }
    }

    /// Whether this node compares a class with this one.
    pub(super) fn is_visited_by(&self, class: ClassId, node: NodeId, now: Instant) -> bool {
        self.by_class.lock().get(&class).is_some_and(|visit| visit.from == node && now < visit.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_at_a_time_visits_a_class_until_it_ends_or_falls_silent() {
        let (lasts, now) = (Duration::from_secs(3), Instant::now());
        let visits = Visits::new(lasts);
        let class = |partition| ClassId { partition, n: 3 };
        let [a, b] = [1, 2].map(NodeId::new);
        assert!(visits.begin(class(0), a, now) && visits.begin(class(0), a, now));
        assert!(!visits.begin(class(0), b, now) && visits.begin(class(1), b, now));
        assert!(visits.is_visited_by(class(0), a, now) && !visits.is_visited_by(class(0), b, now));
        assert!(!visits.is_visited_by(class(0), a, now + lasts));
        visits.end(class(0), b);
        assert!(visits.is_visited(class(0), now), "it is the visit of another node");
        visits.end(class(0), a);
        assert!(!visits.is_visited(class(0), now));
        assert!(visits.begin(class(0), b, now));
        visits.go_on(class(0), a, now + lasts);
        visits.go_on(class(0), b, now + Duration::from_secs(2));
        assert!(!visits.begin(class(0), a, now + Duration::from_secs(4)));
        assert!(visits.begin(class(0), a, now + Duration::from_secs(5)));
    }

    #[test]
    fn visits_hold_back_an_exchange_of_this_node_for_some_time() {
        let due = Instant::now();
        let visits = Visits::new(Duration::from_secs(3));
        let class = ClassId { partition: 0, n: 3 };
        let [a, b] = [1, 2].map(NodeId::new);
        let held_back = |now: Instant| [a, b].map(|node| visits.hold_back((class, node), due, now));
        assert_eq!(held_back(due), [false, false]);
        assert!(visits.begin(class, a, due));
        assert_eq!(held_back(due), [true, true]);
        let later = due + HELD_BACK_MAX;
        assert!(visits.begin(class, a, later));
        assert_eq!(held_back(later), [true, false], "only the visitor itself is waited for");
    }
}
