//! When the marks and classes are saved, and what an unclean end of the process leaves behind.
//!
//! A checkpoint is made in two steps. The first notes the last seq of each store and ends the epoch
//! of puts. The second, when all puts of that epoch have ended, saves these seqs together with the
//! marks. A put that appended before the first step has then raised its marks.

use super::Transfers;
use super::classes::{FillReason, KnownStore};
use super::roles::is_of_one_ring;
use super::state_file::{ReplicaState, SavedPartition, SavedToken, StateFile};
use crate::open_error::OpenError;
use crate::partition::{Partition, PartitionTable};
use crate::replica::ClassId;
use ombak_ring::placement::Placement;
use ombak_types::NodeId;
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// The time between two checkpoints.
const INTERVAL: Duration = Duration::from_secs(5);

/// The first step of a checkpoint.
struct Begun {
    epoch: u64,
    seqs: BTreeMap<u32, u64>,
    /// The unreadable places of each store that were accounted for then.
    lost_ranges: BTreeMap<u32, u64>,
    changes: (u64, u64),
}

#[derive(Default)]
struct State {
    /// Whether the node has been in a cluster: otherwise there is nothing to save.
    is_member: bool,
    begun: Option<Begun>,
    next_at: Option<Instant>,
    /// What was saved last: the seqs, and the changes of marks and classes that it had.
    saved: BTreeMap<u32, u64>,
    saved_changes: Option<(u64, u64)>,
    /// The number of unreadable places of each store that were accounted for.
    lost_ranges: BTreeMap<u32, u64>,
    /// Whether there are losses that no file has yet.
    has_unsaved_losses: bool,
    /// Partitions whose stores may have appended, after these seqs, what no mark shows.
    unclean: BTreeMap<u32, u64>,
}

/// The checkpoints of a node.
pub(crate) struct Checkpoint {
    file: StateFile,
    state: Mutex<State>,
    /// Held while a file is made and written, so that no earlier state comes after a later one.
    writing: Mutex<()>,
}

/// What is in doubt of a partition that was last saved by a version of this program without doubt
/// and tokens, while the partition was filling because of damage or a backup. `last`: the last
/// append of its store.
fn doubt_of_earlier_version(known: &SavedPartition, last: u64) -> u64 {
    match known.filling.as_ref().map(|filling| filling.reason).filter(|_| known.tokens.is_empty()) {
        Some(FillReason::Unreadable) => last,
        Some(FillReason::Restored) => known.set_aside_to.min(last),
        _ => 0,
    }
}

/// The highest seq that a version of a partition can have that came back because its store lost
/// something in its middle.
fn lost_up_to(partition: &Partition) -> u64 {
    let store = partition.store();
    // Nobody may know how high the seqs of the lost records were. They were no later than now.
    store.status().lost_up_to.min(store.last_seq())
}

/// Takes what the stores have lost so far as known. The node has been alone, so nobody has what it
/// lost, and nobody can say that it holds something that was removed.
fn account_for_losses(partitions: &PartitionTable, state: &mut State) {
    for partition in partitions.all_open() {
        state.lost_ranges.insert(partition.number(), partition.store().status().lost_ranges);
    }
}

impl Checkpoint {
    pub(crate) fn new(file: StateFile) -> Self {
        Self { file, state: Mutex::default(), writing: Mutex::default() }
    }
}

impl Checkpoint {
    /// While this is held, no file is made: what is changed meanwhile gets into one file together.
    pub(super) fn hold_files(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }
}

