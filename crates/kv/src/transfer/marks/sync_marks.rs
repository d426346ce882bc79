//! The marks of a node in memory, and when they are saved.
//!
//! Whoever needs a mark on the disk waits until a file has it; several that wait share one file. A
//! mark that only moves on with equal copies is saved with the next file, a minute later at the
//! latest: until then the mark before says the same about every copy but the newest ones.

use super::file::MarksFile;
use super::marks::{Known, Marks, PeerStore, Towards};
use crate::replica::ClassId;
use arc_swap::ArcSwap;
use ombak_node_files::NodeFileError;
use ombak_storage::fs::FileSystem;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time for which a mark that is not urgent is in memory only.
const SAVED_AFTER: Duration = Duration::from_secs(60);

/// Up to which seq the copies of a class are covered by the mark for a peer.
#[derive(Clone, Copy)]
struct Covered {
    n: u32,
    peer: NodeId,
    seq: u64,
}

struct Present {
    marks: Marks,
    /// Rises with each change.
    version: u64,
    /// Since when there is a change that no file has, and that is not urgent.
    waits_since: Option<Instant>,
}

/// The marks of a node.
pub struct SyncMarks {
    file: MarksFile,
    present: Mutex<Present>,
    /// The version that the file has. Locked while the file is written, and never by requests.
    saved_version: Mutex<u64>,
    /// The seqs of the marks of this node's stores, by partitions: what requests ask for.
    covered: Box<[ArcSwap<Vec<Covered>>]>,
}

