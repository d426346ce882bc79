//! The log-structured merge tree of one partition, opened through the library.
//!
//! The library garbage-collects versions below a watermark that its caller gives, and a read below
//! the watermark panics. Therefore every snapshot is registered here, and the watermark is never
//! above the oldest snapshot.
//!
//! Checksums find damage when a block is read. The read fails, and a file in the directory notes
//! the damage for the next start.

use super::files::{CURRENT_FILE, TABLES_DIR, TreeDamage, TreeFiles};
use super::limits::TreeShared;
use crate::backend::LedgerStatus;
use crate::backup::CutContent;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, RealFs, is_media_error, read_file};
use crate::journal::{Compacted, IndexDamage, IndexTable, IndexTables};
use bytes::Bytes;
use lsm_tree::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, RestartIntervalPolicy,
};
use lsm_tree::{AbstractTree, AnyTree, CompressionType, Config, Guard, SeqNo, SequenceNumberCounter, Slice, Table};
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The longest key that the library takes, in bytes.
pub(in crate::ledger) const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Longer than any list of tables.
const LIST_BYTES_MAX: u64 = 1 << 30;

/// How often the list of tables is read until its damage counts.
const LIST_READS: usize = 3;

/// The number of tables in the first level at which they are merged into the next level.
const FIRST_LEVEL_TABLES: u8 = 4;

/// The file that notes that damage was found. Its content is a version number and a description for
/// people.
const DAMAGE_FILE: &str = "damaged";
const DAMAGE_FILE_VERSION: u8 = 1;
/// After how many compactions in a row with a media error the tree counts as damaged.
const MEDIA_ERRORS_MAX: u32 = 3;

/// The files of a tree, and a value that keeps them in place while it lives.
pub(crate) type LedgerFiles = (Vec<(PathBuf, CutContent)>, Box<dyn Any + Send>);

/// A change: a key and its new value, or none to remove it. Changes that are applied together
/// become visible together.
pub(crate) type Change = (Bytes, Option<Bytes>);

pub(crate) struct Tree {
    tree: AnyTree,
    dir: PathBuf,
    next: SequenceNumberCounter,
    visible: SequenceNumberCounter,
    views: Arc<Views>,
    compaction: Arc<lsm_tree::compaction::Leveled>,
    written_bytes: AtomicU64,
    /// Bytes of the memory tables that are rotated and not yet on disk.
    rotated_bytes: AtomicU64,
    /// How many removals the present memory table has, and how many the rotated ones have.
    removals: AtomicU64,
    rotated_removals: AtomicU64,
    is_damaged: AtomicBool,
    /// How many compactions in a row have met a media error.
    media_errors: AtomicU32,
}

/// The open snapshots: how many see everything before a sequence number.
#[derive(Default)]
struct Views {
    open: Mutex<BTreeMap<SeqNo, usize>>,
}

/// A snapshot of a tree. The versions that it sees are kept while it lives.
pub(crate) struct TreeView {
    before: SeqNo,
    views: Arc<Views>,
}

impl Drop for TreeView {
    fn drop(&mut self) {
        let mut open = self.views.open.lock();
        if let Some(count) = open.get_mut(&self.before) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.before);
            }
        }
    }
}

