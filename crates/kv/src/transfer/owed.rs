//! Owed marks: which peers of a class missed writes that this node has (docs/design/replication.md
//! §2).
//!
//! What it is: the marks in memory, and the count of puts that still wait for replicas. The work
//! pushes what is owed, has it proved, and clears the mark.
//!
//! What it is not: `state_file` makes the marks durable, lazily: a *checkpoint* is the seq of a
//! store up to which every put has ended, and the marks that were there then. After an unclean end
//! of the process everything that came after the checkpoint is owed to all.

use crate::replica::ClassId;
use ombak_ring::ReplicaSet;
use ombak_ring::placement::HomePlacement;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is owed to one peer of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// Versions from this seq on.
    since_seq: u64,
    /// Whether somebody works on the mark.
    is_worked_on: bool,
    /// The lowest seq that the peer missed after the work had begun.
    missed_seq: Option<u64>,
}

/// What a peer is owed: versions of a class from a seq on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owed {
    /// The class.
    pub class: ClassId,
    /// The node that missed versions.
    pub peer: NodeId,
    /// The seq of this node's store from which on they are owed.
    pub since_seq: u64,
}

/// The marks of this node.
#[derive(Default)]
pub struct OwedMarks {
    marks: Mutex<BTreeMap<(ClassId, NodeId), Mark>>,
    /// The number of the present epoch of puts. It rises with each checkpoint.
    epoch: AtomicU64,
    /// The puts of the present epoch and of the one before that have not ended.
    active_puts: [AtomicU64; 2],
    /// Rises with each change of the marks.
    changes: AtomicU64,
}

/// A put that may leave a peer without its version. When this is dropped, the peers of which no
/// store was reported are owed the version.
pub struct AwaitedReplicas {
    marks: Arc<OwedMarks>,
    class: ClassId,
    missing: ReplicaSet,
    /// The nodes of which a store was reported.
    stored_at: ReplicaSet,
    /// The seq of this node's copy; 0 until it is stored.
    seq: u64,
    epoch: u64,
}

impl OwedMarks {
    /// Begins a put, before this node stores its copy. Returns nothing if this node is no primary
    /// of the class in either set: then its copy is foreign, and goes to all primaries anyway.
    pub(crate) fn await_replicas(
        self: &Arc<Self>,
        home: HomePlacement<'_>,
        here: NodeId,
        n: u32,
    ) -> Option<AwaitedReplicas> {
        let class = ClassId { partition: home.home(), n };
        let mut missing = home.primaries(n);
        let own = missing.iter().position(|node| *node == here)?;
        missing.remove(own);
        if missing.is_empty() {
            return None;
        }
        let stored_at = ReplicaSet::new();
        Some(AwaitedReplicas { marks: self.clone(), class, missing, stored_at, seq: 0, epoch: self.enter() })
    }