impl Transfers {
    /// Loads what was saved, and compares it with the stores as they are now.
    pub(crate) fn load(&self, partitions: &PartitionTable) -> Result<(), OpenError> {
        let Some(saved) = self.checkpoint.file.load()? else { return Ok(()) };
        let mut state = self.checkpoint.state.lock();
        state.is_member = true;
        self.adopted.lock().clone_from(&saved.placement);
        let known = |known: &SavedPartition| Some((known.clone(), partitions.get(known.number)?));
        let known: Vec<_> = saved.partitions.iter().filter_map(known).collect();
        let losses: Vec<_> = known.iter().map(|(known, partition)| known.store.loss_of(&**partition.store())).collect();
        let is_copy = losses.contains(&Some(FillReason::Restored));
        // A store without any write has no id. Where others are copies, it is the copy of a store
        // that may have been written to since. If the process did not end in order, its first
        // writes may have come after the checkpoint, and may be lost.
        let of_empty = |known: &SavedPartition| match () {
            () if is_copy => Some(FillReason::Restored),
            () if !saved.is_closed && !known.store.was_written() => Some(FillReason::NewStore),
            () => None,
        };
        let is_empty = |partition: &Partition| partition.store().last_seq() == 0;
        let losses: Vec<_> = std::iter::zip(&known, losses)
            .map(|((known, partition), loss)| loss.or_else(|| of_empty(known).filter(|_| is_empty(partition))))
            .collect();
        let has_losses = losses.iter().any(Option::is_some);
        for ((known, partition), loss) in known.into_iter().zip(losses) {
            let last = partition.store().last_seq();
            self.fullness.restore(known.number, &known.tokens.iter().map(|saved| (saved.n, saved.token)).collect());
            // The seqs of another store say nothing.
            let is_same = !matches!(loss, Some(FillReason::NewStore | FillReason::Restored));
            let doubt_to = known.doubt_to.max(doubt_of_earlier_version(&known, last));
            self.doubt.restore(known.number, if is_same { doubt_to } else { 0 });
            self.classes.restore(known.number, known.filling);
            state.lost_ranges.insert(known.number, partition.store().status().lost_ranges);
            if let Some(reason) = loss {
                warn!(partition = known.number, ?reason, "this replica is compared with the others before it is full");
                let up_to = if reason == FillReason::Unreadable { lost_up_to(&partition) } else { last };
                self.note_loss(known.number, reason, up_to);
            }
            // A run of an earlier version of this program gives the seqs again that the store lost.
            let set_aside_to = if loss == Some(FillReason::Restored) { last } else { known.set_aside_to.min(last) };
            self.set_aside.up_to(&partition, set_aside_to);
            let checkpoint = if is_same { known.checkpoint_seq.min(last) } else { 0 };
            state.saved.insert(known.number, checkpoint);
            if !saved.is_closed && last > checkpoint {
                state.unclean.insert(known.number, checkpoint);
            }
        }
        for owed in &saved.owed {
            let is_other = |seq: &u64| *seq == 0;
            let from = if state.saved.get(&owed.class.partition).is_some_and(is_other) { 1 } else { owed.since_seq };
            self.owed.missed(owed.class, owed.peer, from);
        }
        if saved.is_closed || has_losses {
            // From now on the marks may be behind. What is set aside must not grow with what is
            // written before the next checkpoint.
            let is_saved = self.save(partitions, &state.saved, &state.lost_ranges, false);
            is_saved.map_err(|source| OpenError::System { what: "its replicas", source })?;
        }
        Ok(())
    }

    /// Owes to all peers what came after the last checkpoint before an unclean end. `ns` are the
    /// n_vals in use.
    pub fn owe_after_unclean_end(&self, placement: &Placement, here: NodeId, ns: &BTreeSet<u32>) {
        let unclean = std::mem::take(&mut self.checkpoint.state.lock().unclean);
        for (partition, checkpoint) in unclean {
            for n in ns {
                let primaries = placement.home(partition).primaries(*n);
                if primaries.contains(&here) {
                    let class = ClassId { partition, n: *n };
                    // What a node held for others when its class began to join is owed from the
                    // beginning. The mark may not have been saved.
                    let since = if self.classes.is_joining(partition, *n) { 1 } else { checkpoint + 1 };
                    let peers = primaries.iter().filter(|node| **node != here);
                    peers.for_each(|peer| self.owed.missed(class, *peer, since));
                }
            }
        }
    }

    /// Makes a step of a checkpoint, if it is time. The node is in a cluster.
    pub async fn continue_checkpoint(self: &Arc<Self>, partitions: &Arc<PartitionTable>) {
        let now = self.runtime.now();
        let due = {
            let mut state = self.checkpoint.state.lock();
            state.is_member = true;
            match &state.begun {
                Some(begun) => self.owed.has_drained(begun.epoch),
                None if state.next_at.is_some_and(|at| now < at) => false,
                None => {
                    self.begin_checkpoint(partitions, &mut state);
                    state.begun.as_ref().is_some_and(|begun| self.owed.has_drained(begun.epoch))
                }
            }
        };
        if self.marks.is_save_due(now) {
            let transfers = self.clone();
            let save = move || transfers.save_marks();
            let _ = self.pool.run(save).await;
        }
        if due {
            let (transfers, partitions) = (self.clone(), partitions.clone());
            // A refused job is tried again in the next round.
            let _ = self.pool.run(move || transfers.end_checkpoint(&partitions)).await;
        }
    }

    fn begin_checkpoint(&self, partitions: &PartitionTable, state: &mut State) {
        state.has_unsaved_losses |= self.note_losses(partitions, state);
        let of_classes = self.classes.changes() + self.fullness.changes();
        let changes = (self.owed.changes(), of_classes + self.set_aside.changes() + self.doubt.changes());
        let seqs: BTreeMap<u32, u64> = partitions.all_open().map(|p| (p.number(), p.store().last_seq())).collect();
        if seqs == state.saved && state.saved_changes == Some(changes) {
            state.next_at = Some(self.runtime.now() + INTERVAL);
            return;
        }
        // The seqs are read before the epoch ends: see `OwedMarks::next_epoch`.
        let epoch = self.owed.next_epoch();
        state.begun = Some(Begun { epoch, seqs, lost_ranges: state.lost_ranges.clone(), changes });
    }