impl Tree {
    /// Opens or creates the tree in a directory; [`StorageError::Damaged`] if its files fail a
    /// check.
    pub(crate) fn open(dir: &Path, shared: &TreeShared) -> Result<Self, StorageError> {
        // The library trusts a list of tables without checking its checksum, and removes tables
        // that are not in the list.
        let list = TreeFiles::read(dir).and_then(|list| match list {
            Ok(Some(files)) => files.check_contents(),
            list => Ok(list.map(drop)),
        });
        match list {
            Ok(Ok(())) => {}
            Ok(Err(TreeDamage { file, offset, what, .. })) => return Err(StorageError::Damaged { file, offset, what }),
            Err(source) => return Err(StorageError::Io { op: "read", path: dir.to_owned(), source }),
        }
        let (next, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let compression = if shared.limits.compresses { CompressionType::Lz4 } else { CompressionType::None };
        let bits = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
        let filters = if shared.limits.filters { FilterPolicy::all(bits) } else { FilterPolicy::disabled() };
        let config = Config::new(dir, next.clone(), visible.clone())
            .use_cache(shared.cache.clone())
            .use_descriptor_table(Some(shared.descriptors.clone()))
            .data_block_size_policy(BlockSizePolicy::all(shared.limits.block_bytes))
            .data_block_compression_policy(CompressionPolicy::all(compression))
            .data_block_restart_interval_policy(RestartIntervalPolicy::all(shared.limits.restart_interval))
            .filter_policy(filters);
        let tree = config.open().map_err(|error| failed(dir, "open", error))?;
        // New sequence numbers must be higher than all on disk.
        let seen = tree.get_highest_seqno().map_or(0, |highest| highest + 1);
        next.fetch_max(seen);
        visible.fetch_max(seen);
        let compaction = lsm_tree::compaction::Leveled::default()
            .with_l0_threshold(FIRST_LEVEL_TABLES)
            .with_table_target_size(shared.limits.table_bytes);
        Ok(Self {
            tree,
            dir: dir.to_owned(),
            next,
            visible,
            views: Arc::default(),
            compaction: Arc::new(compaction),
            written_bytes: AtomicU64::new(0),
            rotated_bytes: AtomicU64::new(0),
            removals: AtomicU64::new(0),
            rotated_removals: AtomicU64::new(0),
            is_damaged: AtomicBool::new(false),
            media_errors: AtomicU32::new(0),
        })
    }

    /// Whether damage was found in the tree of a directory, in this process or in an earlier one.
    pub(crate) fn was_damaged(dir: &Path) -> bool {
        dir.join(DAMAGE_FILE).exists()
    }

    /// The current value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.get_before(key, SeqNo::MAX)
    }

    /// The value of a key in a snapshot.
    pub(crate) fn get_at(&self, key: &[u8], view: &TreeView) -> Result<Option<Bytes>, StorageError> {
        self.get_before(key, view.before)
    }

    fn get_before(&self, key: &[u8], before: SeqNo) -> Result<Option<Bytes>, StorageError> {
        let look = || self.tree.get(key, before);
        let found = match look() {
            // A controller may get the bytes at the second try.
            Err(error) if is_media(&error) => look(),
            found => found,
        };
        Ok(found.map_err(|error| self.failed("read", error))?.map(Bytes::from))
    }

