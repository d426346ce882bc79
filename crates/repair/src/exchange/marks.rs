//! The marks of a node: what was included where (docs/design/anti-entropy.md §4).
//!
//! A mark belongs to a pair of stores. It says that every version of the one store up to a seq was
//! included, durably, in the other store when that was at a seq of its own, and that the class
//! there has been full ever since. Both nodes keep it, so a node whose files are set back does not
//! lose it. A mark *holds* if the other store has the same token and has not lost its seq.
//!
//! The *token* stands for "full ever since": a node draws it when its class is full and it has
//! none, and forgets it when the class is not full. So a class that was filled anew has another
//! token, and marks that name the former one say nothing any more.
//!
//! What it is not: it opens no files (`marks_file`), and decides nothing (`machine`).

use ombak_kv::ClassId;
use ombak_types::NodeId;
use std::collections::BTreeMap;

/// A store of a class that has been full for as long as its token says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerStore {
    pub(crate) store_id: u64,
    pub(crate) token: u64,
}

/// A mark, as the node keeps it whose versions were included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Towards {
    /// The store of this node.
    pub(crate) own_store: u64,
    /// Everything in it up to this seq was included.
    pub(crate) seq: u64,
    /// The store of the other node.
    pub(crate) peer: PeerStore,
    /// Where that store was then.
    pub(crate) peer_seq: u64,
}

/// A mark, as the node keeps it in whose store the versions were included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The store of the other node.
    pub(crate) store: u64,
    /// Everything in it up to this seq was included.
    pub(crate) seq: u64,
    /// The store of this node.
    pub(crate) own: PeerStore,
    /// Where it was then.
    pub(crate) own_seq: u64,
}

/// The marks of one node. At most two for each class and each other primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) towards: BTreeMap<(ClassId, NodeId), Towards>,
    pub(crate) known: BTreeMap<(ClassId, NodeId), Known>,
    /// The tokens of this node's classes, each for one store.
    pub(crate) tokens: BTreeMap<ClassId, PeerStore>,
}

impl Marks {
    /// The mark of this node's store at another node, whatever store that node has now.
    pub(crate) fn towards(&self, class: ClassId, node: NodeId, own_store: u64) -> Option<Towards> {
        self.towards.get(&(class, node)).filter(|mark| mark.own_store == own_store).copied()
    }

    /// Keeps a mark, unless there is a higher one for the same two stores. Returns whether it is
    /// new.
    pub(crate) fn keep(&mut self, class: ClassId, node: NodeId, mark: Towards) -> bool {
        let before = self.towards.get(&(class, node));
        let is_old =
            |before: &Towards| (before.own_store, before.peer) == (mark.own_store, mark.peer) && before.seq >= mark.seq;
        let is_new = !before.is_some_and(is_old);
        if is_new {
            self.towards.insert((class, node), mark);
        }
        is_new
    }

    /// What is known of another node's store and of this node's store as they are.
    pub(crate) fn known(&self, class: ClassId, node: NodeId, store: u64, own: PeerStore) -> Option<Known> {
        let known = self.known.get(&(class, node));
        known.filter(|known| known.store == store && known.own == own).copied()
    }

    /// Notes what was included here, unless more is known of the same two stores. Returns whether
    /// it is new.
    pub(crate) fn note(&mut self, class: ClassId, node: NodeId, known: Known) -> bool {
        let before = self.known.get(&(class, node));
        let is_old = |before: &Known| (before.store, before.own) == (known.store, known.own) && before.seq >= known.seq;
        let is_new = !before.is_some_and(is_old);
        if is_new {
            self.known.insert((class, node), known);
        }
        is_new
    }

    /// The token of a class that is full, if it has one for this store.
    pub(crate) fn token(&self, class: ClassId, own_store: u64) -> Option<u64> {
        self.tokens.get(&class).filter(|own| own.store_id == own_store).map(|own| own.token)
    }

    /// Forgets the token of a class, because it is not full. Returns whether there was one.
    pub(crate) fn forget_token(&mut self, class: ClassId) -> bool {
        self.tokens.remove(&class).is_some()
    }

    /// Forgets what belongs to nodes and classes that need no marks any more. Returns whether
    /// something did.
    pub(crate) fn retain(&mut self, is_pair: impl Fn(ClassId, NodeId) -> bool) -> bool {
        let before = self.towards.len() + self.known.len();
        self.towards.retain(|(class, node), _| is_pair(*class, *node));
        self.known.retain(|(class, node), _| is_pair(*class, *node));
        self.towards.len() + self.known.len() < before
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
    fn a_token_is_of_one_store_and_one_time_of_being_full() {
        let mut marks = Marks::default();
        marks.tokens.insert(CLASS, PEER);
        assert_eq!((marks.token(CLASS, 4), marks.token(CLASS, 5)), (Some(5), None));
        assert!(marks.forget_token(CLASS) && !marks.forget_token(CLASS));
    }
}