    /// Places that became unreadable since the last look make their partition filling. Returns
    /// whether there were some.
    fn note_losses(&self, partitions: &PartitionTable, state: &mut State) -> bool {
        let mut are_new = false;
        for partition in partitions.all_open() {
            are_new |= self.note_losses_of(&partition, partitions, state);
        }
        are_new
    }

    fn note_losses_of(&self, partition: &Partition, partitions: &PartitionTable, state: &mut State) -> bool {
        let lost = partition.store().status().lost_ranges;
        let are_new = lost > state.lost_ranges.insert(partition.number(), lost).unwrap_or(0);
        if are_new {
            self.note_damage(partitions, partition.number(), Some(lost_up_to(partition)));
        }
        are_new
    }

    /// Notes places of a partition that became unreadable since the last look, durably. Returns
    /// false if that could not be saved. Blocks.
    pub(super) fn note_new_losses(&self, partitions: &PartitionTable, partition: &Partition) -> bool {
        let mut state = self.checkpoint.state.lock();
        state.has_unsaved_losses |= self.note_losses_of(partition, partitions, &mut state);
        if state.has_unsaved_losses {
            state.is_member = true;
            state.has_unsaved_losses = !self.log_save(partitions, &state.saved, &state.lost_ranges, false);
        }
        !state.has_unsaved_losses
    }

    /// Saves a checkpoint whose puts have ended. Blocks.
    fn end_checkpoint(&self, partitions: &PartitionTable) {
        let Some(begun) = self.checkpoint.state.lock().begun.take() else { return };
        let saved = self.log_save(partitions, &begun.seqs, &begun.lost_ranges, false);
        let mut state = self.checkpoint.state.lock();
        state.next_at = Some(self.runtime.now() + INTERVAL);
        if saved {
            state.saved = begun.seqs;
            state.saved_changes = Some(begun.changes);
        }
    }

    fn save(
        &self,
        partitions: &PartitionTable,
        seqs: &BTreeMap<u32, u64>,
        lost_ranges: &BTreeMap<u32, u64>,
        is_closed: bool,
    ) -> io::Result<()> {
        let _writing = self.checkpoint.writing.lock();
        let of = |all: &BTreeMap<u32, u64>, number| all.get(&number).copied().unwrap_or(0);
        let saved = |partition: Arc<Partition>| {
            let number = partition.number();
            let tokens = self.fullness.of(number).into_iter().map(|(n, token)| SavedToken { n, token }).collect();
            SavedPartition {
                number,
                store: KnownStore::of(&**partition.store(), of(lost_ranges, number)),
                checkpoint_seq: of(seqs, number),
                set_aside_to: self.set_aside.of(number),
                filling: self.classes.filling(number),
                doubt_to: self.doubt.saved(number),
                tokens,
            }
        };
        let saved: Vec<SavedPartition> = partitions.all_open().map(saved).collect();
        let placement = self.adopted.lock().clone().filter(|placement| !is_of_one_ring(placement));
        let state = ReplicaState { is_closed, partitions: saved, owed: self.owed.list(), placement };
        self.checkpoint.file.save(&state)?;
        for saved in &state.partitions {
            let tokens = saved.tokens.iter().map(|saved| (saved.n, saved.token)).collect();
            self.fullness.note_saved(saved.number, &tokens);
        }
        Ok(())
    }

    fn log_save(
        &self,
        partitions: &PartitionTable,
        seqs: &BTreeMap<u32, u64>,
        lost_ranges: &BTreeMap<u32, u64>,
        is_closed: bool,
    ) -> bool {
        let saved = self.save(partitions, seqs, lost_ranges, is_closed);
        if let Err(error) = &saved {
            error!(%error, "what this node owes to others could not be saved");
        }
        saved.is_ok()
    }

    /// Saves marks, and the told seqs that belong to them before.
    fn save_marks(&self) {
        if let Err(error) = self.told.save() {
            error!(%error, "what other nodes have told could not be saved");
        }
        if let Err(error) = self.marks.save() {
            error!(%error, "sync marks could not be saved");
        }
    }