    /// Applies changes. Only one caller at a time; callers hold a lock anyway, because they read
    /// before they write.
    pub(crate) fn apply(&self, changes: impl IntoIterator<Item = Change>) {
        let number = self.next.next();
        for (key, value) in changes {
            match value {
                Some(value) => drop(self.tree.insert(Slice::from(key), Slice::from(value), number)),
                None => {
                    self.tree.remove(Slice::from(key), number);
                    self.removals.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.visible.fetch_max(number + 1);
    }

    /// A snapshot of what has been applied.
    pub(crate) fn view(&self) -> TreeView {
        let mut open = self.views.open.lock();
        let before = self.visible.get();
        *open.entry(before).or_default() += 1;
        TreeView { before, views: self.views.clone() }
    }

    /// Visits the entries between two keys in order until `visit` has enough.
    pub(crate) fn scan(
        &self,
        view: &TreeView,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mut visit: impl FnMut(&[u8], Bytes) -> bool,
    ) -> Result<(), StorageError> {
        let mut passed = None;
        let scanned = match self.scan_once(view, (from, to), &mut passed, &mut visit) {
            // A controller may get the bytes at the second try.
            Err(error) if is_media(&error) => {
                let last = passed.clone();
                let from = last.as_deref().map_or(from, Bound::Excluded);
                self.scan_once(view, (from, to), &mut passed, &mut visit)
            }
            scanned => scanned,
        };
        scanned.map_err(|error| self.failed("read", error))
    }

    /// Visits entries, and notes the last key that was visited.
    fn scan_once(
        &self,
        view: &TreeView,
        (from, to): (Bound<&[u8]>, Bound<&[u8]>),
        passed: &mut Option<Slice>,
        visit: &mut impl FnMut(&[u8], Bytes) -> bool,
    ) -> lsm_tree::Result<()> {
        if is_empty(from, to) {
            return Ok(());
        }
        for item in self.tree.range::<&[u8], _>((from, to), view.before, None) {
            let (key, value) = item.into_inner()?;
            if !visit(&key, Bytes::from(value)) {
                break;
            }
            *passed = Some(key);
        }
        Ok(())
    }

    /// About how many entries a scan between two keys passes at most without a visit: removals, and
    /// what was applied after the oldest snapshot. Versions that the memory tables have of one key
    /// are not counted; they are as few as fit.
    pub(crate) fn hidden_between(&self, from: &[u8], to: &[u8]) -> u64 {
        let version = self.tree.current_version();
        let range = (Bound::Included(from), Bound::Included(to));
        let is_between = |table: &&Table| table.metadata.key_range.overlaps_with_bounds(&range);
        let in_tables: u64 = version.iter_tables().filter(is_between).map(Table::tombstone_count).sum();
        let in_memory = self.removals.load(Ordering::Relaxed) + self.rotated_removals.load(Ordering::Relaxed);
        in_tables + in_memory + self.visible.get().saturating_sub(self.watermark())
    }

    /// Bytes that are in memory only.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.tree.active_memtable().size() + self.rotated_bytes.load(Ordering::Relaxed)
    }

    /// Whether a rotated memory table is not yet on disk.
    pub(crate) fn has_rotated(&self) -> bool {
        self.tree.sealed_memtable_count() > 0
    }

    /// Closes the memory table for changes, so that [`flush`](Self::flush) can write it.
    pub(crate) fn rotate(&self) {
        if let Some(rotated) = self.tree.rotate_memtable() {
            self.rotated_bytes.fetch_add(rotated.size(), Ordering::Relaxed);
            self.rotated_removals.fetch_add(self.removals.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Writes the rotated memory tables. They are on disk when this returns.
    pub(crate) fn flush(&self) -> Result<(), StorageError> {
        let removals = self.rotated_removals.load(Ordering::Relaxed);
        let written = self.counting_tables(|watermark| {
            let lock = self.tree.get_flush_lock();
            self.tree.flush(&lock, watermark)
        })?;
        self.rotated_bytes.fetch_sub(written.unwrap_or(0), Ordering::Relaxed);
        self.rotated_removals.fetch_sub(removals, Ordering::Relaxed);
        Ok(())
    }

    /// Does one slice of compaction if one is due, and returns its sizes. A damaged tree is not
    /// compacted, because compaction would read the same block again and again.
    pub(crate) fn compact(&self) -> Result<Option<Compacted>, StorageError> {
        if self.is_damaged.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let before = self.tree.current_version();
        match self.counting_tables(|watermark| self.tree.compact(self.compaction.clone(), watermark)) {
            // The damage is noted. Reads of the damaged part report it.
            Err(StorageError::Damaged { .. }) => return Ok(None),
            Err(StorageError::Io { source, .. }) if self.is_lasting(&source) => {
                self.note_damage(&source.to_string());
                return Ok(None);
            }
            result => result?,
        }
        self.media_errors.store(0, Ordering::Relaxed);
        let after = self.tree.current_version();
        let changed = before.id() != after.id();
        Ok(changed.then(|| compacted(&table_sizes(before.iter_tables()), &table_sizes(after.iter_tables()))).flatten())
    }

    /// Whether compactions have met nothing but media errors for a while. One alone may be of a
    /// write, or pass.
    fn is_lasting(&self, error: &io::Error) -> bool {
        is_media_error(error) && self.media_errors.fetch_add(1, Ordering::Relaxed) + 1 >= MEDIA_ERRORS_MAX
    }

    /// The number of runs of tables in the first level. A read may have to look into each of them.
    pub(crate) fn first_level_tables(&self) -> usize {
        self.tree.l0_run_count()
    }

    /// Bytes of the tables on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.tree.disk_space()
    }

    /// Sizes of the tree.
    pub(crate) fn status(&self) -> LedgerStatus {
        LedgerStatus {
            disk_bytes: self.disk_bytes(),
            memory_bytes: self.memory_bytes(),
            written_bytes: self.written_bytes(),
            first_level_tables: self.first_level_tables() as u64,
            pending_bytes: self.tree.current_version().l0().size(),
        }
    }

    /// Bytes of tables written since the start.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Memory of filters and block indexes that are always loaded.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        (self.tree.pinned_filter_size() + self.tree.pinned_block_index_size()) as u64
    }

    /// The files of the tree's current version. Tables are written once, and removed when no
    /// version contains them any more, so they may be hard-linked. The list of tables and the file
    /// that names it are read here, before the next version replaces them.
    pub(crate) fn files(&self) -> Result<LedgerFiles, StorageError> {
        let version = self.tree.current_version();
        let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
        let table = |id: u64, checksum: u128| {
            let path = self.dir.join(TABLES_DIR).join(id.to_string());
            // Half of the checksum distinguishes files as well as the salt of a journal's file.
            (path.clone(), CutContent::Final { fs: fs.clone(), path, salt: Some(checksum as u64) })
        };
        let mut files: Vec<_> =
            version.iter_tables().map(|found| table(found.id(), found.checksum().into_u128())).collect();
        for name in [format!("v{}", version.id()), CURRENT_FILE.to_owned()] {
            let path = self.dir.join(name);
            let bytes = read_file(&*fs, &path, LIST_BYTES_MAX).map_err(|source| io_error("read", &path, source))?;
            files.push((path, CutContent::Bytes(bytes)));
        }
        Ok((files, Box::new(version)))
    }

    /// The tables of the tree's current version, for scrubbing.
    pub(crate) fn tables(&self) -> IndexTables {
        let version = self.tree.current_version();
        let table = |found: &Table| IndexTable {
            number: found.id(),
            path: self.dir.join(TABLES_DIR).join(found.id().to_string()),
            checksum: found.checksum().into_u128(),
        };
        let mut tables: Vec<IndexTable> = version.iter_tables().map(table).collect();
        tables.sort_by_key(|table| table.number);
        IndexTables { tables, _pin: Box::new(version) }
    }

    /// Reads the list of tables on disk. A flush may replace it meanwhile, so damage counts only if
    /// it is found again and again.
    pub(crate) fn check_list(&self) -> Result<Option<IndexDamage>, StorageError> {
        let mut found = None;
        for _ in 0..LIST_READS {
            match TreeFiles::read(&self.dir).map_err(|source| io_error("read", &self.dir, source)) {
                Ok(Ok(_)) => return Ok(None),
                Ok(Err(damage)) => found = Some(IndexDamage::from(damage)),
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// Notes for the next start that the tree is damaged. Compactions go on: one that reads the
    /// damage ends.
    pub(crate) fn note_damage_on_disk(&self, damage: &IndexDamage) {
        self.write_damage_note(&format!("{} at {}: {}", damage.file.display(), damage.offset, damage.what));
    }

    /// Removes everything.
    pub(crate) fn clear(&self) -> Result<(), StorageError> {
        self.tree.clear().map_err(|error| self.failed("remove", error))
    }

    /// Notes damage and returns the error for it.
    pub(crate) fn damaged(&self, what: &str) -> StorageError {
        self.note_damage(what);
        damaged(&self.dir)
    }

    /// Notes damage in a file for the next start.
    fn note_damage(&self, what: &str) {
        if self.is_damaged.swap(true, Ordering::Relaxed) {
            return;
        }
        tracing::error!(dir = %self.dir.display(), what, "damaged");
        self.write_damage_note(what);
    }

    fn write_damage_note(&self, what: &str) {
        let path = self.dir.join(DAMAGE_FILE);
        let note = || {
            let mut file = fs::File::create(&path)?;
            file.write_all(format!("{DAMAGE_FILE_VERSION}\n{what}\n").as_bytes())?;
            file.sync_all()?;
            fs::File::open(&self.dir)?.sync_all()
        };
        if let Err(error) = note() {
            tracing::error!(file = %path.display(), %error, "cannot be written: the next start has to find the damage again");
        }
    }

    fn counting_tables<T>(&self, work: impl FnOnce(SeqNo) -> lsm_tree::Result<T>) -> Result<T, StorageError> {
        let first_new = self.tree.next_table_id();
        let done = work(self.watermark()).map_err(|error| self.failed("write", error))?;
        let version = self.tree.current_version();
        let new = version.iter_tables().filter(|table| table.id() >= first_new);
        self.written_bytes.fetch_add(new.map(|table| table.metadata.file_size).sum(), Ordering::Relaxed);
        Ok(done)
    }

    /// The lowest sequence number that a snapshot may still read.
    fn watermark(&self) -> SeqNo {
        let open = self.views.open.lock();
        open.first_key_value().map_or_else(|| self.visible.get(), |(oldest, _)| *oldest)
    }

    fn failed(&self, op: &'static str, error: lsm_tree::Error) -> StorageError {
        let what = error.to_string();
        let error = failed(&self.dir, op, error);
        if error.is_unreadable_version() {
            self.note_damage(&what);
        }
        error
    }
}

fn damaged(dir: &Path) -> StorageError {
    StorageError::Damaged { file: dir.to_owned(), offset: 0, what: "the ledger in it is not what was written" }
}

/// Whether an error of the library says that the disk does not give bytes back.
fn is_media(error: &lsm_tree::Error) -> bool {
    matches!(error, lsm_tree::Error::Io(source) if is_media_error(source))
}

/// Translates an error of the library. An error of the operating system may be temporary, unless a
/// read says that the disk does not give bytes back. Everything else is damage, and so is a missing
/// file.
fn failed(dir: &Path, op: &'static str, error: lsm_tree::Error) -> StorageError {
    use io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    match error {
        lsm_tree::Error::Io(source) if op == "read" && is_media_error(&source) => {
            StorageError::MediaError { file: dir.to_owned(), offset: 0, source }
        }
        lsm_tree::Error::Io(source) if !matches!(source.kind(), InvalidData | NotFound | UnexpectedEof) => {
            StorageError::Io { op, path: dir.to_owned(), source }
        }
        _ => damaged(dir),
    }
}

/// The sizes of tables by their ids.
fn table_sizes<'a>(tables: impl Iterator<Item = &'a Table>) -> BTreeMap<u64, u64> {
    tables.map(|table| (table.id(), table.metadata.file_size)).collect()
}

/// The sizes of the tables that are only in one of both maps. None if tables only changed their
/// level, which copies nothing.
fn compacted(before: &BTreeMap<u64, u64>, after: &BTreeMap<u64, u64>) -> Option<Compacted> {
    let bytes_only_in = |one: &BTreeMap<u64, u64>, other: &BTreeMap<u64, u64>| -> u64 {
        one.iter().filter(|(id, _)| !other.contains_key(id)).map(|(_, bytes)| bytes).sum()
    };
    let (bytes_before, bytes_after) = (bytes_only_in(before, after), bytes_only_in(after, before));
    (bytes_before > 0).then_some(Compacted { bytes_before, bytes_after })
}

/// Whether a range is empty. The library panics on ranges whose start is after their end.
fn is_empty(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::TreeLimits;
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn put(tree: &Tree, key: &str, value: &str) {
        tree.apply([(bytes(key), Some(bytes(value)))]);
    }

    fn all(tree: &Tree, view: &TreeView) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        tree.scan(view, Bound::Unbounded, Bound::Unbounded, |key, value| {
            found.push((text(key), text(&value)));
            true
        })
        .unwrap();
        found
    }

    #[test]
    fn views_outlive_flushes_and_compactions() {
        let dir = tempfile::tempdir().unwrap();
        let shared = TreeShared::new(TreeLimits { table_bytes: 4096, ..TreeLimits::default() });
        let tree = Tree::open(&dir.path().join("ledger"), &shared).unwrap();
        let empty = tree.view();
        let mut views = Vec::new();
        for round in 0..20 {
            for key in 0..50 {
                put(&tree, &format!("key {key:03}"), &format!("{round} of {key}"));
            }
            tree.apply([(bytes("key 007"), None)]);
            views.push((round, tree.view()));
            tree.rotate();
            tree.flush().unwrap();
            tree.compact().unwrap();
        }
        assert_eq!(all(&tree, &empty), []);
        for (round, view) in &views {
            let found = all(&tree, view);
            assert_eq!(found.len(), 49);
            assert!(found.iter().all(|(_, value)| value.starts_with(&format!("{round} of"))));
            assert_eq!(tree.get_at(b"key 007", view).unwrap(), None);
            assert_eq!(tree.get_at(b"key 008", view).unwrap(), Some(bytes(&format!("{round} of 8"))));
        }
        views.clear();
        drop(empty);
        for _ in 0..10 {
            tree.compact().unwrap();
        }
        assert_eq!(all(&tree, &tree.view()).len(), 49);
        assert!(tree.written_bytes() > 0 && tree.disk_bytes() > 0);
    }

    #[test]
    fn what_was_flushed_is_there_again_and_numbers_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let shared = TreeShared::new(TreeLimits::default());
        for round in 0..3 {
            let tree = Tree::open(&dir.path().join("ledger"), &shared).unwrap();
            let expected = if round == 0 { None } else { Some(bytes(&format!("round {}", round - 1))) };
            assert_eq!(tree.get(b"key").unwrap(), expected);
            put(&tree, "key", &format!("round {round}"));
            tree.rotate();
            tree.flush().unwrap();
            put(&tree, "lost", "in memory");
            assert!(tree.memory_bytes() > 0);
            assert_eq!(tree.get(b"key").unwrap(), Some(bytes(&format!("round {round}"))));
        }
        let tree = Tree::open(&dir.path().join("ledger"), &shared).unwrap();
        assert_eq!(tree.get(b"lost").unwrap(), None);
    }

    /// An error of a write says nothing about what was read.
    #[test]
    fn what_the_disk_does_not_give_back_cannot_be_read() {
        let of = |op, code| failed(Path::new("d"), op, lsm_tree::Error::Io(io::Error::from_raw_os_error(code)));
        let eio = rustix::io::Errno::IO.raw_os_error();
        assert!(matches!(of("read", eio), StorageError::MediaError { .. }));
        assert!(of("read", eio).is_unreadable_version());
        for (op, code) in [("write", eio), ("read", rustix::io::Errno::MFILE.raw_os_error())] {
            assert!(matches!(of(op, code), StorageError::Io { .. }), "{op} {code}");
        }
    }

    #[test]
    fn ranges_have_their_ends() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(&dir.path().join("ledger"), &TreeShared::new(TreeLimits::default())).unwrap();
        tree.apply(["a", "b", "c", "d"].map(|key| (bytes(key), Some(bytes("")))));
        let view = tree.view();
        let keys = |from: Bound<&str>, to: Bound<&str>| {
            let mut keys = String::new();
            tree.scan(&view, from.map(str::as_bytes), to.map(str::as_bytes), |key, _| {
                keys.push(char::from(key[0]));
                true
            })
            .unwrap();
            keys
        };
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(keys(Included("b"), Included("c")), "bc");
        assert_eq!(keys(Excluded("b"), Unbounded), "cd");
        assert_eq!(keys(Unbounded, Excluded("b")), "a");
        assert_eq!(keys(Included("c"), Included("b")), "");
        assert_eq!(keys(Excluded("b"), Excluded("b")), "");
        assert_eq!(keys(Included("b"), Excluded("b")), "");
    }
}
