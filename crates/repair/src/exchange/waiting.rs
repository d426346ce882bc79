//! Why exchanges wait, in words for an operator.
//!
//! What made an exchange stop is noted when it stops. What keeps one from beginning is looked up
//! when somebody asks.
//!
//! What it is not: nothing is decided by it.

use super::exchanges::Exchanges;
use super::kept_sums::has_checked_sums;
use super::machine::{Ended, Tally};
use super::pairs::{Pair, without_exchanges};
use ombak_kv::ClassId;
use ombak_kv::repair_host::RepairHost;
use ombak_types::{Error, NodeId};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// An exchange that is due waits longer than this before an operator is told.
const LATE: Duration = Duration::from_secs(60);

/// An exchange that waits, or all exchanges of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingExchange {
    /// The class.
    pub class: ClassId,
    /// The other primary; none: the class is exchanged with nobody.
    pub node: Option<NodeId>,
    /// Its name, if that is known.
    pub name: Option<String>,
    /// Why it waits.
    pub why: String,
}

/// Why the last exchange of each pair has not ended in full.
#[derive(Debug, Default)]
pub(super) struct Obstacles(Mutex<BTreeMap<Pair, String>>);

impl Obstacles {
    /// Notes why an exchange has not ended in full.
    pub(super) fn note(&self, pair: Pair, why: String) {
        self.0.lock().insert(pair, why);
    }

    /// Notes that an exchange has ended in full.
    pub(super) fn clear(&self, pair: Pair) {
        self.0.lock().remove(&pair);
    }

    /// Forgets pairs that are none any more.
    pub(super) fn retain(&self, is_pair: impl Fn(Pair) -> bool) {
        self.0.lock().retain(|pair, _| is_pair(*pair));
    }

    fn of(&self, pair: Pair) -> Option<String> {
        self.0.lock().get(&pair).cloned()
    }
}

/// What a failure says to an operator.
pub(super) fn words_of(failure: &Error) -> String {
    match failure {
        Error::Storage(failure) => failure.text.clone(),
        Error::Timeout => "the other node has not answered in time".into(),
        Error::AllNodesDown => "the other node cannot be reached".into(),
        other => other.to_string(),
    }
}

/// Why an exchange that has ended has not done everything; none: it has.
pub(super) fn words_of_end(ended: Ended, tally: Tally) -> Option<String> {
    let text = match ended {
        Ended::Included => return None,
        Ended::Partly => "a part was compared, and the rest follows",
        Ended::Unproved if tally.withheld > 0 => {
            let count = tally.withheld;
            return Some(format!(
                "nobody can tell yet whether {count} keys were removed or lost: a primary does not answer, is filling, \
                 is in doubt about its copies, or is about to bring newer ones"
            ));
        }
        Ended::Unproved => "not everything could be brought to the other node, or be noted there",
        Ended::NotFull => "one of the two nodes may lack something, and fills its partition first",
        Ended::Confused => "the other node has answered something else than it was asked",
    };
    Some(text.into())
}

impl Exchanges {
    /// The exchanges that wait for something.
    pub(super) fn waiting(&self, host: &dyn RepairHost, now: Instant) -> Vec<WaitingExchange> {
        let due: Vec<(Pair, Instant)> = self.schedule.lock().turns().collect();
        let mut waiting = self.without_pairs(host);
        for (pair, due) in due {
            if let Some(why) = self.why_waits(host, pair, (due, now)) {
                let (class, node) = pair;
                waiting.push(WaitingExchange { class, node: Some(node), name: host.peers().name(node), why });
            }
        }
        waiting
    }

    fn why_waits(&self, host: &dyn RepairHost, pair: Pair, (due, now): (Instant, Instant)) -> Option<String> {
        let (class, node) = pair;
        if !host.peers().is_up(node) {
            return Some("the other node is down".into());
        }
        if !has_checked_sums(host, class) {
            return Some("this node compares the sums of the partition with its store first".into());
        }
        if let Some(why) = self.obstacles.of(pair) {
            return Some(why);
        }
        if now < due + LATE || self.control.is_suspended() {
            return None;
        }
        match self.working_on.lock().get(&class) {
            Some(other) if *other == node => None,
            Some(_) => Some("this node compares the partition with another node".into()),
            None if self.visits.is_visited(class, now) => {
                Some("another node compares the partition with this one".into())
            }
            None => Some("other exchanges come first".into()),
        }
    }

    /// The classes of this node that have no exchanges at all.
    fn without_pairs(&self, host: &dyn RepairHost) -> Vec<WaitingExchange> {
        let (placement, here, ns) = (host.placement(), host.node_id(), host.buckets().snapshot().all_n_vals());
        let without = without_exchanges(host, &placement, &*self.peers);
        let mut waiting = Vec::new();
        for home in placement.homes() {
            for n in ns.iter().filter(|n| home.is_primary(here, **n)) {
                let set = home.replica_set(*n);
                let text = match () {
                    () if set.len() < 2 => continue,
                    () if home.is_changing() => "the partition is moving to other nodes",
                    () if !host.is_full(home.home(), *n) => {
                        "this node may lack something of the partition, and fills it first"
                    }
                    () if set.iter().any(|node| without.contains(node)) => {
                        "a node that has it runs an earlier version, or has no exchanges"
                    }
                    () => continue,
                };
                let class = ClassId { partition: home.home(), n: *n };
                waiting.push(WaitingExchange { class, node: None, name: None, why: text.into() });
            }
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::StoreFailure;

    #[test]
    fn each_way_to_stop_has_words_and_only_the_end_in_full_has_none() {
        let words = |ended| words_of_end(ended, Tally::default());
        assert_eq!(words(Ended::Included), None);
        let others = [Ended::Partly, Ended::Unproved, Ended::NotFull, Ended::Confused].map(words);
        assert!(others.iter().all(Option::is_some), "{others:?}");
        let withheld = words_of_end(Ended::Unproved, Tally { withheld: 3, ..Tally::default() });
        assert!(withheld.is_some_and(|why| why.contains("whether 3 keys were removed")));
        assert_eq!(words_of(&StoreFailure::internal("a cause").into()), "a cause");
        assert!(words_of(&Error::Timeout).contains("in time"));
    }

    #[test]
    fn what_was_noted_is_forgotten_when_an_exchange_ends_in_full() {
        let pair = |partition| (ClassId { partition, n: 3 }, NodeId::new(1));
        let obstacles = Obstacles::default();
        (0..3).for_each(|partition| obstacles.note(pair(partition), partition.to_string()));
        obstacles.clear(pair(0));
        obstacles.retain(|kept| kept != pair(1));
        assert_eq!([0, 1, 2].map(|partition| obstacles.of(pair(partition))), [None, None, Some("2".into())]);
    }
}
