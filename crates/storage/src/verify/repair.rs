//! Repairs a partition: removes damage, and keeps everything else.
//!
//! The order of the steps makes a repair safe: first copies of the damage, then the note that
//! something is missing, then the intact data in new files, then the commit that removes the old
//! files, and only then whatever can be rebuilt. A repair that is interrupted anywhere is finished
//! by the next one, or leaves a store that a start reads as before.

use super::data_files::{Damaged, FileExam, FileReader, NamedVersion};
use super::examination::PartitionExamination;
use super::quarantine::Quarantine;
use super::report::{Effect, PartitionReport};
use super::rewrite::{Rescued, Rewriter};
use super::root::{StoreKind, StoreRoot};
use crate::backend::{BackendFactory, ReadMode};
use crate::bitcask::BitcaskFactory;
use crate::error::{StorageError, io_error};
use crate::fold::WriteAttrs;
use crate::fs::{File, FileSystem, OpenMode, RealFs};
use crate::identity::random_id;
use crate::inventory::{Inventory, MissingItem};
use crate::journal::format::{FILE_HEADER_BYTES, HintEntry, HintWriter, RecordHeader, Scanned, Scanner};
use crate::journal::{
    COMMIT_SUFFIX, LostNote, Shared, finish_commit, hint_path, hint_temporary_path, identity_path,
    index_must_have_seen, missing_file, place_fingerprint, take_file_id, write_commit,
};
use crate::ledger::{TreeFiles, decode_entry, remove_dir, store_key};
use crate::leveldb::LeveldbFactory;
use crate::leveled::LeveledFactory;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The most files that one commit names.
const COMMIT_FILES_MAX: usize = 10_000;

impl StoreRoot {
    /// Removes the damage of a partition. The store then serves the rest, and records that
    /// something is missing. Returns the report from before and the report of an examination
    /// afterwards. `observe` works as in [`verify`](Self::verify), but cannot end the repair once
    /// something is changed.
    pub fn repair(
        &mut self,
        partition: u32,
        observe: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(PartitionReport, PartitionReport), StorageError> {
        let exam = PartitionExamination::new(self, partition, observe)?;
        let before = exam.report();
        if !exam.complete || !exam.is_damaged() {
            return Ok((before.clone(), before));
        }
        Repair::new(self, &exam)?.run()?;
        drop(exam);
        self.open_and_close(partition)?;
        let after = self.verify(partition, observe)?;
        Ok((before, after))
    }

    /// Opens and closes the store as a node does. This rebuilds everything that can be rebuilt.
    fn open_and_close(&mut self, partition: u32) -> Result<(), StorageError> {
        self.lock = None;
        let opened = self.factory().and_then(|factory| factory.open(partition)?.close());
        let setting = format!("{}.data_root", self.kind.name());
        self.lock = Some(Shared::take_lock(&*self.fs, &self.path, &setting)?);
        opened
    }

    fn factory(&self) -> Result<Box<dyn BackendFactory>, StorageError> {
        let (fs, path, journal, terms) = (self.fs.clone(), &self.path, self.journal, self.terms.clone());
        let inventory = self.inventory.clone();
        let marks = self.append_marks.clone();
        Ok(match self.kind {
            StoreKind::Bitcask => {
                let factory = BitcaskFactory::with_terms(fs, path, journal, &self.ledger, terms)?;
                Box::new(factory.with_inventory(inventory).with_append_marks(marks))
            }
            StoreKind::Leveled => {
                let factory = LeveledFactory::new(fs, path, journal, self.ledger, terms)?;
                Box::new(factory.with_inventory(inventory).with_append_marks(marks))
            }
            StoreKind::Leveldb => {
                let factory = LeveldbFactory::new(fs, path, journal, self.ledger, terms)?;
                Box::new(factory.with_inventory(inventory).with_append_marks(marks))
            }
        })
    }
}

struct Repair<'a> {
    root: &'a StoreRoot,
    fs: &'a dyn FileSystem,
    exam: &'a PartitionExamination,
    /// Whether the tree that has the values is removed, after its readable content was written to
    /// the journal.
    salvages_tree: bool,
    next_id: u32,
}

