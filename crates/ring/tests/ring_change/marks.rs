//! What a store says about itself and about the stores of other members: seqs, openings, tokens,
//! doubt, marks and told seqs (docs/design/anti-entropy.md).
//!
//! A class has one key in this model, and a store of its own. Everything is on disk at once, and a
//! fence is a moment: it refuses what was read before.

use super::exchange::{Exchange, Kind, Verdict};
use super::model::{Copied, Key};
use super::reaping::Round;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// An opening goes on so far behind the last seq that it found.
const SKIPPED: u64 = 1 << 26;

/// The id of a store and a seq that it told after a sync.
pub type Told = (u64, u64);

/// B held everything that A held at seq `a`, when B's store was at seq `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub own_id: u64,
    pub a: u64,
    pub id: u64,
    pub token: u64,
    pub b: u64,
}

/// The store of a class, with what its member keeps about it. All of it goes back together when
/// the store is set back.
#[derive(Clone, Debug, Default)]
pub struct Store {
    pub id: u64,
    pub seq: u64,
    /// The seq of the copy.
    pub at: u64,
    pub openings: Vec<(u64, u64)>,
    pub token: u64,
    pub doubt: u64,
    /// The base of the newest opening whose loss the store knows.
    pub accounted: u64,
    pub marks: BTreeMap<NodeId, Mark>,
    /// The marks that others have for this store.
    pub of_others: BTreeMap<NodeId, Mark>,
    pub told: BTreeMap<NodeId, Told>,
    /// The seq at which a stand-in answered that it holds nothing.
    pub empty_at: u64,
}

impl Store {
    /// What follows this opening does not repeat a seq.
    pub fn open(&mut self) {
        let end = self.seq;
        self.seq += SKIPPED;
        self.openings.push((end, self.seq));
    }

    pub fn keep_told(&mut self, node: NodeId, told: Told) {
        let kept = self.told.entry(node).or_insert(told);
        *kept = (*kept).max(told);
    }

    pub fn is_covered(&self) -> bool {
        self.marks.values().any(|mark| mark.own_id == self.id && self.at <= mark.a)
    }

    pub fn is_covered_for(&self, node: NodeId) -> bool {
        self.marks.get(&node).is_some_and(|mark| mark.own_id == self.id && self.at <= mark.a)
    }
}

fn is_lost(openings: &[(u64, u64)], seq: u64) -> bool {
    openings.iter().any(|(end, base)| *end < seq && seq < *base)
}

/// What a member answers about its store of a class.
#[derive(Clone, Debug)]
pub struct About {
    pub copy: Copied,
    pub is_full: bool,
    pub is_doubtful: bool,
    /// The store with its marks and told seqs.
    pub store: Store,
    /// The mark of the member that asks.
    pub of_you: Option<Mark>,
    pub told_you: Option<Told>,
}

/// The seq up to which a mark of the store for this member holds.
pub fn holding(store: &Store, node: NodeId, other: &About) -> u64 {
    let own = store.marks.get(&node).copied();
    let theirs = other.of_you.filter(|mark| mark.own_id == store.id);
    let newest = own.into_iter().chain(theirs).filter(|mark| mark.own_id == store.id).max_by_key(|mark| mark.a);
    let Some(mark) = newest else { return 0 };
    let holds = mark.id == other.store.id && mark.token == other.store.token && !is_lost(&other.store.openings, mark.b);
    if holds { mark.a } else { 0 }
}

pub fn covers(one: Copied, other: Copied) -> bool {
    one & other == other
}

/// Whether it holds nothing of the copy. An older version was not written after a removal.
pub fn lacks(held: Copied, copy: Copied) -> bool {
    !(covers(held, copy) || held != 0 && covers(copy, held))
}

/// What a member has for exchanges and reaping.
#[derive(Debug, Default)]
pub struct Marking {
    pub stores: Vec<Store>,
    /// All records of each store: a fault may bring one back.
    pub journals: Vec<Vec<(u64, Copied)>>,
    pub fences: Vec<u64>,
    pub exchanges: BTreeMap<(Key, Kind), Exchange>,
    pub verdicts: BTreeMap<(Key, Kind), Verdict>,
    pub rounds: BTreeMap<Key, Round>,
    pub questions: u64,
    pub drawn: u64,
    /// How often a store was found to have lost something, and not only its unsynced tail.
    pub losses: u64,
    /// Tombstones that were removed, and copies that were dropped, since somebody looked.
    pub removed: Vec<(Key, Copied)>,
    pub dropped: Vec<(Key, Copied)>,
    /// Copies that a fault brought back, and the keys of those that are a part of something newer.
    pub returned: Vec<(Key, Copied)>,
    pub written_over: BTreeSet<Key>,
}

impl Marking {
    pub fn new(node: NodeId, keys: usize) -> Self {
        let mut marking = Self::default();
        marking.stores = (0..keys)
            .map(|_| Store { id: marking.draw(node), token: marking.draw(node), ..Store::default() })
            .collect();
        marking.journals = vec![Vec::new(); keys];
        marking.fences = vec![0; keys];
        marking
    }

    /// A number that nobody drew before.
    pub fn draw(&mut self, node: NodeId) -> u64 {
        self.drawn += 1;
        node.get() << 32 | self.drawn
    }

    pub fn end_all(&mut self) {
        self.exchanges.clear();
        self.verdicts.clear();
        self.rounds.clear();
    }
}
