//! The marks of a node: what was included where (docs/design/anti-entropy.md §4).
//!
//! A mark belongs to a pair of stores. It says that every version of the one store up to a seq was
//! included, durably, in the other store when that was at a seq of its own, and that the class
//! there has been full ever since. Both nodes keep it, so a node whose files are set back does not
//! lose it. A mark *holds* if the other store has the same token and has not lost its seq.
//!
//! The *token* stands for "full ever since" ([`Fullness`](super::super::Fullness)). So a class that
//! was filled anew has another token, and marks that name the former one say nothing any more.
//!
//! What it is not: it opens no files (`file`), and decides nothing (`ombak-repair`).

use crate::replica::ClassId;
use ombak_types::NodeId;
use std::collections::BTreeMap;

/// A store of a class that has been full for as long as its token says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStore {
    /// The id of the store.
    pub store_id: u64,
    /// The token of the class.
    pub token: u64,
}

/// A mark, as the node keeps it whose versions were included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Towards {
    /// The store of this node.
    pub own_store: u64,
    /// Everything in it up to this seq was included.
    pub seq: u64,
    /// The store of the other node.
    pub peer: PeerStore,
    /// Where that store was then.
    pub peer_seq: u64,
}

/// A mark, as the node keeps it in whose store the versions were included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The store of the other node.
    pub store: u64,
    /// Everything in it up to this seq was included.
    pub seq: u64,
    /// The store of this node.
    pub own: PeerStore,
    /// Where it was then.
    pub own_seq: u64,
}

/// The marks of one node. At most two for each class and each other primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// What of this node was included at others.
    pub towards: BTreeMap<(ClassId, NodeId), Towards>,
    /// What of others was included here.
    pub known: BTreeMap<(ClassId, NodeId), Known>,
}

impl Marks {
    /// The mark of this node's store at another node, whatever store that node has now.
    pub fn towards(&self, class: ClassId, node: NodeId, own_store: u64) -> Option<Towards> {
        self.towards.get(&(class, node)).filter(|mark| mark.own_store == own_store).copied()
    }

    /// Keeps a mark, unless there is a higher one for the same two stores. One with an equal seq
    /// replaces one that the other store may have lost since. Returns whether it is new.
    pub fn keep(&mut self, class: ClassId, node: NodeId, mark: Towards) -> bool {
        let before = self.towards.get(&(class, node));
        let is_old = |before: &Towards| {
            let is_of_same_stores = (before.own_store, before.peer) == (mark.own_store, mark.peer);
            is_of_same_stores && (before.seq, before.peer_seq) >= (mark.seq, mark.peer_seq)
        };
        let is_new = !before.is_some_and(is_old);
        if is_new {
            self.towards.insert((class, node), mark);
        }
        is_new
    }

    /// What is known of another node's store and of this node's store as they are.
    pub fn known(&self, class: ClassId, node: NodeId, store: u64, own: PeerStore) -> Option<Known> {
        let known = self.known.get(&(class, node));
        known.filter(|known| known.store == store && known.own == own).copied()
    }

    /// Notes what was included here, unless more is known of the same two stores. Returns whether
    /// it is new.
    pub fn note(&mut self, class: ClassId, node: NodeId, known: Known) -> bool {
        let before = self.known.get(&(class, node));
        let is_old = |before: &Known| {
            let is_of_same_stores = (before.store, before.own) == (known.store, known.own);
            is_of_same_stores && (before.seq, before.own_seq) >= (known.seq, known.own_seq)
        };
        let is_new = !before.is_some_and(is_old);
        if is_new {
            self.known.insert((class, node), known);
        }
        is_new
    }

    /// Forgets the mark of this node's store at another node, if it is still this one: it does not
    /// hold any more. Returns whether there was one.
    pub fn forget(&mut self, class: ClassId, node: NodeId, mark: Towards) -> bool {
        let is_same = self.towards.get(&(class, node)) == Some(&mark);
        is_same && self.towards.remove(&(class, node)).is_some()
    }

