//! Reads data files and their hint files: which records are intact, and which damage is corruption
//! rather than a torn write.
//!
//! The rules are those of a start (`journal/recovery`), applied with more care. An intact hint file
//! says which records the data file had. So damage at an offset without a record in the hint file
//! is a torn write from before the file was closed.

use super::versions::{IntactRecord, LostVersion, Versions};
use super::zero_filling_file::ZeroFillingFile;
use crate::backend::{HeadTerms, ReadMode};
use crate::error::{StorageError, io_error};
use crate::fs::{File, FileSystem, OpenMode};
use crate::journal::format::{
    FILE_HEADER_BYTES, FileHeader, HeaderError, HintEntry, HintReader, Kind, RecordHeader, Scanned, Scanner,
    salt_of_hint,
};
use crate::journal::{data_path, decompress, has_appends, hint_path, parse_name, unsynced_path};
use crate::ledger::term_keys;
use bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The state of a data file's hint file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HintState {
    Missing,
    Damaged,
    Disagrees,
    Whole,
}

/// A version that some evidence still names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedVersion {
    pub(super) key: Bytes,
    pub(super) seq: u64,
    pub(super) kind: Kind,
    pub(super) tstamp_secs: u32,
}

/// A damaged range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damaged {
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Whether key and head are intact.
    pub(super) is_body: bool,
    /// The versions that lay there, as far as they are known.
    pub(super) known: Vec<NamedVersion>,
}

/// The examination of a data file.
#[derive(Debug)]
pub(super) struct FileExam {
    pub(super) id: u32,
    pub(super) path: PathBuf,
    pub(super) is_unsynced: bool,
    pub(super) length: u64,
    /// None: no record of the file can be verified.
    pub(super) salt: Option<u64>,
    pub(super) header_is_damaged: bool,
    pub(super) hint: HintState,
    /// The damaged ranges in the order of offsets.
    pub(super) damaged: Vec<Damaged>,
    pub(super) torn_bytes: u64,
    pub(super) records: u64,
    /// Losses that the hint file records, and that are not among the damaged ranges.
    pub(super) known_losses: u64,
}

impl FileExam {
    /// The damaged range that contains an offset.
    pub(super) fn damaged_at(&mut self, offset: u64) -> Option<&mut Damaged> {
        let place = self.damaged.partition_point(|damaged| damaged.offset + damaged.length <= offset);
        self.damaged.get_mut(place).filter(|damaged| damaged.offset <= offset)
    }

    /// Whether the hint file must be rewritten.
    pub(super) fn hint_is_wrong(&self) -> bool {
        matches!(self.hint, HintState::Damaged | HintState::Disagrees)
    }

    /// Whether the data file must be rewritten.
    pub(super) fn is_damaged(&self) -> bool {
        !self.damaged.is_empty() || (self.header_is_damaged && !self.is_unsynced)
    }
}

/// What is noted elsewhere about a data file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noted {
    /// The salt, if a ledger knows the file.
    pub(super) salt: Option<u64>,
    /// The length that the inventory promises; 0: none.
    pub(super) promised_length: u64,
}

/// A callback that gets the number of bytes that were read, and returns whether to go on.
pub(super) type Observe<'a> = dyn FnMut(u64) -> bool + 'a;

/// Reads the data files of one partition.
pub(super) struct FileReader<'a> {
    pub(super) fs: &'a dyn FileSystem,
    pub(super) dir: &'a Path,
    pub(super) terms: &'a dyn HeadTerms,
}

/// What a scan gathers besides the versions.
struct Scan {
    /// The sum of the hashes of all intact records.
    sum: u64,
    records: u64,
    /// The end of the last intact record.
    end: u64,
    synced_to: u64,
    damaged: Vec<Damaged>,
}