impl<'a> Repair<'a> {
    fn new(root: &'a StoreRoot, exam: &'a PartitionExamination) -> Result<Self, StorageError> {
        let salvages_tree = exam.kind == StoreKind::Leveldb && (exam.ledger.is_damaged() || exam.ledger_is_behind());
        let repair = Self { root, fs: &*root.fs, exam, salvages_tree, next_id: exam.id_max.saturating_add(1) };
        repair.check_space()?;
        Ok(repair)
    }

    fn run(&mut self) -> Result<(), StorageError> {
        let lost = self.lost_places();
        self.quarantine()?;
        self.note(&lost)?;
        // From here on no file is promised, so a start does not report removed files as missing.
        // The store promises its files again when it is opened at the end.
        self.promise_nothing()?;
        if !lost.is_empty() || self.exam.identity_is_damaged {
            self.forget_identity()?;
        }
        let rewritten = self.rewrite_files()?;
        for file in self.exam.files.values().filter(|file| file.hint_is_wrong() && !self.is_rewritten(file)) {
            self.rewrite_hint(file)?;
        }
        for name in &self.exam.damaged_commits {
            let path = self.exam.dir.join(name);
            self.fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
        }
        let points_at_files = self.exam.kind != StoreKind::Leveldb;
        let is_behind = points_at_files && (rewritten || !self.exam.missing_files.is_empty());
        if self.salvages_tree || self.exam.covered_seq.is_none() {
            // From here on the journal has everything.
            self.remove(&index_must_have_seen::path_in(&self.exam.dir))?;
        }
        if self.salvages_tree {
            // The old tree had seen the versions that these hint files name; the rebuilt tree has
            // not.
            self.exam.orphans.iter().try_for_each(|id| self.remove(&hint_path(&self.exam.dir, *id)))?;
        }
        if self.salvages_tree || self.exam.ledger.is_damaged() || is_behind {
            self.give_up_ledger()?;
        }
        Ok(())
    }

    /// Fails if there is no room for what is written before anything is removed.
    fn check_space(&self) -> Result<(), StorageError> {
        let files = self.exam.files.values().filter(|file| self.is_rewritten(file));
        let tree = if self.salvages_tree { self.exam.ledger.files.as_ref().map_or(0, TreeFiles::bytes) } else { 0 };
        // Values in a tree are compressed, and the journal gets them uncompressed.
        let wanted = files.map(|file| 2 * file.length).sum::<u64>() + 6 * tree;
        let free = self.fs.free_bytes(&self.root.path).map_err(|e| io_error("statvfs", &self.root.path, e))?;
        if free >= wanted {
            return Ok(());
        }
        let what = format!(
            "the repair of partition {} may write {wanted} bytes, and {free} are free: nothing is changed",
            self.exam.partition
        );
        Err(StorageError::Unusable { path: self.root.path.clone(), what })
    }

    fn is_rewritten(&self, file: &FileExam) -> bool {
        // The rebuilt tree must not load versions that the old tree had seen, because they may have
        // been deleted since.
        file.is_damaged() || (self.salvages_tree && !file.is_unsynced && self.exam.seen_seq() > 0)
    }