    /// Forgets the marks that name other stores of this node than it has. `own` is the id of the
    /// store of a partition. Returns whether there were some.
    pub fn retain_own(&mut self, own: impl Fn(u32) -> Option<u64>) -> bool {
        let before = self.len();
        self.towards.retain(|(class, _), mark| own(class.partition) == Some(mark.own_store));
        self.known.retain(|(class, _), known| own(class.partition) == Some(known.own.store_id));
        self.len() < before
    }

    /// Forgets what belongs to nodes and classes that need no marks any more. Returns whether
    /// something did.
    pub fn retain(&mut self, is_pair: impl Fn(ClassId, NodeId) -> bool) -> bool {
        let before = self.len();
        self.towards.retain(|(class, node), _| is_pair(*class, *node));
        self.known.retain(|(class, node), _| is_pair(*class, *node));
        self.len() < before
    }

    fn len(&self) -> usize {
        self.towards.len() + self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: ClassId = ClassId { partition: 3, n: 3 };
    const NODE: NodeId = NodeId::new(9);
    const PEER: PeerStore = PeerStore { store_id: 4, token: 5 };

    #[test]
    fn a_mark_rises_and_belongs_to_two_stores() {
        let mut marks = Marks::default();
        let mark = |seq| Towards { own_store: 7, seq, peer: PEER, peer_seq: 1 };
        assert!(marks.keep(CLASS, NODE, mark(10)));
        assert!(!marks.keep(CLASS, NODE, mark(10)) && !marks.keep(CLASS, NODE, mark(9)));
        assert_eq!(marks.towards(CLASS, NODE, 7), Some(mark(10)));
        assert_eq!(marks.towards(CLASS, NODE, 8), None, "this node has another store now");
        let refilled = PeerStore { token: 6, ..PEER };
        let anew = Towards { peer: refilled, ..mark(2) };
        assert!(marks.keep(CLASS, NODE, anew), "that one begins anew");
        assert_eq!(marks.towards(CLASS, NODE, 7), Some(anew));
    }

    #[test]
    fn what_is_known_here_belongs_to_two_stores() {
        let mut marks = Marks::default();
        let known = |seq| Known { store: 7, seq, own: PEER, own_seq: 1 };
        assert!(marks.note(CLASS, NODE, known(10)) && !marks.note(CLASS, NODE, known(3)));
        assert_eq!(marks.known(CLASS, NODE, 7, PEER), Some(known(10)));
        assert_eq!(marks.known(CLASS, NODE, 8, PEER), None);
        assert_eq!(marks.known(CLASS, NODE, 7, PeerStore { token: 1, ..PEER }), None, "it was not full all the time");
        assert!(!marks.retain(|_, _| true) && marks.retain(|class, _| class != CLASS));
        assert_eq!(marks, Marks::default());
    }

    #[test]
    fn marks_of_another_store_of_this_node_are_void() {
        let mark = Towards { own_store: 7, seq: 10, peer: PEER, peer_seq: 1 };
        let known = Known { store: 1, seq: 10, own: PeerStore { store_id: 7, token: 5 }, own_seq: 1 };
        let mut marks = Marks { towards: [((CLASS, NODE), mark)].into(), known: [((CLASS, NODE), known)].into() };
        assert!(!marks.retain_own(|_| Some(7)) && marks.len() == 2);
        assert!(marks.retain_own(|_| Some(8)));
        assert_eq!(marks, Marks::default());
    }

    #[test]
    fn a_mark_that_does_not_hold_is_forgotten_unless_it_is_another_one_by_now() {
        let mut marks = Marks::default();
        let mark = |seq| Towards { own_store: 7, seq, peer: PEER, peer_seq: 1 };
        assert!(marks.keep(CLASS, NODE, mark(10)));
        assert!(!marks.forget(CLASS, NODE, mark(9)));
        assert!(marks.forget(CLASS, NODE, mark(10)) && !marks.forget(CLASS, NODE, mark(10)));
    }
}
