//! The way back: what this node holds and another one lacks, as the other one's lists have shown.
//! This node brings it at once, and needs no lists of its own for it.

use super::lists::Item;
use super::pairs::Pair;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Maximum number of versions that are remembered for one pair. This node's own exchange finds what
/// is left out.
const ITEMS_MAX: usize = 10_000;
/// Maximum number of pairs for which versions are remembered.
const PAIRS_MAX: usize = 1_024;
/// Maximum of the bytes that all remembered versions take.
const BYTES_MAX: usize = 16 << 20;
/// Bytes that a version takes beside its key, about.
const ITEM_BYTES: usize = 96;

/// A version of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyedItem {
    pub(super) item: Item,
    pub(super) key: Bytes,
    pub(super) digest: u64,
}

#[derive(Default)]
struct Remembered {
    /// What the store had when the other node's exchange began. What came later may be on its way
    /// there.
    seen_seq: u64,
    items: Vec<KeyedItem>,
}

impl Remembered {
    fn bytes(&self) -> usize {
        self.items.iter().map(bytes_of).sum()
    }
}

fn bytes_of(item: &KeyedItem) -> usize {
    ITEM_BYTES + item.key.len()
}

#[derive(Default)]
struct All {
    by_pair: BTreeMap<Pair, Remembered>,
    bytes: usize,
}

impl All {
    fn remove(&mut self, pair: Pair) -> Option<Remembered> {
        let removed = self.by_pair.remove(&pair)?;
        self.bytes -= removed.bytes();
        Some(removed)
    }
}

/// What is to be brought back, by pairs.
#[derive(Default)]
pub(super) struct WaysBack(Mutex<All>);

impl WaysBack {
    /// Another node begins an exchange, when this node's store is at a seq.
    pub(super) fn begin(&self, pair: Pair, seen_seq: u64) {
        let mut all = self.0.lock();
        all.remove(pair);
        if all.by_pair.len() >= PAIRS_MAX {
            // Most exchanges find nothing to bring back, and nobody takes that.
            all.by_pair.retain(|_, remembered| !remembered.items.is_empty());
        }
        if all.by_pair.len() < PAIRS_MAX {
            all.by_pair.insert(pair, Remembered { seen_seq, items: Vec::new() });
        }
    }

    /// The seq of this node's store when the exchange of the other node began; none if that is not
    /// known, and nothing can be brought back.
    pub(super) fn seen_seq(&self, pair: Pair) -> Option<u64> {
        self.0.lock().by_pair.get(&pair).map(|remembered| remembered.seen_seq)
    }

    /// Remembers what the other node lacks.
    pub(super) fn add(&self, pair: Pair, items: Vec<KeyedItem>) {
        let mut all = self.0.lock();
        let All { by_pair, bytes } = &mut *all;
        let Some(remembered) = by_pair.get_mut(&pair) else { return };
        for item in items {
            let more = bytes_of(&item);
            if remembered.items.len() >= ITEMS_MAX || *bytes + more > BYTES_MAX {
                return;
            }
            *bytes += more;
            remembered.items.push(item);
        }
    }

    /// The pairs for which there is something to bring.
    pub(super) fn open(&self) -> Vec<Pair> {
        let all = self.0.lock();
        all.by_pair.iter().filter(|(_, remembered)| !remembered.items.is_empty()).map(|(pair, _)| *pair).collect()
    }

    /// Takes what is to be brought for a pair.
    pub(super) fn take(&self, pair: Pair) -> Vec<KeyedItem> {
        self.0.lock().remove(pair).map(|remembered| remembered.items).unwrap_or_default()
    }

    /// Forgets what belongs to pairs that are none any more.
    pub(super) fn retain(&self, is_pair: impl Fn(Pair) -> bool) {
        let mut all = self.0.lock();
        let gone: Vec<Pair> = all.by_pair.keys().copied().filter(|pair| !is_pair(*pair)).collect();
        gone.into_iter().for_each(|pair| drop(all.remove(pair)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_kv::ClassId;
    use ombak_types::NodeId;

    fn item(mix: u64) -> KeyedItem {
        KeyedItem { item: Item { mix, seq: 1 }, key: Bytes::from_static(b"k"), digest: 1 }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_taken_once() {
        let ways = WaysBack::default();
        let pair = (ClassId { partition: 0, n: 3 }, NodeId::new(1));
        ways.add(pair, vec![item(1)]);
        assert!(ways.open().is_empty(), "no exchange has begun");
        ways.begin(pair, 7);
        assert_eq!(ways.seen_seq(pair), Some(7));
        ways.add(pair, (0..20_000).map(item).collect());
        assert_eq!(ways.open(), [pair]);
        assert_eq!(ways.take(pair).len(), ITEMS_MAX);
        assert!(ways.open().is_empty() && ways.take(pair).is_empty());
        ways.begin(pair, 8);
        ways.add(pair, vec![item(1)]);
        ways.begin(pair, 9);
        assert!(ways.open().is_empty(), "another exchange begins anew");
    }

    #[test]
    fn all_pairs_together_take_a_bounded_memory() {
        let ways = WaysBack::default();
        let pair = |partition| (ClassId { partition, n: 3 }, NodeId::new(1));
        let large = || KeyedItem { key: vec![7; 1 << 20].into(), ..item(1) };
        for partition in 0..3 {
            ways.begin(pair(partition), 1);
            ways.add(pair(partition), (0..10).map(|_| large()).collect());
        }
        assert_eq!([0, 1, 2].map(|partition| ways.0.lock().by_pair[&pair(partition)].items.len()), [10, 5, 0]);
        assert_eq!(ways.take(pair(0)).len(), 10);
        ways.add(pair(2), (0..10).map(|_| large()).collect());
        assert_eq!(ways.take(pair(2)).len(), 10, "what was taken makes room");
        ways.retain(|_| false);
        assert_eq!(ways.0.lock().bytes, 0);
    }

    #[test]
    fn pairs_that_had_nothing_to_bring_make_room_for_others() {
        let ways = WaysBack::default();
        let pair = |partition| (ClassId { partition, n: 3 }, NodeId::new(1));
        (0..PAIRS_MAX as u32).for_each(|partition| ways.begin(pair(partition), 1));
        ways.add(pair(5), vec![item(1)]);
        ways.begin(pair(PAIRS_MAX as u32), 2);
        assert_eq!(ways.seen_seq(pair(PAIRS_MAX as u32)), Some(2));
        assert_eq!((ways.open(), ways.seen_seq(pair(6))), (vec![pair(5)], None));
    }
}
