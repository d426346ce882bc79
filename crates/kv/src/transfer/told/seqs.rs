//! The told seqs of a node, in memory and on the disk.

use super::file::{Told, ToldFile};
use crate::partition::Partition;
use crate::replica::ToldSeq;
use ombak_storage::fs::FileSystem;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of told seqs: 1,024 partitions and 256 nodes. A node that knows the secret could
/// tell of any number of nodes.
const TOLD_MAX: usize = 1_024 * 256;

/// What the stores of other nodes were known to have on their disks, by node and partition.
///
/// Notes are in memory until [`Self::save`]. So one sync serves all that was noted before.
pub struct ToldSeqs {
    state: Mutex<State>,
    /// Locked while told seqs are made durable. It is locked before `state`.
    file: Mutex<ToldFile>,
    is_used: AtomicBool,
    /// The partitions of this node whose stores were found to be set back in this run, each with
    /// the highest seq up to which its copies are restored.
    set_back: Mutex<BTreeMap<u32, u64>>,
}

#[derive(Default)]
struct State {
    told: Told,
    /// What is not on the disk yet.
    unsaved: BTreeSet<(NodeId, u32)>,
}

impl ToldSeqs {
    /// Reads what was told before. Blocks.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, data_dir: &Path) -> io::Result<Self> {
        let file = ToldFile::new(fs, data_dir);
        let state = State { told: file.load()?, unsaved: BTreeSet::new() };
        let is_used = AtomicBool::new(true);
        Ok(Self { state: Mutex::new(state), file: Mutex::new(file), is_used, set_back: Mutex::default() })
    }

    /// Lets this node neither tell nor keep anything, as a node of an earlier version.
    pub fn set_unused(&self) {
        self.is_used.store(false, Ordering::SeqCst);
    }

    /// What this node may tell of a store that has everything up to `seq` on its disk; none if
    /// nothing was ever written to it, because such a store has no lasting id.
    pub fn of_own(&self, partition: &Partition, seq: u64) -> Option<ToldSeq> {
        let identity = partition.store().identity();
        let has_id = identity.boot > 0 && identity.store_id != 0 && seq > 0;
        let is_told = has_id && self.is_used.load(Ordering::SeqCst);
        is_told.then_some(ToldSeq { store_id: identity.store_id, seq })
    }

    /// Notes what a node has told of its store. Of one store the highest seq stays.
    pub fn note(&self, node: NodeId, partition: u32, store_id: u64, seq: u64) {
        self.note_where(node, partition, ToldSeq { store_id, seq }, |_| true);
    }

    /// Notes what a third node knows of a node's store. It may know an earlier store than this
    /// node. So it takes no other store's place.
    pub fn note_of_third(&self, node: NodeId, partition: u32, told: ToldSeq) {
        self.note_where(node, partition, told, |before| before.store_id == told.store_id);
    }

    /// `may_replace` says which earlier notes this one may replace.
    fn note_where(&self, node: NodeId, partition: u32, told: ToldSeq, may_replace: impl Fn(ToldSeq) -> bool) {
        let ToldSeq { store_id, seq } = told;
        if store_id == 0 || seq == 0 || !self.is_used.load(Ordering::SeqCst) {
            return;
        }
        let mut state = self.state.lock();
        let place = (node, partition);
        let before = state.told.get(&place).copied();
        let is_as_new = |before: ToldSeq| before.store_id == store_id && before.seq >= seq;
        let is_old = before.is_some_and(|before| is_as_new(before) || !may_replace(before));
        if !is_old && (before.is_some() || state.told.len() < TOLD_MAX) {
            state.told.insert(place, told);
            state.unsaved.insert(place);
        }
    }

    /// As [`Self::note`], and whatever was noted before, this takes its place.
    pub(super) fn note_again(&self, node: NodeId, partition: u32, store_id: u64, seq: u64) {
        self.state.lock().told.remove(&(node, partition));
        self.note(node, partition, store_id, seq);
    }

    /// The id of a node's store, and the highest seq that it has told of it.
    pub fn of(&self, node: NodeId, partition: u32) -> Option<(u64, u64)> {
        self.state.lock().told.get(&(node, partition)).map(|told| (told.store_id, told.seq))
    }

    /// What a node has told of all its stores, by partition.
    pub fn of_node(&self, node: NodeId) -> Vec<(u32, ToldSeq)> {
        let state = self.state.lock();
        let of_node = state.told.range((node, 0)..=(node, u32::MAX));
        of_node.map(|((_, partition), told)| (*partition, *told)).collect()
    }

    /// What the nodes other than `except` have told of a partition.
    pub fn of_partition(&self, partition: u32, except: NodeId) -> Vec<(NodeId, ToldSeq)> {
        let state = self.state.lock();
        let is_wanted = |node: NodeId, of: u32| of == partition && node != except;
        let wanted = state.told.iter().filter(|((node, of), _)| is_wanted(*node, *of));
        wanted.map(|((node, _), told)| (*node, *told)).collect()
    }

    /// Makes everything that was noted before durable. Writes nothing if it is. Blocks.
    pub fn save(&self) -> io::Result<()> {
        let mut file = self.file.lock();
        let unsaved = std::mem::take(&mut self.state.lock().unsaved);
        if unsaved.is_empty() {
            return Ok(());
        }
        let (news, count): (Told, usize) = {
            let state = self.state.lock();
            let news = unsaved.iter().filter_map(|place| Some((*place, *state.told.get(place)?)));
            (news.collect(), state.told.len())
        };
        let saved = file.append(&news, count, || self.state.lock().told.clone());
        if saved.is_err() {
            self.state.lock().unsaved.extend(unsaved);
        }
        saved
    }

    /// Notes that the store of a partition of this node was set back, so that its copies up to a
    /// seq are restored. Returns false if that is known in this run for this seq or a higher one.
    pub(super) fn begin_set_back(&self, partition: u32, restored_to: u64) -> bool {
        let mut set_back = self.set_back.lock();
        let is_known = set_back.get(&partition).is_some_and(|known| *known >= restored_to);
        if !is_known {
            set_back.insert(partition, restored_to);
        }
        !is_known
    }

    /// Whether the store of a partition of this node was found in this run to be set back, so that
    /// its copies up to this seq or a higher one are restored.
    pub(super) fn is_set_back(&self, partition: u32, restored_to: u64) -> bool {
        self.set_back.lock().get(&partition).is_some_and(|known| *known >= restored_to)
    }

    /// Forgets the nodes that are not wanted any more: they were removed from the cluster. What the
    /// disk has of them goes when the file is replaced.
    pub fn retain(&self, is_wanted: impl Fn(NodeId) -> bool) {
        let mut state = self.state.lock();
        state.told.retain(|(node, _), _| is_wanted(*node));
        state.unsaved.retain(|(node, _)| is_wanted(*node));
    }
}
