//! Opening a store: builds the index from what is on disk.
//!
//! A data file with a hint file was complete on disk. A data file without one was being written to
//! when the process or the machine stopped, so it is read from end to end. Damage after the point
//! up to which it is known to have been synced is a torn write; it is ignored and counted in
//! `torn_bytes`. Damage before that point is corruption and counted in `lost_ranges`. That point is
//! told by later records, by later files (`has_appends`) and by the inventory. A file that was
//! never synced has another name (`<id>.fresh`): any part of it may be missing.

mod entries;
mod found_files;
mod load_file;
mod losses;
mod lost_seqs;
mod orphans;
mod scan;

pub(crate) use found_files::{FoundFiles, parse_name};
pub(crate) use losses::Losses;
pub(crate) use lost_seqs::LostSeqs;
pub(crate) use orphans::{Newest, hint_id, is_lost_version};

use super::feed::Retention;
use super::identity::{FoundAppends, IdentityFile, StoreContent};
use super::index::KeyIndex;
use super::inventory_keeper::InventoryKeeper;
use super::policy::JournalPolicy;
use super::shared::Shared;
use super::store::{Core, Files, Recovered, Store};
use super::writer::Writer;
use crate::append_marks::{EarlierRun, StoreMark};
use crate::error::{StorageError, io_error};
use crate::fs::is_disk_full;
use crate::inventory::PromisedFile;
use crate::seq::SeqSource;
use orphans::remove_consumed_hints;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl<P: JournalPolicy> Store<P> {
    /// Opens or creates the store of a partition. `index` makes the index for the store in a
    /// directory: an empty one, or one that has a checkpoint on disk.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        partition: u32,
        seqs: &SeqSource,
        index: impl FnOnce(&Path) -> Result<P::Index, StorageError>,
    ) -> Result<Self, StorageError> {
        shared.enter(partition)?;
        let dir = shared.root.join(partition.to_string());
        let recovered = shared.finish_drop(partition).and_then(|()| {
            // The inventory is checked before anything is changed; to open an index may rebuild it.
            let inventory = InventoryKeeper::open(shared, partition, &dir)?;
            recover::<P>(shared, partition, &dir, seqs, index(&dir)?, inventory)
        });
        let found = recovered.inspect_err(|_| shared.leave(partition))?;
        let core = Core::new(shared.clone(), partition, dir, found);
        core.begin_inventory()?;
        core.log_losses();
        Ok(Self { core: Arc::new(core) })
    }
}

fn recover<P: JournalPolicy>(
    shared: &Arc<Shared>,
    partition: u32,
    dir: &Path,
    seqs: &SeqSource,
    index: P::Index,
    inventory: InventoryKeeper,
) -> Result<Recovered<P>, StorageError> {
    let policy = P::of_index(&index);
    let mark = shared.append_mark(partition);
    let mut recovery = Recovery {
        shared,
        dir,
        inventory: &inventory,
        data_files: Vec::new(),
        unreadable_files: BTreeMap::new(),
        marked: mark.as_ref().and_then(StoreMark::earlier_run),
        seq_max: policy.seen_seq(),
        unsynced_appends: 0,
        policy,
        files: Files::new(),
        losses: Losses::new(&*shared.fs, dir),
        torn_bytes: 0,
        has_expiring: P::may_expire(&index),
        index,
        read_unsynced_data: false,
        names_synced: false,
        consumed_hints: Vec::new(),
        has_feed_file: false,
    };
    let (dir_exists, id_max) = recovery.load_all()?;
    let has_data = recovery.seq_max > 0 || !recovery.files.is_empty();
    let content = if has_data {
        StoreContent::Data
    } else if dir_exists {
        StoreContent::Directory
    } else {
        StoreContent::Nothing
    };
    let identity = IdentityFile::load(shared.fs.clone(), dir, content, mark.clone(), recovery.found_appends())?;
    let seq_max = recovery.seq_max.max(identity.seq());
    recovery.index.finish_load(seq_max, seqs)?;
    if recovery.read_unsynced_data {
        // Data that was read from the page cache must be on disk before it counts as durable.
        shared.fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source))?;
        shared.fs.sync_dir(&shared.root).map_err(|source| io_error("fsync", &shared.root, source))?;
    }
    let boot = identity.identity().boot;
    let retention = Retention::open(shared.fs.clone(), dir, boot, seq_max, recovery.has_feed_file)?;
    let lost_up_to = recovery.lost_up_to(seq_max);
    let Recovery { index, policy, files, losses, torn_bytes, has_expiring, consumed_hints, unreadable_files, .. } =
        recovery;
    let lost_ranges = losses.ranges();
    seqs.raise(seq_max, identity.base());
    if identity.may_miss_appends() {
        seqs.note_missing_appends();
    }
    let base = seqs.base();
    let dir_exists = content != StoreContent::Nothing && begin(shared, dir, dir_exists, &identity, base)?;
    remove_consumed_hints(shared, dir, &identity, seq_max, &consumed_hints)?;
    let writer = Writer::new(seqs.clone(), seq_max, policy.next_file_id().max(id_max + 1), dir_exists, mark);
    Ok(Recovered {
        identity,
        inventory,
        unreadable_files,
        index,
        policy,
        files,
        writer,
        retention,
        lost_ranges,
        lost_up_to,
        torn_bytes,
        has_expiring,
    })
}