    /// Saves everything at the end of the process. If a put is still under way, or if an earlier
    /// unclean end was not worked up, the file keeps saying that the end was unclean.
    pub(crate) fn save_at_close(&self, partitions: &PartitionTable) {
        self.save_marks();
        let mut state = self.checkpoint.state.lock();
        if !state.is_member {
            return;
        }
        let _ = self.note_losses(partitions, &mut state);
        let is_complete = self.owed.is_quiet() && state.unclean.is_empty();
        let seqs = match is_complete {
            true => partitions.all_open().map(|p| (p.number(), p.store().last_seq())).collect(),
            false => state.saved.clone(),
        };
        if self.log_save(partitions, &seqs, &state.lost_ranges, is_complete) && !is_complete {
            info!("some puts had not ended: the next start offers their versions to all replicas");
        }
    }

    /// Whether there is a file.
    pub(crate) fn has_state(&self) -> bool {
        self.checkpoint.state.lock().is_member
    }

    /// Writes the file of a node that becomes a member. Blocks.
    pub(crate) fn save_first_state(&self, partitions: &PartitionTable) -> bool {
        let mut state = self.checkpoint.state.lock();
        if state.is_member {
            return true;
        }
        account_for_losses(partitions, &mut state);
        let saved = self.log_save(partitions, &state.saved, &state.lost_ranges, false);
        state.is_member = saved;
        saved
    }

    /// Makes all replicas of this node filling, durably: its directory is new, and the cluster
    /// knows the node as one that has data. What a restored store held at the start is set aside,
    /// and so is what a new one held: then it is of unknown age. Blocks.
    pub(crate) fn set_all_filling(&self, partitions: &PartitionTable, reason: FillReason) -> bool {
        for partition in partitions.all_open() {
            let had_data = self.set_aside.seq_at_start(partition.number()) > 0;
            let is_of_unknown_age = reason == FillReason::Restored || reason == FillReason::NewStore && had_data;
            let reason = if is_of_unknown_age { FillReason::Restored } else { reason };
            if is_of_unknown_age {
                self.set_aside.what_was_there_at_the_start(&partition);
            }
            let up_to = match reason {
                FillReason::Unreadable => partition.store().last_seq(),
                _ => self.set_aside.of(partition.number()),
            };
            self.note_loss(partition.number(), reason, up_to);
        }
        self.save_filling(partitions)
    }

    /// Makes the classes of a partition filling, durably. Returns false if that could not be saved.
    /// Blocks.
    pub fn set_filling(&self, partitions: &PartitionTable, partition: u32, reason: FillReason) -> bool {
        let last = partitions.get(partition).map_or(0, |partition| partition.store().last_seq());
        self.note_loss(partition, reason, last);
        self.save_filling(partitions)
    }

    /// Forgets that this node may lack something, or that what it holds is of unknown age. Blocks.
    pub(crate) fn own_everything(&self, partitions: &PartitionTable) -> bool {
        account_for_losses(partitions, &mut self.checkpoint.state.lock());
        for partition in partitions.all_open() {
            self.classes.restore(partition.number(), None);
            self.set_aside.up_to(&partition, 0);
            self.doubt.end(partition.number());
            self.fullness.draw_anew(partition.number(), &*self.runtime, |_| true);
        }
        self.save_filling(partitions)
    }

    pub(crate) fn save_filling(&self, partitions: &PartitionTable) -> bool {
        let mut state = self.checkpoint.state.lock();
        state.is_member = true;
        let saved = self.log_save(partitions, &state.saved, &state.lost_ranges, false);
        state.has_unsaved_losses &= !saved;
        drop(state);
        self.wake();
        saved
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::Filling;
    use super::*;

    fn saved(reason: Option<FillReason>) -> SavedPartition {
        SavedPartition {
            number: 3,
            store: KnownStore::default(),
            checkpoint_seq: 5,
            set_aside_to: 7,
            filling: reason.map(|reason| Filling { reason, full: BTreeSet::new() }),
            doubt_to: 0,
            tokens: Vec::new(),
        }
    }

    /// Otherwise an exchange after the upgrade would bring back what was removed everywhere else.
    #[test]
    fn what_an_earlier_version_found_damaged_is_in_doubt_until_it_is_compared() {
        assert_eq!(doubt_of_earlier_version(&saved(Some(FillReason::Unreadable)), 9), 9);
        assert_eq!(doubt_of_earlier_version(&saved(Some(FillReason::Restored)), 9), 7);
        for reason in [None, Some(FillReason::NewStore), Some(FillReason::LostWrites)] {
            assert_eq!(doubt_of_earlier_version(&saved(reason), 9), 0, "{reason:?}");
        }
        let tokens = vec![SavedToken { n: 3, token: 1 }];
        let of_this_version = SavedPartition { tokens, ..saved(Some(FillReason::Unreadable)) };
        assert_eq!(doubt_of_earlier_version(&of_this_version, 9), 0, "its doubt has ended");
    }
}
