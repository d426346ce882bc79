//! The fullness tokens of the classes of this node (docs/design/anti-entropy.md §4).
//!
//! A token is a random number. It stands for "full ever since, and nothing was lost but an unsynced
//! tail". Marks of other nodes name it, and are void once it is another one. A class keeps its
//! token when it loses its tail, because a mark says what was on the disk.
//!
//! What it is not: it does not know whether a class is full (`classes`). It writes no file: the
//! tokens are saved beside the state of their classes (`checkpoint`).
//!
//! Invariants:
//! * Nobody is told a token before it is on the disk.
//! * A loss draws the tokens of its partition anew before the classes can be full again.

use crate::replica::ClassId;
use ombak_runtime::Runtime;
use parking_lot::Mutex;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drawn {
    token: u64,
    is_saved: bool,
}

/// The tokens of all classes of this node.
#[derive(Default)]
pub struct Fullness {
    tokens: Mutex<BTreeMap<ClassId, Drawn>>,
    /// Rises with each change.
    changes: AtomicU64,
}

impl Fullness {
    /// The token of a class, if it has one on the disk. It says nothing while the class is not
    /// full.
    pub fn token(&self, class: ClassId) -> Option<u64> {
        self.tokens.lock().get(&class).filter(|drawn| drawn.is_saved).map(|drawn| drawn.token)
    }

    /// The tokens of a partition, by n, saved or not.
    pub(crate) fn of(&self, partition: u32) -> BTreeMap<u32, u64> {
        let tokens = self.tokens.lock();
        tokens.range(all_of(partition)).map(|(class, drawn)| (class.n, drawn.token)).collect()
    }

    /// Takes what was saved of a partition.
    pub(crate) fn restore(&self, partition: u32, saved: &BTreeMap<u32, u64>) {
        let mut tokens = self.tokens.lock();
        for (n, token) in saved {
            tokens.insert(ClassId { partition, n: *n }, Drawn { token: *token, is_saved: true });
        }
    }

    /// Notes that these tokens of a partition are on the disk. One that was drawn anew meanwhile is
    /// not.
    pub(crate) fn note_saved(&self, partition: u32, saved: &BTreeMap<u32, u64>) {
        let mut tokens = self.tokens.lock();
        for (n, token) in saved {
            if let Some(drawn) = tokens.get_mut(&ClassId { partition, n: *n }).filter(|drawn| drawn.token == *token) {
                drawn.is_saved = true;
            }
        }
    }

    /// Draws other tokens for those classes of a partition that have one and for whose n `is_meant`
    /// is true.
    pub(crate) fn draw_anew(&self, partition: u32, runtime: &dyn Runtime, is_meant: impl Fn(u32) -> bool) {
        let mut tokens = self.tokens.lock();
        let meant = tokens.range(all_of(partition)).map(|(class, _)| *class).filter(|class| is_meant(class.n));
        let meant: Vec<ClassId> = meant.collect();
        for class in meant {
            match draw(runtime) {
                Some(drawn) => tokens.insert(class, drawn),
                // It gets one before it is told as full.
                None => tokens.remove(&class),
            };
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Draws a token for each of these classes that has none. Returns false if there was no
    /// randomness.
    pub(crate) fn draw_missing(
        &self,
        partitions: impl Iterator<Item = u32>,
        ns: &BTreeSet<u32>,
        runtime: &dyn Runtime,
    ) -> bool {
        let mut tokens = self.tokens.lock();
        for partition in partitions {
            for class in ns.iter().map(|n| ClassId { partition, n: *n }) {
                if let Entry::Vacant(missing) = tokens.entry(class) {
                    let Some(drawn) = draw(runtime) else { return false };
                    missing.insert(drawn);
                    self.changes.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
        true
    }

    /// The number of changes since the start.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

fn all_of(partition: u32) -> std::ops::RangeInclusive<ClassId> {
    ClassId { partition, n: 0 }..=ClassId { partition, n: u32::MAX }
}

/// A token that no disk has yet. 0 stands for "not full" in answers.
fn draw(runtime: &dyn Runtime) -> Option<Drawn> {
    use ombak_runtime::RuntimeExt;
    runtime.random_u64().ok().map(|token| Drawn { token: token.max(1), is_saved: false })
}
