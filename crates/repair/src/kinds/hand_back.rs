//! Gives back what this node holds for others in a partition, pass by pass.
//!
//! While a primary is down, new foreign copies go to the other primaries in passes over what is
//! new. A pass visits everything unless the same primaries as before are still missing.

use super::{Kind, Look, Outcome, Place};
use crate::hand_back::Left;
use ombak_runtime::BoxFuture;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause before each pass over what is new is at least this long, and at least this many times
/// as long as the pass before it took.
const PASS_PAUSE_MIN: Duration = Duration::from_secs(5);
const PASS_PAUSE_PER_WORK: u32 = 20;

/// A partition whose foreign copies wait for primaries.
struct Waiting {
    missing: BTreeSet<NodeId>,
    /// What was begun in the partition when the last pass began.
    begun: u64,
    visited_seq: u64,
    /// When another pass may visit what is new.
    next_pass: Instant,
}

/// The partitions that were visited, and not emptied.
#[derive(Default)]
pub(super) struct HandBack {
    waiting: Arc<Mutex<BTreeMap<u32, Waiting>>>,
}

impl HandBack {
    /// Whether a pass over a partition may achieve something.
    fn may_achieve_something(&self, look: &Look<'_>, partition: u32) -> bool {
        let all = self.waiting.lock();
        let Some(waiting) = all.get(&partition) else { return true };
        let is_new = look.host.transfers().foreign.begun(partition) > waiting.begun;
        let is_waited_for_up = waiting.missing.is_empty() || !waiting.missing.is_disjoint(look.up);
        is_waited_for_up || is_new && look.work.runtime.now() >= waiting.next_pass
    }

    /// Notes that a pass begins. Returns the seq after which it visits versions.
    fn begins(&self, look: &Look<'_>, partition: u32) -> u64 {
        let mut all = self.waiting.lock();
        let is_still_missing = |waiting: &&Waiting| !waiting.missing.is_empty() && waiting.missing.is_disjoint(look.up);
        let since_seq = all.get(&partition).filter(is_still_missing).map_or(0, |waiting| waiting.visited_seq);
        let (begun, next_pass) = (look.host.transfers().foreign.begun(partition), look.work.runtime.now());
        let first = Waiting { missing: BTreeSet::new(), begun, visited_seq: since_seq, next_pass };
        all.entry(partition).or_insert(first).begun = begun;
        since_seq
    }
}

impl Kind for HandBack {
    fn name(&self) -> &'static str {
        "hand back"
    }

    fn due(&self, look: &Look<'_>) -> Vec<Place> {
        if !look.gives_pushes {
            return Vec::new();
        }
        let foreign = &look.host.transfers().foreign;
        // What is foreign now may not be foreign when the change of its home ends.
        let is_to_visit = |partition: &u32| {
            let is_to_count = foreign.is_unknown(*partition) && !look.placement.home(*partition).is_changing();
            (is_to_count || look.work.may_hand_back(look.host, look.placement, *partition))
                && self.may_achieve_something(look, *partition)
        };
        foreign.partitions().filter(is_to_visit).map(Place::Partition).collect()
    }

    fn begin(&self, look: &Look<'_>, place: Place) -> BoxFuture<'static, Outcome> {
        let Place::Partition(partition) = place else { return Box::pin(std::future::ready(Outcome::Done)) };
        let since_seq = self.begins(look, partition);
        let (work, host, waiting) = (look.work.clone(), look.host.clone(), self.waiting.clone());
        Box::pin(async move {
            let began = work.runtime.now();
            let left = match work.hand_back(&host, partition, since_seq).await {
                Ok(left) => left,
                Err(why) => return Outcome::Failed(why),
            };
            let now = work.runtime.now();
            let is_empty = passed(&mut waiting.lock(), partition, left, now.saturating_duration_since(began), now);
            if is_empty { Outcome::Done } else { Outcome::Left }
        })
    }

    fn forget_changed(&self, is_same: &dyn Fn(u32) -> bool) {
        self.waiting.lock().retain(|partition, _| is_same(*partition));
    }
}

/// Remembers for which primaries the copies of a partition wait. Returns whether none is left.
fn passed(all: &mut BTreeMap<u32, Waiting>, partition: u32, left: Left, worked: Duration, now: Instant) -> bool {
    if left.amounts.is_empty() && left.is_whole {
        all.remove(&partition);
        return true;
    }
    if let Some(waiting) = all.get_mut(&partition) {
        // A pass over what is new says nothing about what is older.
        if left.is_whole {
            waiting.missing.clear();
        }
        waiting.missing.extend(left.missing);
        waiting.visited_seq = left.visited_seq;
        waiting.next_pass = now + PASS_PAUSE_MIN.max(worked * PASS_PAUSE_PER_WORK);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_kv::Amount;

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);

    fn left(keys: u64, missing: &[NodeId], is_whole: bool) -> Left {
        let amounts = if keys == 0 { BTreeMap::new() } else { BTreeMap::from([(3, Amount { keys, bytes: keys })]) };
        Left { amounts, missing: missing.iter().copied().collect(), visited_seq: 9, is_whole, ..Left::default() }
    }

    #[test]
    fn only_a_whole_pass_says_that_nothing_is_left_or_that_a_primary_is_there() {
        let now = Instant::now();
        let waiting = Waiting { missing: BTreeSet::new(), begun: 0, visited_seq: 0, next_pass: now };
        let mut all = BTreeMap::from([(5, waiting)]);
        let mut pass = |left: Left, worked_secs: u64| {
            let is_empty = passed(&mut all, 5, left, Duration::from_secs(worked_secs), now);
            let waits = all.get(&5).map(|waiting| (waiting.missing.clone(), (waiting.next_pass - now).as_secs()));
            (is_empty, waits)
        };
        assert_eq!(pass(left(2, &[A], true), 0), (false, Some((BTreeSet::from([A]), 5))));
        assert_eq!(pass(left(0, &[B], false), 1), (false, Some((BTreeSet::from([A, B]), 20))));
        assert_eq!(pass(left(1, &[B], true), 0), (false, Some((BTreeSet::from([B]), 5))));
        assert_eq!(pass(left(0, &[], true), 0), (true, None));
    }
}
