//! The examination of one partition: journal, hint files and ledger, and whether they agree.

use super::data_files::{FileExam, FileReader, HintState, NamedVersion, Noted, Observe};
use super::ledger::{Comparison, LedgerExam};
use super::report::{Damage, Effect, Finding, PartitionReport};
use super::root::{StoreKind, StoreRoot};
use super::versions::{LostVersion, Versions};
use crate::error::{StorageError, io_error};
use crate::inventory::{Comparison as InventoryComparison, CopyState, MissingKind, RECORD_NAME, compare};
use crate::journal::format::{FILE_HEADER_BYTES, Kind, Scanned, Scanner};
use crate::journal::{
    COMMIT_SUFFIX, FileState, JournalConfig, LostNote, Newest, data_path, hint_id, hint_path, identity_is_damaged,
    identity_path, index_must_have_seen, is_lost_version, parse_name, read_commit,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The examination of one partition.
pub(super) struct PartitionExamination {
    pub(super) partition: u32,
    pub(super) kind: StoreKind,
    pub(super) dir: PathBuf,
    /// The data files, without those that a committed merge has removed, even if the directory
    /// still lists them.
    pub(super) files: BTreeMap<u32, FileExam>,
    pub(super) versions: Versions,
    /// The names of commit files that cannot be read.
    pub(super) damaged_commits: Vec<String>,
    /// Data files that are missing although the ledger, a hint file or the inventory names them.
    /// For each, the versions that are lost, as far as a hint file names them.
    pub(super) missing_files: BTreeMap<u32, Vec<NamedVersion>>,
    /// Hint files without a data file.
    pub(super) orphans: Vec<u32>,
    pub(super) ledger: LedgerExam,
    pub(super) note: LostNote,
    /// The copies of the inventory, and what the store missing.
    pub(super) inventory: InventoryComparison,
    pub(super) identity_is_damaged: bool,
    /// The `seq` that the ledger must have seen; none if the note of it is damaged.
    pub(super) covered_seq: Option<u64>,
    /// Losses that hint files and ledger record.
    pub(super) known_losses: u64,
    /// The highest id of any file that exists or existed.
    pub(super) id_max: u32,
    pub(super) bytes: u64,
    pub(super) complete: bool,
}

impl PartitionExamination {
    pub(super) fn new(root: &StoreRoot, partition: u32, observe: &mut Observe<'_>) -> Result<Self, StorageError> {
        let dir = root.dir(partition);
        let fs = &*root.fs;
        let mut exam = Self {
            partition,
            kind: root.kind,
            ledger: LedgerExam::open(&root.ledger_dir(partition), root.kind == StoreKind::Bitcask)?,
            note: LostNote::read(fs, &dir)?,
            inventory: compare(fs, &dir, &root.inventory_copies(partition))?,
            identity_is_damaged: identity_is_damaged(fs, &dir)?,
            covered_seq: index_must_have_seen::read_whole(fs, &dir)?,
            dir,
            files: BTreeMap::new(),
            versions: Versions::default(),
            damaged_commits: Vec::new(),
            missing_files: BTreeMap::new(),
            orphans: Vec::new(),
            known_losses: 0,
            id_max: 0,
            bytes: 0,
            complete: false,
        };
        let mut bytes = 0;
        let mut counted = |read| {
            bytes += read;
            observe(read)
        };
        exam.complete = exam.read_journal(root, &mut counted)? && exam.ledger.check(&mut counted)?;
        if exam.complete {
            exam.compare(root)?;
        }
        exam.bytes = bytes;
        Ok(exam)
    }

    /// Reads the data files. False if `observe` ends the examination.
    fn read_journal(&mut self, root: &StoreRoot, observe: &mut Observe<'_>) -> Result<bool, StorageError> {
        let fs = &*root.fs;
        let names = match fs.list(&self.dir) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(io_error("list", &self.dir, source)),
        };
        let noted = self.ledger.checkpoint.clone().unwrap_or_default();
        self.id_max = noted.next_id.saturating_sub(1);
        self.known_losses = noted.files.values().map(|file| u64::from(file.lost_ranges)).sum();
        let mut removed: Vec<(u32, u64)> = Vec::new();
        for name in names.iter().filter(|name| name.ends_with(COMMIT_SUFFIX)) {
            let path = self.dir.join(name);
            match read_commit(fs, &path)? {
                Some(files) => removed.extend(files),
                None => self.damaged_commits.push(name.clone()),
            }
        }
        let reader = FileReader { fs, dir: &self.dir, terms: &*root.terms };
        for (id, is_unsynced) in names.iter().filter_map(|name| parse_name(name)) {
            self.id_max = self.id_max.max(id);
            let promised = self.inventory.promised().and_then(|inventory| inventory.files.get(&id));
            let noted_of_file = Noted {
                salt: noted.files.get(&id).map(|file| file.salt),
                promised_length: promised.map_or(0, |file| file.length),
            };
            // Only the salt is read first, because files that a merge has removed must not be
            // examined.
            let is_removed =
                removed.iter().any(|(other, salt)| *other == id && reader.may_have_salt(id, is_unsynced, *salt));
            if is_removed {
                continue;
            }
            let Some(file) = reader.examine(id, is_unsynced, noted_of_file, &mut self.versions, observe)? else {
                return Ok(false);
            };
            self.known_losses += file.known_losses;
            self.files.insert(id, file);
        }
        // False if the ledger has seen more of the file than there is, or another file with this
        // id.
        let is_there = |id: &u32, noted: &FileState| {
            let file = self.files.get(id);
            file.is_some_and(|file| file.salt.is_none_or(|salt| salt == noted.salt) && file.length >= noted.length)
        };
        let is_missing =
            |id: &u32, noted: &FileState| !is_there(id, noted) && !removed.iter().any(|(other, _)| other == id);
        let in_use = noted.files.iter().filter(|(_, file)| file.is_in_use());
        let missing = in_use.filter(|(id, noted)| is_missing(id, noted)).map(|(id, _)| (*id, Vec::new()));
        self.missing_files = missing.collect();
        let is_there = |id: &u32| self.files.contains_key(id);
        let promised = self.inventory.missing.iter().filter_map(|item| match item.kind {
            MissingKind::FileMissing { id } | MissingKind::AnotherFile { id } => Some(id),
            _ => None,
        });
        let accepted = self.inventory.promised().map(|inventory| inventory.lost_files.clone()).unwrap_or_default();
        let accepted = accepted.into_iter().filter(|id| !is_there(id));
        for id in promised.chain(accepted) {
            self.missing_files.entry(id).or_default();
        }
        for id in names.iter().filter_map(|name| hint_id(name)) {
            let is_removed = removed.iter().any(|(other, _)| *other == id);
            if is_removed || self.files.contains_key(&id) {
                continue;
            }
            self.id_max = self.id_max.max(id);
            self.orphans.push(id);
            let Some(missed) = self.missed_by_hint(&reader, id, &root.journal)? else { continue };
            for known in &missed {
                self.versions.add_lost(&known.key, LostVersion { seq: known.seq, file_id: id });
            }
            self.missing_files.insert(id, missed);
        }
        Ok(true)
    }

    /// The versions that are lost with a missing data file, according to its hint file. None if
    /// nothing is lost. Empty if the hint file is damaged.
    fn missed_by_hint(
        &self,
        reader: &FileReader<'_>,
        id: u32,
        journal: &JournalConfig,
    ) -> Result<Option<Vec<NamedVersion>>, StorageError> {
        // If the tree has the values, the journal only matters for later appends.
        let is_tree = self.kind == StoreKind::Leveldb;
        let seen_seq = if is_tree { self.seen_seq().max(self.covered_seq.unwrap_or(0)) } else { 0 };
        let mut missed = Vec::new();
        let is_whole = reader.for_each_hint(id, |entry| {
            let newest = self.versions.get(entry.key).good;
            let newest = newest.map(|good| Newest { seq: good.seq, is_tombstone: good.is_tombstone });
            if entry.seq > seen_seq && is_lost_version(&entry, newest, journal) {
                let (key, seq) = (Bytes::copy_from_slice(entry.key), entry.seq);
                missed.push(NamedVersion { key, seq, kind: entry.kind, tstamp_secs: entry.tstamp_secs });
            }
        })?;
        Ok((!is_whole || !missed.is_empty()).then_some(missed))
    }

    fn compare(&mut self, root: &StoreRoot) -> Result<(), StorageError> {
        let mut comparison = Comparison {
            versions: &mut self.versions,
            files: &mut self.files,
            terms: &*root.terms,
            journal: root.journal,
            has_values: self.kind == StoreKind::Leveldb,
        };
        match self.kind {
            StoreKind::Bitcask => comparison.order(&mut self.ledger),
            StoreKind::Leveled | StoreKind::Leveldb => comparison.ledger(&mut self.ledger),
        }
        self.name_keys(root)
    }

    /// Reads the keys of records that are missing in the ledger.
    fn name_keys(&mut self, root: &StoreRoot) -> Result<(), StorageError> {
        let reader = FileReader { fs: &*root.fs, dir: &self.dir, terms: &*root.terms };
        for found in self.ledger.disagreements.iter_mut().filter(|found| found.key.is_none()) {
            let Some((file_id, offset)) = found.record else { continue };
            let Some((file, salt)) = self.files.get(&file_id).and_then(|file| Some((file, file.salt?))) else {
                continue;
            };
            let open = reader.open(&file.path)?;
            let mut scanner = Scanner::new(&open, salt, u64::from(offset), file.length);
            if let Ok(Some(Scanned::Record { offset, header })) = scanner.next() {
                found.key = scanner.key(offset, &header).ok().map(Bytes::copy_from_slice);
            }
        }
        Ok(())
    }

    /// The `seq` up to which the ledger had seen the journal.
    pub(super) fn seen_seq(&self) -> u64 {
        self.ledger.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.seq)
    }

    /// Whether a tree that has the values is older than the journal files that were removed.
    pub(super) fn ledger_is_behind(&self) -> bool {
        self.kind == StoreKind::Leveldb && self.seen_seq() < self.covered_seq.unwrap_or(0)
    }

    /// Whether anything must be repaired.
    pub(super) fn is_damaged(&self) -> bool {
        self.files.values().any(|file| file.is_damaged() || file.hint_is_wrong())
            || !self.damaged_commits.is_empty()
            || !self.missing_files.is_empty()
            || !self.inventory.missing.is_empty()
            || self.inventory.store == CopyState::Damaged
            || self.inventory.node == CopyState::Damaged
            || self.short_files().next().is_some()
            || self.ledger.is_damaged()
            || self.note.is_damaged()
            || self.identity_is_damaged
            || self.covered_seq.is_none()
            || self.ledger_is_behind()
    }

    pub(super) fn report(&self) -> PartitionReport {
        let current = self.versions.iter().filter(|state| state.current().is_some()).count();
        let mut report = PartitionReport {
            partition: self.partition,
            complete: self.complete,
            bytes: self.bytes,
            records: self.files.values().map(|file| file.records).sum(),
            // The tree of a leveldb store also has the versions whose journal files were removed.
            keys: if self.kind == StoreKind::Leveldb { self.ledger.keys } else { current as u64 },
            noted_losses: self.note.count() + self.known_losses,
            torn_bytes: self.files.values().map(|file| file.torn_bytes).sum(),
            ..PartitionReport::default()
        };
        self.for_each_finding(&mut |finding| report.add(finding));
        // Adds the disagreements that were only counted.
        report.damaged += self.ledger.disagreed - self.ledger.disagreements.len() as u64;
        report
    }

    /// Visits every finding.
    pub(super) fn for_each_finding(&self, visit: &mut dyn FnMut(Finding)) {
        self.files.values().for_each(|file| self.findings_of_file(file, visit));
        for name in &self.damaged_commits {
            visit(self.finding(self.dir.join(name), 0, 0, Damage::Commit, Effect::Stale));
        }
        self.findings_of_inventory(visit);
        let is_refused = !self.inventory.missing.is_empty();
        for (id, missed) in &self.missing_files {
            let effect = if is_refused { Effect::DoesNotOpen } else { Effect::NotFound };
            let finding = self.finding(data_path(&self.dir, *id), 0, 0, Damage::MissingFile, effect);
            for known in missed {
                // Whether an older version of the key is visible instead.
                let older = self.versions.get(&known.key).good.is_some_and(|good| !good.is_tombstone);
                let effect = match self.kind {
                    _ if is_refused => Effect::DoesNotOpen,
                    // The hint file stays and keeps the lost version in the index.
                    StoreKind::Bitcask | StoreKind::Leveled if known.kind == Kind::Put => Effect::Fails,
                    StoreKind::Bitcask | StoreKind::Leveled => Effect::Nothing,
                    StoreKind::Leveldb if older || known.kind == Kind::Tombstone => Effect::Stale,
                    StoreKind::Leveldb => Effect::NotFound,
                };
                visit(Finding { key: Some(known.key.clone()), effect, ..finding.clone() });
            }
            if missed.is_empty() {
                visit(finding);
            }
        }
        if self.note.is_damaged() {
            visit(self.finding(LostNote::path(&self.dir), 0, 0, Damage::LostNote, Effect::Nothing));
        }
        if self.identity_is_damaged {
            // The next start draws a new identity.
            visit(self.finding(identity_path(&self.dir), 0, 0, Damage::Identity, Effect::Nothing));
        }
        if self.covered_seq.is_none() {
            visit(self.finding(
                index_must_have_seen::path_in(&self.dir),
                0,
                0,
                Damage::IndexMustHaveSeen,
                Effect::Nothing,
            ));
        }
        // If the tree is damaged, that explains it.
        if self.ledger_is_behind() && !self.ledger.is_damaged() {
            visit(self.finding(self.ledger.dir.clone(), 0, 0, Damage::LedgerBehind, Effect::DoesNotOpen));
        }
        self.findings_of_ledger(visit);
    }

    /// Files whose missing end the operator has accepted.
    fn short_files(&self) -> impl Iterator<Item = &FileExam> {
        let accepted = self.inventory.promised().into_iter().flat_map(|inventory| &inventory.lost_files);
        accepted.filter_map(|id| self.files.get(id))
    }

    fn findings_of_inventory(&self, visit: &mut dyn FnMut(Finding)) {
        for item in &self.inventory.missing {
            let (damage, offset, length) = match item.kind {
                // These are reported with the keys that were in the file.
                MissingKind::FileMissing { .. } | MissingKind::AnotherFile { .. } => continue,
                MissingKind::FileShortened { length, promised, .. } => (Damage::ShortFile, length, promised - length),
                MissingKind::InventoryDamaged => (Damage::Inventory, 0, 0),
                MissingKind::SmallFileMissing { .. } => (Damage::MissingSmallFile, 0, 0),
                MissingKind::StoreGone | MissingKind::AnotherStore | MissingKind::OlderStore { .. } => {
                    (Damage::Store, 0, 0)
                }
            };
            visit(self.finding(item.path.clone(), offset, length, damage, Effect::DoesNotOpen));
        }
        let is_refused = !self.inventory.missing.is_empty();
        if !is_refused && (self.inventory.store == CopyState::Damaged || self.inventory.node == CopyState::Damaged) {
            // The next start rewrites it from the other copy.
            let file = self.dir.join(RECORD_NAME);
            visit(self.finding(file, 0, 0, Damage::Inventory, Effect::Nothing));
        }
        for file in self.short_files() {
            // Keys that are known to be lost are reported with their damaged ranges.
            visit(self.finding(file.path.clone(), file.length, 0, Damage::ShortFile, Effect::NotFound));
        }
    }

    fn finding(&self, file: PathBuf, offset: u64, length: u64, damage: Damage, effect: Effect) -> Finding {
        Finding { partition: self.partition, file, offset, length, damage, key: None, effect }
    }

    fn findings_of_file(&self, file: &FileExam, visit: &mut dyn FnMut(Finding)) {
        if file.header_is_damaged && !file.is_unsynced {
            let length = FILE_HEADER_BYTES as u64;
            visit(self.finding(file.path.clone(), 0, length, Damage::Header, Effect::NotFound));
        }
        for damaged in &file.damaged {
            let damage = if damaged.is_body { Damage::Body } else { Damage::Record };
            let at = |effect| self.finding(file.path.clone(), damaged.offset, damaged.length, damage, effect);
            if damaged.known.is_empty() {
                visit(at(Effect::NotFound));
            }
            for known in &damaged.known {
                visit(Finding { key: Some(known.key.clone()), ..at(self.effect(file, known)) });
            }
        }
        let hint_damage = match file.hint {
            HintState::Damaged => Damage::Hint,
            HintState::Disagrees => Damage::HintDisagrees,
            HintState::Missing | HintState::Whole => return,
        };
        let is_believed = self.kind == StoreKind::Bitcask && file.hint == HintState::Disagrees;
        let effect = if is_believed { Effect::Fails } else { Effect::Nothing };
        visit(self.finding(hint_path(&self.dir, file.id), 0, 0, hint_damage, effect));
    }

    /// How reads of a version that cannot be read are affected.
    fn effect(&self, file: &FileExam, known: &NamedVersion) -> Effect {
        let newest_seq = self.versions.get(&known.key).good.map_or(0, |good| good.seq);
        let seen_seq = self.seen_seq();
        match self.kind {
            _ if newest_seq >= known.seq => Effect::Nothing,
            _ if known.kind == Kind::Tombstone => Effect::Stale,
            StoreKind::Leveldb if known.seq <= seen_seq => Effect::Nothing,
            StoreKind::Leveldb => Effect::NotFound,
            StoreKind::Bitcask if file.header_is_damaged => Effect::NotFound,
            StoreKind::Bitcask | StoreKind::Leveled => Effect::Fails,
        }
    }

    fn findings_of_ledger(&self, visit: &mut dyn FnMut(Finding)) {
        let ledger = &self.ledger;
        // The next start passes to the ledger what it has not seen. For that it reads the entries
        // that the ledger already has.
        let seen_seq = ledger.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.seq);
        let is_behind = self.versions.iter().filter_map(|state| state.good).any(|good| good.seq > seen_seq);
        let effect = match (self.kind, ledger.cannot_open) {
            (StoreKind::Leveldb, true) => Effect::DoesNotOpen,
            (StoreKind::Leveled | StoreKind::Leveldb, false) if is_behind => Effect::DoesNotOpen,
            (StoreKind::Bitcask | StoreKind::Leveled, true) => Effect::Nothing,
            (StoreKind::Bitcask, false) => Effect::Queries,
            (StoreKind::Leveled | StoreKind::Leveldb, false) => Effect::Fails,
        };
        for damage in &ledger.damage {
            visit(self.finding(damage.file.clone(), damage.offset, damage.length, Damage::Ledger, effect));
        }
        for found in &ledger.disagreements {
            let finding = self.finding(ledger.dir.clone(), 0, 0, Damage::LedgerDisagrees, found.effect);
            visit(Finding { key: found.key.clone(), ..finding });
        }
        if ledger.terms_disagree {
            visit(self.finding(ledger.dir.clone(), 0, 0, Damage::TermsDisagree, Effect::Queries));
        }
    }
}