    /// The fingerprints of the places where something is lost.
    fn lost_places(&self) -> Vec<u64> {
        let mut lost = Vec::new();
        for file in self.exam.files.values() {
            let name = file.path.to_string_lossy();
            let is_lost = |damaged: &&Damaged| {
                damaged.known.is_empty()
                    || damaged.known.iter().any(|known| self.exam.versions.get(&known.key).is_lost())
            };
            let counts = |damaged: &&Damaged| self.exam.kind != StoreKind::Leveldb || self.is_needed(damaged);
            let damaged = file.damaged.iter().filter(is_lost).filter(counts);
            lost.extend(damaged.map(|damaged| place_fingerprint(&name, damaged.offset)));
            if file.is_damaged() {
                lost.extend(
                    (0..file.known_losses).map(|number| place_fingerprint(&format!("known in {name}"), number)),
                );
            }
        }
        lost.extend(self.exam.damaged_commits.iter().map(|name| place_fingerprint(name, 0)));
        lost.extend(self.exam.missing_files.keys().map(|id| missing_file(*id)));
        lost.extend(self.exam.inventory.missing.iter().map(MissingItem::place_fingerprint));
        let ledger = &self.exam.ledger;
        if self.exam.ledger_is_behind() {
            lost.push(place_fingerprint("ledger", self.exam.covered_seq.unwrap_or(0)));
        }
        if self.salvages_tree {
            lost.extend(
                ledger.damage.iter().map(|damage| place_fingerprint(&damage.file.to_string_lossy(), damage.offset)),
            );
        }
        // The journal does not have the versions that these entries point at.
        let dangling = ledger.disagreements.iter().filter(|found| found.effect == Effect::Fails);
        lost.extend(dangling.filter_map(|found| found.key.as_ref()).map(|key| xxh3_64(key)));
        lost
    }

    /// For a journal under a tree that has the values: whether the tree had not seen the damaged
    /// range.
    fn is_needed(&self, damaged: &Damaged) -> bool {
        damaged.known.is_empty() || damaged.known.iter().any(|known| known.seq > self.exam.seen_seq())
    }

    fn quarantine(&self) -> Result<(), StorageError> {
        let quarantine = Quarantine::open(self.fs, &self.root.path, self.exam.partition)?;
        for file in self.exam.files.values() {
            if file.header_is_damaged && !file.is_unsynced {
                quarantine.keep(&file.path, 0, FILE_HEADER_BYTES as u64)?;
            }
            for damaged in &file.damaged {
                quarantine.keep(&file.path, damaged.offset, damaged.length)?;
            }
            if file.hint_is_wrong() {
                self.quarantine_whole(&quarantine, &hint_path(&self.exam.dir, file.id))?;
            }
        }
        for name in &self.exam.damaged_commits {
            self.quarantine_whole(&quarantine, &self.exam.dir.join(name))?;
        }
        for id in self.exam.missing_files.keys() {
            // The hint file is the only evidence of the missing data file, and the next start
            // removes it.
            let hint = hint_path(&self.exam.dir, *id);
            if !self.exam.files.contains_key(id) && self.fs.open(&hint, OpenMode::Read).is_ok() {
                self.quarantine_whole(&quarantine, &hint)?;
            }
        }
        if self.exam.note.is_damaged() {
            self.quarantine_whole(&quarantine, &LostNote::path(&self.exam.dir))?;
        }
        if self.exam.covered_seq.is_none() {
            self.quarantine_whole(&quarantine, &index_must_have_seen::path_in(&self.exam.dir))?;
        }
        if self.exam.identity_is_damaged {
            self.quarantine_whole(&quarantine, &identity_path(&self.exam.dir))?;
        }
        for damage in self.exam.ledger.damage.iter().filter(|damage| damage.length > 0) {
            // Trees are always on the real file system, even if the journals are not.
            let Ok(file) = RealFs.open(&damage.file, OpenMode::Read) else { continue };
            quarantine.keep_from(
                &super::zero_filling_file::ZeroFillingFile(file),
                &damage.file,
                damage.offset,
                damage.length,
            )?;
        }
        quarantine.keep_report(self.exam)?;
        quarantine.sync()
    }

    fn quarantine_whole(&self, quarantine: &Quarantine<'_>, path: &Path) -> Result<(), StorageError> {
        let length = self.fs.open(path, OpenMode::Read).and_then(|file| file.length());
        quarantine.keep(path, 0, length.map_err(|source| io_error("stat", path, source))?)
    }