impl SyncMarks {
    /// Reads the file, if there is one. `own` is the id of the store of a partition; none if it is
    /// not open.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        data_dir: &Path,
        ring_size: usize,
        own: impl Fn(u32) -> Option<u64>,
    ) -> Result<Self, NodeFileError> {
        let file = MarksFile::new(fs, data_dir);
        let mut marks = file.load()?;
        marks.retain_own(own);
        let covered = (0..ring_size).map(|_| ArcSwap::default()).collect();
        let present = Mutex::new(Present { marks, version: 0, waits_since: None });
        let opened = Self { file, present, saved_version: Mutex::new(0), covered };
        (0..).zip(&opened.covered).for_each(|(partition, _)| opened.index(&opened.present.lock().marks, partition));
        Ok(opened)
    }

    /// Whether everything of a class up to a seq of this node's store was included at a peer, by a
    /// mark that holds as far as this node knows. The peer may have lost something since: the next
    /// exchange decides.
    pub fn covers(&self, class: ClassId, peer: NodeId, seq: u64) -> bool {
        self.any(class, |covered| covered.peer == peer && seq <= covered.seq)
    }

    /// As [`Self::covers`], at any other primary.
    pub fn covers_any(&self, class: ClassId, seq: u64) -> bool {
        self.any(class, |covered| seq <= covered.seq)
    }

    /// As [`Self::covers`]. A peer for which there is no mark yet may be a new primary: then the
    /// mark for any other one counts (docs/design/anti-entropy.md §9).
    pub fn covers_for(&self, class: ClassId, peer: NodeId, seq: u64) -> bool {
        self.covers(class, peer, seq) || self.covers_any(class, seq) && !self.any(class, |covered| covered.peer == peer)
    }

    /// The number of nodes that are none of `primaries`, and whose marks cover a seq.
    pub fn former_marks(&self, class: ClassId, primaries: &[NodeId], seq: u64) -> usize {
        let Some(place) = self.covered.get(class.partition as usize) else { return 0 };
        let is_former =
            |covered: &&Covered| covered.n == class.n && seq <= covered.seq && !primaries.contains(&covered.peer);
        place.load().iter().filter(is_former).count()
    }

    fn any(&self, class: ClassId, is_wanted: impl Fn(&Covered) -> bool) -> bool {
        let Some(place) = self.covered.get(class.partition as usize) else { return false };
        place.load().iter().any(|covered| covered.n == class.n && is_wanted(covered))
    }

    /// The mark of this node's store at another node, whatever store that node has now.
    pub fn towards(&self, class: ClassId, node: NodeId, own_store: u64) -> Option<Towards> {
        self.present.lock().marks.towards(class, node, own_store)
    }

    /// What is known of another node's store and of this node's store as they are.
    pub fn known(&self, class: ClassId, node: NodeId, store: u64, own: PeerStore) -> Option<Known> {
        self.present.lock().marks.known(class, node, store, own)
    }

    /// Keeps a mark of this node's store durably, unless there is a higher one. Blocks.
    pub fn keep(&self, class: ClassId, node: NodeId, mark: Towards) -> io::Result<()> {
        self.change(Some(class.partition), |marks| marks.keep(class, node, mark))
    }

    /// As [`Self::keep`], for a mark that moves on with equal copies: it is saved later.
    pub fn keep_soon(&self, class: ClassId, node: NodeId, mark: Towards, now: Instant) {
        self.change_soon(class.partition, now, |marks| marks.keep(class, node, mark));
    }

    /// Notes durably what of another node's store is included here. Blocks.
    pub fn note(&self, class: ClassId, node: NodeId, known: Known) -> io::Result<()> {
        self.change(Some(class.partition), |marks| marks.note(class, node, known))
    }

    /// As [`Self::note`], for a mark that moves on with equal copies: it is saved later.
    pub fn note_soon(&self, class: ClassId, node: NodeId, known: Known, now: Instant) {
        self.change_soon(class.partition, now, |marks| marks.note(class, node, known));
    }

    /// Forgets a mark of this node's store that does not hold any more: the other node has another
    /// store or token, or has lost its seq. It never holds again.
    pub fn forget(&self, class: ClassId, node: NodeId, mark: Towards, now: Instant) {
        self.change_soon(class.partition, now, |marks| marks.forget(class, node, mark));
    }

    /// Forgets durably what belongs to pairs of classes and nodes that need no marks. Blocks.
    pub fn retain(&self, is_pair: impl Fn(ClassId, NodeId) -> bool) -> io::Result<()> {
        self.change(None, |marks| marks.retain(is_pair))
    }

    /// Forgets all marks of the classes of a partition for which `is_void` is true. They are saved
    /// later: they are void in any case, because they name a token that is gone.
    pub(crate) fn forget_classes(&self, now: Instant, is_void: impl Fn(ClassId) -> bool) {
        let mut present = self.present.lock();
        if present.marks.retain(|class, _| !is_void(class)) {
            present.version += 1;
            present.waits_since.get_or_insert(now);
            (0..).zip(&self.covered).for_each(|(partition, _)| self.index(&present.marks, partition));
        }
    }

    /// Whether marks have waited for long enough to be saved.
    pub(crate) fn is_save_due(&self, now: Instant) -> bool {
        self.present.lock().waits_since.is_some_and(|since| now >= since + SAVED_AFTER)
    }

    /// Saves what no file has. Blocks.
    pub(crate) fn save(&self) -> io::Result<()> {
        self.change(None, |_| false)
    }

    /// Changes marks, and returns when the file has what is there then. `change` says whether it
    /// changed anything. Also without a change the file has everything that this call has seen.
    fn change(&self, partition: Option<u32>, change: impl FnOnce(&mut Marks) -> bool) -> io::Result<()> {
        let seen = {
            let mut present = self.present.lock();
            if change(&mut present.marks) {
                present.version += 1;
                match partition {
                    Some(partition) => self.index(&present.marks, partition),
                    None => (0..).zip(&self.covered).for_each(|(at, _)| self.index(&present.marks, at)),
                }
            }
            present.version
        };
        let mut saved_version = self.saved_version.lock();
        if *saved_version >= seen {
            return Ok(());
        }
        let (marks, version, waited_since) = {
            let mut present = self.present.lock();
            let waited_since = present.waits_since.take();
            (present.marks.clone(), present.version, waited_since)
        };
        if let Err(why) = self.file.save(&marks) {
            // The marks that waited go on waiting, so the next checkpoint tries again.
            let mut present = self.present.lock();
            present.waits_since = waited_since.or(present.waits_since);
            return Err(why);
        }
        *saved_version = version;
        Ok(())
    }

    fn change_soon(&self, partition: u32, now: Instant, change: impl FnOnce(&mut Marks) -> bool) {
        let mut present = self.present.lock();
        if change(&mut present.marks) {
            present.version += 1;
            present.waits_since.get_or_insert(now);
            self.index(&present.marks, partition);
        }
    }

    /// Takes what requests ask for from the marks. They are locked, so no older ones come later.
    fn index(&self, marks: &Marks, partition: u32) {
        let Some(place) = self.covered.get(partition as usize) else { return };
        let from = (ClassId { partition, n: 0 }, NodeId::new(0));
        let to = (ClassId { partition, n: u32::MAX }, NodeId::new(u64::MAX));
        let covered = marks.towards.range(from..=to);
        let covered = covered.map(|((class, peer), mark)| Covered { n: class.n, peer: *peer, seq: mark.seq });
        place.store(Arc::new(covered.collect()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    const CLASS: ClassId = ClassId { partition: 3, n: 3 };
    const NODE: NodeId = NodeId::new(9);
    const PEER: PeerStore = PeerStore { store_id: 4, token: 5 };

    fn mark(seq: u64) -> Towards {
        Towards { own_store: 7, seq, peer: PEER, peer_seq: 1 }
    }

    fn open_with(dir: &Path, own_store: u64) -> SyncMarks {
        SyncMarks::open(Arc::new(RealFs), dir, 8, |_| Some(own_store)).unwrap()
    }

    #[test]
    fn a_copy_is_covered_by_the_mark_of_its_class_and_peer() {
        let dir = tempfile::tempdir().unwrap();
        let marks = open_with(dir.path(), 7);
        assert!(!marks.covers_any(CLASS, 1));
        marks.keep(CLASS, NODE, mark(10)).unwrap();
        assert!(marks.covers(CLASS, NODE, 10) && !marks.covers(CLASS, NODE, 11));
        assert!(!marks.covers(CLASS, NodeId::new(8), 10) && !marks.covers_any(ClassId { n: 2, ..CLASS }, 10));
        assert!(marks.covers_any(CLASS, 10) && !marks.covers_any(CLASS, 11));
        let other = NodeId::new(8);
        assert!(marks.covers_for(CLASS, NODE, 10) && marks.covers_for(CLASS, other, 10), "that one may be new");
        assert!(!marks.covers_for(CLASS, NODE, 11) && !marks.covers_for(CLASS, other, 11));
        marks.keep(CLASS, other, mark(5)).unwrap();
        assert!(!marks.covers_for(CLASS, other, 6), "it is not new");
        let former = |primaries: &[NodeId], seq| marks.former_marks(CLASS, primaries, seq);
        assert_eq!([former(&[], 5), former(&[], 6), former(&[NODE], 5), former(&[NODE], 6)], [2, 1, 1, 0]);
        let again = open_with(dir.path(), 7);
        assert!(again.covers(CLASS, NODE, 10), "it outlives the process");
        again.forget(CLASS, NODE, mark(10), Instant::now());
        assert!(!again.covers_any(CLASS, 6), "it does not hold any more");
    }

    #[test]
    fn marks_of_another_store_of_this_node_cover_nothing() {
        let dir = tempfile::tempdir().unwrap();
        open_with(dir.path(), 7).keep(CLASS, NODE, mark(10)).unwrap();
        let other = open_with(dir.path(), 8);
        assert!(!other.covers_any(CLASS, 1) && other.towards(CLASS, NODE, 7).is_none());
    }

    #[test]
    fn a_mark_that_moves_on_with_equal_copies_is_saved_within_a_minute() {
        let dir = tempfile::tempdir().unwrap();
        let (marks, now) = (open_with(dir.path(), 7), Instant::now());
        marks.keep(CLASS, NODE, mark(10)).unwrap();
        assert!(!marks.is_save_due(now + SAVED_AFTER));
        marks.keep_soon(CLASS, NODE, mark(20), now);
        marks.keep_soon(CLASS, NODE, mark(21), now + SAVED_AFTER / 2);
        assert!(marks.covers(CLASS, NODE, 21) && !open_with(dir.path(), 7).covers(CLASS, NODE, 11));
        assert!(!marks.is_save_due(now + SAVED_AFTER / 2) && marks.is_save_due(now + SAVED_AFTER));
        marks.save().unwrap();
        assert!(open_with(dir.path(), 7).covers(CLASS, NODE, 21));
        assert!(!marks.is_save_due(now + 9 * SAVED_AFTER), "nothing waits any more");
    }

    #[test]
    fn an_urgent_mark_takes_along_those_that_wait() {
        let dir = tempfile::tempdir().unwrap();
        let (marks, now) = (open_with(dir.path(), 7), Instant::now());
        marks.keep_soon(CLASS, NODE, mark(20), now);
        marks
            .note(CLASS, NODE, Known { store: 1, seq: 1, own: PeerStore { store_id: 7, token: 1 }, own_seq: 1 })
            .unwrap();
        assert!(open_with(dir.path(), 7).covers(CLASS, NODE, 20));
    }
}