    /// Counts a put in the present epoch.
    fn enter(&self) -> u64 {
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let active = &self.active_puts[epoch as usize % 2];
            active.fetch_add(1, Ordering::SeqCst);
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return epoch;
            }
            active.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Ends the present epoch. What had been appended before this call belongs to puts of epochs
    /// that have ended.
    pub(crate) fn next_epoch(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::SeqCst)
    }

    /// Whether all puts of an epoch that is over have ended.
    pub(crate) fn has_drained(&self, epoch: u64) -> bool {
        self.active_puts[epoch as usize % 2].load(Ordering::SeqCst) == 0
    }

    /// Whether no put waits for replicas.
    pub(crate) fn is_quiet(&self) -> bool {
        self.has_drained(0) && self.has_drained(1)
    }

    /// Notes that a peer of a class missed the version with this seq of the partition's store.
    pub fn missed(&self, class: ClassId, peer: NodeId, seq: u64) {
        let mut marks = self.marks.lock();
        let new = Mark { since_seq: seq, is_worked_on: false, missed_seq: None };
        let mark = marks.entry((class, peer)).or_insert(new);
        if mark.is_worked_on {
            mark.missed_seq = Some(mark.missed_seq.map_or(seq, |before| before.min(seq)));
        } else {
            mark.since_seq = mark.since_seq.min(seq);
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Begins the work on a mark. Returns the seq from which on versions are owed.
    pub fn begin(&self, class: ClassId, peer: NodeId) -> Option<u64> {
        let mut marks = self.marks.lock();
        let mark = marks.get_mut(&(class, peer)).filter(|mark| !mark.is_worked_on)?;
        mark.is_worked_on = true;
        Some(mark.since_seq)
    }

    /// Ends the work on a mark. Only what was proved is cleared: what the peer missed since the
    /// work began stays owed.
    pub fn end(&self, class: ClassId, peer: NodeId, is_proven: bool) {
        let mut marks = self.marks.lock();
        let Some(mark) = marks.get_mut(&(class, peer)) else { return };
        let Mark { since_seq, missed_seq, .. } = *mark;
        match (is_proven, missed_seq) {
            (true, None) => {
                marks.remove(&(class, peer));
            }
            (true, Some(since_seq)) => *mark = Mark { since_seq, is_worked_on: false, missed_seq: None },
            (false, missed) => {
                let since_seq = missed.map_or(since_seq, |missed| missed.min(since_seq));
                *mark = Mark { since_seq, is_worked_on: false, missed_seq: None };
            }
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Everything that is owed, in order.
    pub fn list(&self) -> Vec<Owed> {
        let marks = self.marks.lock();
        let least = |mark: &Mark| mark.missed_seq.map_or(mark.since_seq, |missed| missed.min(mark.since_seq));
        marks.iter().map(|((class, peer), mark)| Owed { class: *class, peer: *peer, since_seq: least(mark) }).collect()
    }

    /// Forgets the marks that nobody can or need pay.
    pub(crate) fn forget(&self, is_needless: impl Fn(ClassId, NodeId) -> bool) {
        let mut marks = self.marks.lock();
        let before = marks.len();
        marks.retain(|(class, peer), _| !is_needless(*class, *peer));
        if marks.len() < before {
            self.changes.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether something of a class is owed to a peer.
    pub fn has_owed(&self, class: ClassId, peer: NodeId) -> bool {
        self.marks.lock().contains_key(&(class, peer))
    }

    /// The number of changes of the marks since the start.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }
}

impl AwaitedReplicas {
    /// Reports this node's copy.
    pub fn written(&mut self, seq: u64) {
        self.seq = seq;
    }

    /// Reports that another node has stored the version.
    pub(crate) fn stored_at(&mut self, node: NodeId) {
        self.missing.retain(|missing| *missing != node);
        self.stored_at.push(node);
    }

    /// Waits for the primaries of the home as it is now, as far as they have not stored the
    /// version.
    pub(crate) fn home_changed(&mut self, home: HomePlacement<'_>, here: NodeId) {
        self.missing = home.primaries(self.class.n);
        self.missing.retain(|node| *node != here && !self.stored_at.contains(node));
    }
}

impl Drop for AwaitedReplicas {
    fn drop(&mut self) {
        if self.seq > 0 {
            self.missing.iter().for_each(|node| self.marks.missed(self.class, *node, self.seq));
        }
        // A checkpoint must not see the end of the put before its marks.
        self.marks.active_puts[self.epoch as usize % 2].fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_ring::placement::{Placement, Step, StepOf};
    use ombak_ring::{Ring, RingVersion};
    use std::collections::BTreeSet;

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);
    const CLASS: ClassId = ClassId { partition: 0, n: 3 };

    fn settled() -> Placement {
        let owners: Vec<NodeId> = (1..=4).cycle().take(8).map(NodeId::new).collect();
        Placement::of_ring(Arc::new(Ring::from_owners(&owners, RingVersion::first(1)).unwrap()))
    }

    fn marks() -> Arc<OwedMarks> {
        Arc::new(OwedMarks::default())
    }

    #[test]
    fn whoever_did_not_store_is_owed() {
        let marks = marks();
        let mut put = marks.await_replicas(settled().home(0), A, 3).unwrap();
        put.written(7);
        put.stored_at(NodeId::new(3));
        put.stored_at(NodeId::new(4));
        assert_eq!(marks.list(), []);
        assert!(!marks.is_quiet());
        drop(put);
        assert!(marks.is_quiet());
        assert_eq!(marks.list(), [Owed { class: CLASS, peer: B, since_seq: 7 }]);
        assert!(marks.has_owed(CLASS, B) && !marks.has_owed(CLASS, NodeId::new(3)));
    }

    #[test]
    fn primaries_of_either_set_are_owed() {
        let before = settled();
        let owners: Vec<NodeId> = [1, 5, 3, 4].into_iter().cycle().take(8).map(NodeId::new).collect();
        let goal = Ring::from_owners(&owners, before.version().next()).unwrap();
        let placement = before.with_goal(Arc::new(goal), &BTreeSet::from([3])).unwrap();
        let seen = placement.home(0).version().number;
        let placement = placement.after(&[StepOf { home: 0, seen, step: Step::Begin }]).unwrap();
        let marks = marks();
        let mut put = marks.await_replicas(placement.home(0), NodeId::new(5), 3).unwrap();
        put.written(7);
        put.stored_at(A);
        drop(put);
        let owed: Vec<NodeId> = marks.list().into_iter().map(|owed| owed.peer).collect();
        assert_eq!(owed, [B, NodeId::new(3)]);
    }

    #[test]
    fn a_put_that_is_counted_anew_owes_the_primaries_of_then() {
        let (marks, before) = (marks(), settled());
        let owners: Vec<NodeId> = [1, 5, 3, 4].into_iter().cycle().take(8).map(NodeId::new).collect();
        let after = Placement::of_ring(Arc::new(Ring::from_owners(&owners, before.version().next()).unwrap()));
        let mut put = marks.await_replicas(before.home(0), A, 3).unwrap();
        put.written(7);
        put.stored_at(NodeId::new(3));
        put.home_changed(after.home(0), A);
        drop(put);
        assert_eq!(
            marks.list(),
            [Owed { class: CLASS, peer: NodeId::new(5), since_seq: 7 }],
            "B is no primary any more"
        );
    }

    #[test]
    fn a_put_that_stored_nothing_here_owes_nothing_and_nobody_owes_for_a_foreign_copy() {
        let marks = marks();
        drop(marks.await_replicas(settled().home(0), A, 3));
        assert_eq!(marks.list(), []);
        assert!(marks.await_replicas(settled().home(0), NodeId::new(4), 3).is_none(), "it is no primary");
        assert!(marks.await_replicas(settled().home(0), A, 1).is_none(), "it has no peer");
    }

    #[test]
    fn only_what_was_proved_is_cleared() {
        let marks = marks();
        marks.missed(CLASS, B, 9);
        marks.missed(CLASS, B, 5);
        assert_eq!(marks.begin(CLASS, B), Some(5));
        assert_eq!(marks.begin(CLASS, B), None, "somebody works on it");
        marks.missed(CLASS, B, 12);
        marks.missed(CLASS, B, 11);
        assert_eq!(marks.list()[0].since_seq, 5, "nothing is proved yet");
        marks.end(CLASS, B, true);
        assert_eq!(marks.list(), [Owed { class: CLASS, peer: B, since_seq: 11 }]);
        assert_eq!(marks.begin(CLASS, B), Some(11));
        marks.missed(CLASS, B, 3);
        marks.end(CLASS, B, false);
        assert_eq!(marks.list()[0].since_seq, 3);
        assert_eq!(marks.begin(CLASS, B), Some(3));
        marks.end(CLASS, B, true);
        assert_eq!(marks.list(), []);
    }

    #[test]
    fn a_checkpoint_waits_for_the_puts_that_began_before_it() {
        let marks = marks();
        let before = marks.await_replicas(settled().home(0), A, 3);
        let epoch = marks.next_epoch();
        let after = marks.await_replicas(settled().home(0), A, 3);
        assert!(!marks.has_drained(epoch));
        drop(before);
        assert!(marks.has_drained(epoch) && !marks.is_quiet());
        drop(after);
        assert!(marks.is_quiet());
    }
}