/// Records the start on disk, and returns whether the directory exists then. If the disk is full,
/// the first write does this later; reads go on. `base`: the run counts its appends from it.
fn begin(
    shared: &Shared,
    dir: &Path,
    dir_exists: bool,
    identity: &IdentityFile,
    base: u64,
) -> Result<bool, StorageError> {
    let begun = || {
        if !dir_exists {
            shared.fs.create_dir_all(dir)?;
            shared.fs.sync_dir(&shared.root)?;
        }
        identity.begin(base)
    };
    match begun() {
        Ok(()) => Ok(true),
        Err(error) if is_disk_full(&error) => {
            tracing::warn!(dir = %dir.display(), "the disk is full: the store takes no writes until there is room");
            Ok(dir_exists)
        }
        Err(source) => Err(io_error("write", dir, source)),
    }
}

/// The state of a recovery; see the module.
struct Recovery<'a, P: JournalPolicy> {
    shared: &'a Shared,
    dir: &'a Path,
    inventory: &'a InventoryKeeper,
    index: P::Index,
    /// What the index has already seen of the journal.
    policy: P,
    /// The ids of all data files in order, and whether a file had the name of an unsynced one.
    data_files: Vec<(u32, bool)>,
    /// Promised files that cannot be read. They are left in place.
    unreadable_files: BTreeMap<u32, PromisedFile>,
    files: Files,
    /// What the mark says of the run before.
    marked: Option<EarlierRun>,
    seq_max: u64,
    /// The number of appends that the run before had not synced.
    unsynced_appends: u64,
    losses: Losses<'a>,
    torn_bytes: u64,
    has_expiring: bool,
    /// Whether records were read that may be only in the page cache.
    read_unsynced_data: bool,
    /// Whether the names of all data files are on disk.
    names_synced: bool,
    /// Hint files without data files that are to be removed.
    consumed_hints: Vec<u32>,
    /// Whether the store has had a consumer of its change feed.
    has_feed_file: bool,
}

impl<P: JournalPolicy> Recovery<'_, P> {
    fn found_appends(&self) -> FoundAppends {
        FoundAppends { seq_max: self.seq_max, unsynced: self.unsynced_appends }
    }

    /// Loads all files. Returns whether the directory exists, and the highest file id in it.
    fn load_all(&mut self) -> Result<(bool, u32), StorageError> {
        let (shared, dir, inventory) = (self.shared, self.dir, self.inventory);
        let Some(found) = FoundFiles::read(shared, dir, inventory, &mut self.losses)? else {
            let nothing = FoundFiles::none(shared, dir, inventory);
            self.policy.check_index(&mut self.index, &nothing, &mut self.losses)?;
            return Ok((false, 0));
        };
        self.has_feed_file = found.has_feed_file;
        let orphans = self.find_orphans(&found)?;
        self.policy.check_index(&mut self.index, &found, &mut self.losses)?;
        self.data_files.clone_from(&found.data_files);
        for (id, is_unsynced) in &found.data_files {
            self.load_file(*id, *is_unsynced)?;
        }
        self.examine_orphans(&orphans)?;
        // The highest id includes lost files, because their hint files must not be taken for those
        // of later files.
        let lost = self.inventory.promised().lost_files.iter().copied();
        let ids = found.data_files.iter().map(|(id, _)| *id).chain(orphans).chain(lost);
        Ok((true, ids.max().unwrap_or(0)))
    }
}
