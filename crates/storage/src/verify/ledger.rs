//! Reads ledgers and compares them with the journal.

use super::data_files::{FileExam, NamedVersion, Observe, terms_hash};
use super::report::{Effect, FINDINGS_KEPT};
use super::versions::{IntactRecord, LostVersion, Versions};
use crate::backend::HeadTerms;
use crate::bitcask::{ORDER_NOTE, places_of_entry};
use crate::error::{StorageError, io_error};
use crate::journal::format::Kind;
use crate::journal::{Checkpoint, JournalConfig, le_at};
use crate::ledger::{CHECKPOINT, LedgerEntry, NOTES, TreeDamage, TreeFiles, decode_entry, note, store_key};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The examination of a ledger or ordered index.
#[derive(Debug, Default)]
pub(super) struct LedgerExam {
    pub(super) dir: PathBuf,
    /// None: there is no ledger, or its list of tables is lost.
    pub(super) files: Option<TreeFiles>,
    /// The damage in its files.
    pub(super) damage: Vec<TreeDamage>,
    /// Whether it cannot be opened, or has no readable checkpoint.
    pub(super) cannot_open: bool,
    /// Whether it has its checkpoint, or needs none.
    has_checkpoint: bool,
    /// The checkpoint: how far it had seen the journal.
    pub(super) checkpoint: Option<Checkpoint>,
    /// For the ordered index of a bitcask store: the `seq` up to which it has seen the journal.
    pub(super) noted_seq: Option<u64>,
    /// The first entries that disagree with the journal.
    pub(super) disagreements: Vec<Disagreement>,
    pub(super) disagreed: u64,
    /// The number of keys that it has an entry for.
    pub(super) keys: u64,
    /// Whether its index entries are not those of its keys.
    pub(super) terms_disagree: bool,
}

/// An entry that disagrees with the journal.
#[derive(Debug)]
pub(super) struct Disagreement {
    pub(super) key: Option<Bytes>,
    /// File id and offset of a record with the key, if the key itself is not known yet.
    pub(super) record: Option<(u32, u32)>,
    pub(super) effect: Effect,
}

impl LedgerExam {
    /// Reads the list of tables and the notes.
    pub(super) fn open(dir: &Path, is_order: bool) -> Result<Self, StorageError> {
        let mut exam = Self { dir: dir.to_owned(), ..Self::default() };
        match TreeFiles::read(dir).map_err(|source| io_error("read", dir, source))? {
            Ok(None) => {}
            Ok(Some(files)) => {
                exam.checkpoint = files.get(&note(CHECKPOINT)).and_then(|bytes| Checkpoint::decode(&bytes));
                let noted = files.get(&note(ORDER_NOTE)).filter(|noted| noted.len() == 8);
                exam.noted_seq = noted.map(|noted| le_at!(u64, noted, 0));
                // An ordered index without the note was never complete, and is rebuilt.
                let has_checkpoint = exam.checkpoint.is_some() || files.bytes() == 0 || is_order;
                // A start reads all notes.
                let are_notes_whole = NOTES.iter().all(|name| files.can_look_up(&note(name)));
                exam.cannot_open = !files.can_be_opened() || !has_checkpoint || !are_notes_whole;
                exam.has_checkpoint = has_checkpoint;
                exam.files = Some(files);
            }
            Err(damage) => {
                exam.cannot_open = true;
                exam.damage.push(damage);
            }
        }
        Ok(exam)
    }

    /// Reads every byte of the files. False if `observe` ends the examination.
    pub(super) fn check(&mut self, observe: &mut Observe<'_>) -> Result<bool, StorageError> {
        let Some(files) = &self.files else { return Ok(true) };
        let mut goes_on = true;
        let mut told = |bytes| {
            goes_on = observe(bytes);
            goes_on
        };
        self.damage.extend(files.check(&mut told).map_err(|source| io_error("read", &self.dir, source))?);
        if goes_on && self.damage.is_empty() && !self.has_checkpoint {
            let what = "it has no checkpoint";
            self.damage.push(TreeDamage { file: self.dir.clone(), offset: 0, length: 0, what });
        }
        Ok(goes_on)
    }

    /// Whether anything is wrong with the ledger.
    pub(super) fn is_damaged(&self) -> bool {
        !self.damage.is_empty() || self.disagreed > 0 || self.terms_disagree
    }

    fn disagree(&mut self, key: Option<&[u8]>, record: Option<(u32, u32)>, effect: Effect) {
        self.disagreed += 1;
        if self.disagreements.len() < FINDINGS_KEPT {
            let key = key.map(Bytes::copy_from_slice);
            self.disagreements.push(Disagreement { key, record, effect });
        }
    }
}

/// Sums of the hashes of index entries: of those that there should be, and of those that there are.
#[derive(Default)]
struct TermSums {
    wanted: u64,
    found: u64,
}

/// The comparison of a ledger with its journal.
pub(super) struct Comparison<'a> {
    pub(super) versions: &'a mut Versions,
    pub(super) files: &'a mut BTreeMap<u32, FileExam>,
    pub(super) terms: &'a dyn HeadTerms,
    pub(super) journal: JournalConfig,
    /// Whether the ledger has the values, and the journal only what the ledger has not seen.
    pub(super) has_values: bool,
}