impl FileReader<'_> {
    /// Opens a file so that its readable parts can be read.
    pub(super) fn open(&self, path: &Path) -> Result<ZeroFillingFile, StorageError> {
        self.fs.open(path, OpenMode::Read).map(ZeroFillingFile).map_err(|source| io_error("open", path, source))
    }

    /// Examines a file and adds its versions. None if `observe` ends the examination.
    pub(super) fn examine(
        &self,
        id: u32,
        is_unsynced: bool,
        noted: Noted,
        versions: &mut Versions,
        observe: &mut Observe<'_>,
    ) -> Result<Option<FileExam>, StorageError> {
        let path = if is_unsynced { unsynced_path(self.dir, id) } else { data_path(self.dir, id) };
        let file = self.open(&path)?;
        let failed = |source: io::Error| io_error("read", &path, source);
        let length = file.length().map_err(failed)?;
        let hint = self.open_hint(id)?;
        let (salt, header_is_damaged) = self.salt(&path, &file, id, hint.as_ref(), noted.salt)?;
        let mut exam = FileExam {
            id,
            path: path.clone(),
            is_unsynced,
            length,
            salt,
            header_is_damaged,
            hint: if hint.is_some() { HintState::Damaged } else { HintState::Missing },
            damaged: Vec::new(),
            torn_bytes: 0,
            records: 0,
            known_losses: 0,
        };
        let Some(salt) = salt else {
            if is_unsynced {
                exam.torn_bytes = length;
            } else {
                exam.damaged.push(Damaged { offset: 0, length, is_body: false, known: Vec::new() });
            }
            return Ok(observe(length).then_some(exam));
        };
        let Some(scan) = self.scan(&exam, &file, salt, versions, observe).map_err(failed)? else { return Ok(None) };
        let reader = hint.map(|hint| HintReader::open(hint, id, salt)).transpose().map_err(failed)?.flatten();
        exam.records = scan.records;
        let end_is_in_doubt =
            exam.hint == HintState::Missing && scan.damaged.last().is_some_and(|last| last.offset >= scan.end);
        let end_was_synced = end_is_in_doubt && self.is_followed_by_appends(id)?;
        let synced_end = if end_was_synced { u64::MAX } else { noted.promised_length };
        exam.judge(scan, synced_end, reader).map_err(failed)?;
        for known in exam.damaged.iter().flat_map(|damaged| &damaged.known) {
            versions.add_lost(&known.key, LostVersion { seq: known.seq, file_id: id });
        }
        Ok(Some(exam))
    }

    /// Whether a later file shows that a file was synced as a whole; see `has_appends`.
    fn is_followed_by_appends(&self, id: u32) -> Result<bool, StorageError> {
        let names = self.fs.list(self.dir).map_err(|source| io_error("list", self.dir, source))?;
        let synced = names.iter().filter_map(|name| parse_name(name).filter(|(_, is_unsynced)| !is_unsynced));
        for (later, _) in synced.filter(|(later, _)| *later > id) {
            let path = data_path(self.dir, later);
            if has_appends(&self.open(&path)?, later).map_err(|source| io_error("read", &path, source))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a file has this salt, or its salt cannot be read.
    pub(super) fn may_have_salt(&self, id: u32, is_unsynced: bool, salt: u64) -> bool {
        let path = if is_unsynced { unsynced_path(self.dir, id) } else { data_path(self.dir, id) };
        self.salt_in_header(&path).is_none_or(|found| found == salt)
    }

    /// The salt in the header of a file; none if the header cannot be read.
    pub(super) fn salt_in_header(&self, path: &Path) -> Option<u64> {
        let file = self.open(path).ok()?;
        let mut bytes = [0; FILE_HEADER_BYTES];
        let read = file.read_at(&mut bytes, 0, ReadMode::Blocking).unwrap_or(0);
        FileHeader::decode(&bytes[..read]).map(|header| header.salt).ok()
    }

    /// Calls `visit` with each entry of a hint file, whose data file may be missing. False if the
    /// hint file is damaged.
    pub(super) fn for_each_hint(&self, id: u32, visit: impl FnMut(HintEntry<'_>)) -> Result<bool, StorageError> {
        let path = hint_path(self.dir, id);
        let failed = |source: io::Error| io_error("read", &path, source);
        let Some(hint) = self.open_hint(id)? else { return Ok(false) };
        match HintReader::open_alone(hint, id).map_err(failed)? {
            Some((_, reader)) => reader.for_each(visit).map_err(failed),
            None => Ok(false),
        }
    }

    fn open_hint(&self, id: u32) -> Result<Option<Arc<dyn File>>, StorageError> {
        let path = hint_path(self.dir, id);
        match self.fs.open(&path, OpenMode::Read) {
            Ok(file) => Ok(Some(Arc::new(ZeroFillingFile(file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(io_error("open", &path, source)),
        }
    }

    /// The salt of a file, and whether its header is damaged. The salt of a damaged header is taken
    /// from where it was noted.
    fn salt(
        &self,
        path: &Path,
        file: &dyn File,
        id: u32,
        hint: Option<&Arc<dyn File>>,
        noted: Option<u64>,
    ) -> Result<(Option<u64>, bool), StorageError> {
        let failed = |source: io::Error| io_error("read", path, source);
        let mut bytes = [0; FILE_HEADER_BYTES];
        let read = file.read_at(&mut bytes, 0, ReadMode::Blocking).map_err(failed)?;
        match FileHeader::decode(&bytes[..read]) {
            Ok(header) if header.file_id == id => return Ok((Some(header.salt), false)),
            Err(HeaderError::Version(version)) => return Err(StorageError::other_format(path, version)),
            _ => {}
        }
        let corrected = FileHeader::decode_corrected(&bytes[..read]).filter(|header| header.file_id == id);
        let of_hint = hint.map(|hint| salt_of_hint(&**hint, id)).transpose().map_err(failed)?.flatten();
        Ok((corrected.map(|header| header.salt).or(of_hint).or(noted), true))
    }

    fn scan(
        &self,
        exam: &FileExam,
        file: &dyn File,
        salt: u64,
        versions: &mut Versions,
        observe: &mut Observe<'_>,
    ) -> io::Result<Option<Scan>> {
        let start = FILE_HEADER_BYTES as u64;
        let mut scan = Scan { sum: 0, records: 0, end: start, synced_to: start, damaged: Vec::new() };
        let mut scanner = Scanner::new(file, salt, start, exam.length);
        while let Some(scanned) = scanner.next()? {
            let length = match scanned {
                Scanned::Damage { offset, length } => {
                    scan.damaged.push(Damaged { offset, length, is_body: false, known: Vec::new() });
                    length
                }
                Scanned::Record { offset, header } => {
                    self.take_record(exam.id, &mut scanner, offset, &header, &mut scan, versions)?;
                    header.total_len()
                }
            };
            if !observe(length) {
                return Ok(None);
            }
        }
        Ok(Some(scan))
    }

    fn take_record(
        &self,
        file_id: u32,
        scanner: &mut Scanner<'_>,
        offset: u64,
        header: &RecordHeader,
        scan: &mut Scan,
        versions: &mut Versions,
    ) -> io::Result<()> {
        scan.synced_to = scan.synced_to.max(u64::from(header.synced_to));
        let body_is_whole = scanner.body_matches(offset, header)?
            && decompress(header.coding, scanner.body(offset, header)?.into()).is_some();
        let key = scanner.key(offset, header)?.to_vec();
        let head = scanner.head(offset, header)?;
        if !body_is_whole {
            let known =
                NamedVersion { key: key.into(), seq: header.seq, kind: header.kind, tstamp_secs: header.tstamp_secs };
            let length = header.total_len();
            scan.damaged.push(Damaged { offset, length, is_body: true, known: vec![known] });
            return Ok(());
        }
        scan.records += 1;
        scan.sum = scan.sum.wrapping_add(entry_hash(&HintEntry::of(offset, header, &key)));
        scan.end = offset + header.total_len();
        let good = IntactRecord {
            seq: header.seq,
            digest: header.digest,
            head: xxh3_64(head),
            terms: if header.has_terms { terms_hash(&key, head, self.terms) } else { 0 },
            file_id,
            offset: offset as u32,
            size: header.total_len() as u32,
            tstamp_secs: header.tstamp_secs,
            expires_secs: header.expires_secs,
            is_tombstone: header.kind == Kind::Tombstone,
        };
        versions.add(&key, good);
        Ok(())
    }
}

impl FileExam {
    /// Separates corruption from torn writes, and learns from the hint file what lay in the damaged
    /// ranges.
    ///
    /// `synced_end` is the offset up to which other files say that the end of the file was synced.
    fn judge(&mut self, scan: Scan, synced_end: u64, hint: Option<HintReader>) -> io::Result<()> {
        let was_sealed = self.hint != HintState::Missing;
        let is_synced_end = |offset: u64| offset >= scan.end && offset < synced_end;
        let is_rot = |damaged: &Damaged| was_sealed || damaged.offset < scan.synced_to || is_synced_end(damaged.offset);
        let (rot, torn): (Vec<_>, Vec<_>) = scan.damaged.into_iter().partition(is_rot);
        self.torn_bytes = torn.iter().map(|damaged| damaged.length).sum();
        self.damaged = rot;
        let Some(hint) = hint else { return Ok(()) };
        let trailer = hint.trailer();
        if self.length < trailer.data_length {
            let length = trailer.data_length - self.length;
            self.damaged.push(Damaged { offset: self.length, length, is_body: false, known: Vec::new() });
        }
        let (mut sum, mut bodies_told, mut beyond, mut beyond_end) = (0u64, Vec::new(), Vec::new(), 0);
        let length = self.length;
        let whole = hint.for_each(|entry| match self.damaged_at(u64::from(entry.offset)) {
            // A start that accepted the loss of the file's end has kept in the hint file what was
            // known about it.
            None if u64::from(entry.offset) >= length => {
                beyond_end = beyond_end.max(u64::from(entry.offset) + 1);
                let (key, seq) = (Bytes::copy_from_slice(entry.key), entry.seq);
                beyond.push(NamedVersion { key, seq, kind: entry.kind, tstamp_secs: entry.tstamp_secs });
            }
            None => sum = sum.wrapping_add(entry_hash(&entry)),
            Some(damaged) if damaged.is_body => bodies_told.push(damaged.offset),
            Some(damaged) => {
                let (key, seq) = (Bytes::copy_from_slice(entry.key), entry.seq);
                damaged.known.push(NamedVersion { key, seq, kind: entry.kind, tstamp_secs: entry.tstamp_secs });
            }
        })?;
        if !beyond.is_empty() {
            self.damaged.push(Damaged { offset: length, length: beyond_end - length, is_body: false, known: beyond });
        }
        if !whole {
            return Ok(());
        }
        if trailer.lost_ranges == 0 {
            // Ranges that the hint file does not mention were no records when the file was closed.
            bodies_told.sort_unstable();
            self.damaged.retain(|damaged| match damaged.is_body {
                true => bodies_told.binary_search(&damaged.offset).is_ok(),
                false => !damaged.known.is_empty(),
            });
        }
        let told_here = self.damaged.iter().filter(|damaged| damaged.known.is_empty()).count() as u64;
        self.known_losses = u64::from(trailer.lost_ranges).saturating_sub(told_here);
        let agrees = sum == scan.sum && self.length <= trailer.data_length;
        self.hint = if agrees { HintState::Whole } else { HintState::Disagrees };
        Ok(())
    }
}

/// The sum of the hashes of the ledger keys of a head's index entries.
pub(super) fn terms_hash(key: &[u8], head: &[u8], terms: &dyn HeadTerms) -> u64 {
    term_keys(key, head, terms).iter().fold(0, |sum, term| sum.wrapping_add(xxh3_64(&term.bytes)))
}

fn entry_hash(entry: &HintEntry<'_>) -> u64 {
    let mut hasher = Xxh3Default::new();
    let numbers = [entry.offset, entry.head_len, entry.body_len, entry.tstamp_secs, entry.expires_secs];
    numbers.iter().for_each(|number| hasher.update(&number.to_le_bytes()));
    hasher.update(&[entry.kind.code(), u8::from(entry.has_terms)]);
    [entry.seq, entry.digest].iter().for_each(|number| hasher.update(&number.to_le_bytes()));
    hasher.update(entry.key);
    hasher.digest()
}