    /// Notes durably that something is missing.
    fn note(&self, lost: &[u64]) -> Result<(), StorageError> {
        let dir = &self.exam.dir;
        if lost.is_empty() && !self.exam.note.is_damaged() {
            return Ok(());
        }
        self.fs.create_dir_all(dir).map_err(|source| io_error("create", dir, source))?;
        self.fs.sync_dir(&self.root.path).map_err(|source| io_error("fsync", &self.root.path, source))?;
        let mut note = self.exam.note.clone();
        lost.iter().for_each(|place| note.add_place(*place));
        note.write(self.fs, dir)?;
        Ok(())
    }

    /// Writes both copies of the inventory so that they promise the store, but none of its files.
    fn promise_nothing(&self) -> Result<(), StorageError> {
        let (dir, comparison) = (&self.exam.dir, &self.exam.inventory);
        let known = [comparison.store.whole(), comparison.node.whole()];
        let generation = known.iter().flatten().map(|copy| copy.generation).max().unwrap_or(0);
        let lineage = match comparison.promised() {
            Some(inventory) => inventory.lineage,
            None => random_id(self.fs.machine(), dir)?,
        };
        let inventory = Inventory { lineage, generation: generation + 1, ..Inventory::default() };
        self.fs.create_dir_all(dir).map_err(|source| io_error("create", dir, source))?;
        self.fs.sync_dir(&self.root.path).map_err(|source| io_error("fsync", &self.root.path, source))?;
        let copies = self.root.inventory_copies(self.exam.partition);
        copies.write_store(self.fs, &inventory)?;
        copies.write_node(self.fs, &inventory)
    }

    /// Makes the store another one, because it lacks versions that the old one had acknowledged.
    fn forget_identity(&self) -> Result<(), StorageError> {
        self.remove(&identity_path(&self.exam.dir))
    }