impl Comparison<'_> {
    /// Compares a ledger of keys, heads and positions.
    pub(super) fn ledger(&mut self, exam: &mut LedgerExam) {
        let Some(files) = exam.files.take() else { return };
        let seen_seq = exam.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.seq);
        let mut sums = TermSums::default();
        files.for_each(|place, value| match (place.first(), value) {
            (Some(b'i'), Some(_)) => sums.found = sums.found.wrapping_add(xxh3_64(place)),
            (Some(b'k'), Some(value)) => match decode_entry(&value) {
                Some(entry) if entry.entry.position.size == 0 => {}
                Some(entry) => {
                    exam.keys += 1;
                    self.entry(exam, place, &entry, seen_seq, &mut sums);
                }
                None => exam.disagree(store_key(place), None, Effect::Fails),
            },
            _ => {}
        });
        exam.terms_disagree = sums.wanted != sums.found;
        if !self.has_values && exam.checkpoint.is_some() {
            self.unseen(exam, seen_seq, Effect::NotFound);
        }
        exam.files = Some(files);
    }

    fn entry(&mut self, exam: &mut LedgerExam, place: &[u8], entry: &LedgerEntry, seen_seq: u64, sums: &mut TermSums) {
        let Some(key) = store_key(entry.whole_key.as_deref().unwrap_or(place)) else { return };
        if entry.entry.position.has_terms {
            sums.wanted = sums.wanted.wrapping_add(terms_hash(key, &entry.head, self.terms));
        }
        let state = self.versions.see(key);
        let newest_seq = state.good.map_or(0, |good| good.seq);
        if newest_seq > seen_seq {
            // The next start passes the newer version to the ledger.
            return;
        }
        if newest_seq > entry.entry.seq {
            return exam.disagree(Some(key), None, Effect::Stale);
        }
        if self.has_values || state.good.is_some_and(|good| self.is_same(entry, &good)) {
            return;
        }
        let is_known = state.lost.is_some_and(|lost| lost.seq == entry.entry.seq);
        if !is_known && !self.note_lost(key, entry) {
            exam.disagree(Some(key), None, Effect::Fails);
        }
    }

    /// Whether an entry describes an intact record.
    fn is_same(&self, entry: &LedgerEntry, good: &IntactRecord) -> bool {
        let position = entry.entry.position;
        let is_there = (position.file_id, position.offset, position.size) == (good.file_id, good.offset, good.size)
            // A copy of the version in another file that exists, because a merge was not finished.
            || position.file_id < good.file_id && self.files.get(&position.file_id).is_some_and(|file| !file.is_damaged());
        is_there
            && !good.is_tombstone
            && (entry.entry.seq, entry.entry.digest) == (good.seq, good.digest)
            && (entry.tstamp_secs, entry.wanted_expires_secs) == (good.tstamp_secs, good.expires_secs)
            && xxh3_64(&entry.head) == good.head
    }

    /// Uses an entry that points into a damaged range to learn what lay there.
    fn note_lost(&mut self, key: &[u8], entry: &LedgerEntry) -> bool {
        let position = entry.entry.position;
        let file = self.files.get_mut(&position.file_id);
        let Some(damaged) = file.and_then(|file| file.damaged_at(u64::from(position.offset))) else { return false };
        let (key, seq) = (Bytes::copy_from_slice(key), entry.entry.seq);
        self.versions.add_lost(&key, LostVersion { seq, file_id: position.file_id });
        damaged.known.push(NamedVersion { key, seq, kind: Kind::Put, tstamp_secs: entry.tstamp_secs });
        true
    }

    /// Reports keys of the journal that the index lacks although it had seen them.
    fn unseen(&self, exam: &mut LedgerExam, seen_seq: u64, effect: Effect) {
        let unseen = self.versions.iter().filter(|state| !state.is_seen).filter_map(|state| state.current());
        for good in unseen.filter(|good| good.seq <= seen_seq && !self.is_expired(good)) {
            exam.disagree(None, Some((good.file_id, good.offset)), effect);
        }
    }

    fn is_expired(&self, good: &IntactRecord) -> bool {
        self.journal.had_expired(good.tstamp_secs, good.expires_secs)
    }

    /// Compares the ordered index of a store whose main index is in memory.
    pub(super) fn order(&mut self, exam: &mut LedgerExam) {
        // An ordered index that was not complete when it was written is rebuilt.
        let (Some(files), Some(noted_seq)) = (exam.files.take(), exam.noted_seq) else { return };
        let mut sums = TermSums::default();
        files.for_each(|place, value| match (place.first(), value) {
            (Some(b'i'), Some(_)) => sums.found = sums.found.wrapping_add(xxh3_64(place)),
            (Some(b'k'), Some(value)) => {
                let (whole, terms) = places_of_entry(place, &value);
                let terms = terms.iter().fold(0u64, |sum, term| sum.wrapping_add(xxh3_64(&term.bytes)));
                sums.wanted = sums.wanted.wrapping_add(terms);
                let Some(key) = store_key(whole.as_deref().unwrap_or(place)) else { return };
                let state = self.versions.see(key);
                let is_behind = state.good.is_some_and(|good| good.seq > noted_seq);
                let agrees = match state.current() {
                    // A start that brings the ordered index up to date does not read expired
                    // versions.
                    Some(good) => good.terms == terms || self.is_expired(good),
                    // A superfluous entry without index terms has no effect, because the index in
                    // memory does not have the key.
                    None => state.is_lost() || terms == 0,
                };
                if !is_behind && !agrees {
                    exam.disagree(Some(key), None, Effect::Queries);
                }
            }
            _ => {}
        });
        exam.terms_disagree = sums.wanted != sums.found;
        self.unseen(exam, noted_seq, Effect::Queries);
        exam.files = Some(files);
    }
}