    /// Removes a file durably, if it exists.
    fn remove(&self, path: &Path) -> Result<(), StorageError> {
        let dir = &self.exam.dir;
        match self.fs.remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(io_error("remove", path, source)),
            Ok(()) => self.fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source)),
        }
    }

    /// Writes the intact records of damaged files to new files, and removes the old ones. Returns
    /// whether any file was written.
    fn rewrite_files(&mut self) -> Result<bool, StorageError> {
        let old: Vec<&FileExam> = self.exam.files.values().filter(|file| self.is_rewritten(file)).collect();
        if self.salvages_tree {
            self.save_tree()?;
        }
        let has_hidden = self.hide_missing()?;
        for files in old.chunks(COMMIT_FILES_MAX) {
            for file in files {
                self.rewrite_file(file)?;
            }
            let number = self.take_id()?;
            let named: Vec<(u32, u64)> = files.iter().map(|file| (file.id, self.salt_on_disk(file))).collect();
            let path = self.begin_commit(number)?;
            write_commit(self.fs, &self.exam.dir, number, &named)?;
            finish_commit(self.fs, &self.exam.dir, &path)?;
        }
        Ok(!old.is_empty() || has_hidden)
    }

    /// The salt by which a commit names a file. If the header is whole, this is the salt in it,
    /// even if the header is of another file that was put under this name. A commit does not remove
    /// a file that has another salt.
    fn salt_on_disk(&self, file: &FileExam) -> u64 {
        let reader = FileReader { fs: self.fs, dir: &self.exam.dir, terms: &*self.root.terms };
        reader.salt_in_header(&file.path).or(file.salt).unwrap_or(0)
    }

    /// The name of a commit file. Removes the temporary file that an interrupted repair may have
    /// left.
    fn begin_commit(&self, number: u32) -> Result<String, StorageError> {
        let path = self.exam.dir.join(format!("{number:010}.tmp"));
        match self.fs.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, error)),
            _ => Ok(format!("{number:010}{COMMIT_SUFFIX}")),
        }
    }

    fn take_id(&mut self) -> Result<u32, StorageError> {
        take_file_id(&mut self.next_id, &self.exam.dir)
    }

    fn rewrite_file(&mut self, file: &FileExam) -> Result<(), StorageError> {
        let Some(salt) = file.salt else { return Ok(()) };
        let mut out =
            Rewriter::create(self.fs, &self.exam.dir, self.take_id()?, random_id(self.fs.machine(), &self.exam.dir)?)?;
        let reader = FileReader { fs: self.fs, dir: &self.exam.dir, terms: &*self.root.terms };
        let open = reader.open(&file.path)?;
        let failed = |source: io::Error| io_error("read", &file.path, source);
        let seen_seq = if self.salvages_tree { self.exam.seen_seq() } else { 0 };
        let mut scanner = Scanner::new(&open, salt, FILE_HEADER_BYTES as u64, file.length);
        let mut record = Vec::new();
        while let Some(scanned) = scanner.next().map_err(failed)? {
            let Scanned::Record { offset, header } = scanned else { continue };
            if header.seq <= seen_seq || !scanner.body_matches(offset, &header).map_err(failed)? {
                continue;
            }
            record.resize(header.total_len() as usize, 0);
            open.read_at(&mut record, offset, ReadMode::Blocking).map_err(failed)?;
            let key = scanner.key(offset, &header).map_err(failed)?;
            out.copy(&record, &header, key)?;
        }
        self.hide(file, &mut out)?;
        out.finish()
    }

    /// Writes tombstones for lost versions that are the newest of their keys. Without them, older
    /// versions would become visible, which would undo acknowledged writes.
    fn hide(&self, file: &FileExam, out: &mut Rewriter<'_>) -> Result<(), StorageError> {
        let known = file.damaged.iter().flat_map(|damaged| &damaged.known);
        known
            .filter(|known| self.is_to_be_hidden(file.id, known))
            .try_for_each(|known| out.tombstone(&known.key, known.seq, known.tstamp_secs))
    }

    /// Like [`hide`](Self::hide), for the versions of missing files. Returns whether there was any.
    fn hide_missing(&mut self) -> Result<bool, StorageError> {
        let missing = self.exam.missing_files.iter();
        let known = missing.flat_map(|(id, missed)| missed.iter().map(|known| (*id, known)));
        let hidden: Vec<&NamedVersion> =
            known.filter(|(id, known)| self.is_to_be_hidden(*id, known)).map(|(_, known)| known).collect();
        if hidden.is_empty() {
            return Ok(false);
        }
        let mut out =
            Rewriter::create(self.fs, &self.exam.dir, self.take_id()?, random_id(self.fs.machine(), &self.exam.dir)?)?;
        hidden.iter().try_for_each(|known| out.tombstone(&known.key, known.seq, known.tstamp_secs))?;
        out.finish().map(|()| true)
    }

    fn is_to_be_hidden(&self, file_id: u32, known: &NamedVersion) -> bool {
        let state = self.exam.versions.get(&known.key);
        let is_newest = state.lost.is_some_and(|lost| (lost.seq, lost.file_id) == (known.seq, file_id));
        state.is_lost() && is_newest && (!self.salvages_tree || known.seq > self.exam.seen_seq())
    }

    /// Writes the readable content of a tree to the journal. The next start rebuilds the tree from
    /// it.
    fn save_tree(&mut self) -> Result<(), StorageError> {
        let without_list;
        let files = match &self.exam.ledger.files {
            Some(files) => files,
            None => {
                let dir = &self.exam.ledger.dir;
                without_list = TreeFiles::without_list(dir).map_err(|source| io_error("list", dir, source))?;
                &without_list
            }
        };
        let file_bytes_max = self.root.journal.file_bytes_max;
        let (fs, dir) = (self.fs, &self.exam.dir);
        fs.create_dir_all(dir).map_err(|source| io_error("create", dir, source))?;
        let mut out: Option<Rewriter<'_>> = None;
        let mut failed = None;
        files.for_each(|place, value| {
            let Some(entry) = value.and_then(|value| decode_entry(&value)).filter(|_| failed.is_none()) else { return };
            let key = store_key(entry.whole_key.as_deref().unwrap_or(place));
            let (Some(key), Some(body)) = (key, entry.body.as_deref()) else { return };
            let version = Rescued {
                key,
                head: &entry.head,
                body,
                seq: entry.entry.seq,
                digest: entry.entry.digest,
                attrs: WriteAttrs {
                    tstamp_secs: entry.tstamp_secs,
                    expires_secs: entry.wanted_expires_secs,
                    has_terms: entry.entry.position.has_terms,
                },
            };
            failed = self.rescue(&version, &mut out, file_bytes_max).err();
        });
        match (failed, out) {
            (Some(error), _) => Err(error),
            (None, Some(out)) => out.finish(),
            (None, None) => Ok(()),
        }
    }

    fn rescue(
        &mut self,
        version: &Rescued<'_>,
        out: &mut Option<Rewriter<'a>>,
        file_bytes_max: u64,
    ) -> Result<(), StorageError> {
        let size = (version.key.len() + version.head.len() + version.body.len() + 64) as u64;
        if let Some(full) = out.take_if(|out| out.length() + size > file_bytes_max.min(u64::from(u32::MAX))) {
            full.finish()?;
        }
        let writer = match out {
            Some(writer) => writer,
            none => none.insert(Rewriter::create(
                self.fs,
                &self.exam.dir,
                self.take_id()?,
                random_id(self.fs.machine(), &self.exam.dir)?,
            )?),
        };
        writer.put(version)
    }

    /// Writes the hint file of an intact data file.
    fn rewrite_hint(&self, file: &FileExam) -> Result<(), StorageError> {
        let Some(salt) = file.salt else { return Ok(()) };
        let path = hint_path(&self.exam.dir, file.id);
        let temporary = hint_temporary_path(&self.exam.dir, file.id);
        let reader = FileReader { fs: self.fs, dir: &self.exam.dir, terms: &*self.root.terms };
        let open = reader.open(&file.path)?;
        let write = || {
            match self.fs.remove_file(&temporary) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut hint = HintWriter::create(self.fs, temporary.clone(), file.id, salt)?;
            let mut scanner = Scanner::new(&open, salt, FILE_HEADER_BYTES as u64, file.length);
            while let Some(scanned) = scanner.next()? {
                let Scanned::Record { offset, header } = scanned else { continue };
                if scanner.body_matches(offset, &header)? {
                    add_hint(&mut hint, &mut scanner, offset, &header)?;
                }
            }
            let losses = u32::try_from(file.known_losses).unwrap_or(u32::MAX);
            hint.finish(self.fs, &path, file.length, losses)?;
            self.fs.sync_dir(&self.exam.dir)
        };
        write().map_err(|source| io_error("write", &path, source))
    }

    /// Removes a tree, which is rebuilt at the next start or when it is needed. The tree is renamed
    /// first, so that a partly removed tree is never opened.
    fn give_up_ledger(&self) -> Result<(), StorageError> {
        let dir = &self.exam.ledger.dir;
        let aside = given_up(dir);
        remove_dir(&aside)?;
        match std::fs::rename(dir, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(io_error("rename", dir, source)),
            Ok(()) => {}
        }
        RealFs.sync_dir(&self.root.path).map_err(|source| io_error("fsync", &self.root.path, source))?;
        remove_dir(&aside)
    }
}

/// The name of a tree that is being removed.
fn given_up(dir: &Path) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

fn add_hint(hint: &mut HintWriter, scanner: &mut Scanner<'_>, offset: u64, header: &RecordHeader) -> io::Result<()> {
    let key = scanner.key(offset, header)?;
    hint.add(&HintEntry::of(offset, header, key))
}
