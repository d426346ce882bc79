//! Reads the current records of a directory.

use super::Fault;
use super::latest::Latest;
use super::partition_dir::PartitionDir;
use super::record::Tombstone;
use super::scan::{Piece, Scan};
use bytes::Bytes;
use std::fs::File;

/// A position between two records at which reading can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The data file.
    pub file_id: u32,
    /// The bytes of the file that have been read.
    pub offset: u64,
}

/// The current value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The number of the data file.
    pub file_id: u32,
    /// The offset of the record in the file.
    pub offset: u64,
    /// Unix seconds of the write.
    pub tstamp_secs: u32,
    /// The key as it is stored; see [`super::key`].
    pub key: Bytes,
    /// The stored object.
    pub value: Bytes,
}

/// The result of one step of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The current value of a key.
    Version(Version),
    /// A part of a file that cannot be read.
    Fault(Fault),
}

/// Reads the current records of a directory in the order of the files.
pub struct Records<'a> {
    dir: &'a PartitionDir,
    latest: &'a Latest,
    /// The index of the file that is being read.
    place: usize,
    /// The offset at which to begin in it.
    begin: u64,
    scan: Option<Scan<File>>,
    cursor: Option<Cursor>,
}

impl<'a> Records<'a> {
    pub(super) fn new(dir: &'a PartitionDir, latest: &'a Latest, from: Option<Cursor>) -> Self {
        let place = from.map_or(0, |c| dir.files().partition_point(|f| f.id < c.file_id));
        let begin = from.filter(|c| dir.files().get(place).is_some_and(|f| f.id == c.file_id)).map_or(0, |c| c.offset);
        Self { dir, latest, place, begin, scan: None, cursor: from }
    }

    /// The position at which reading can continue later: after everything that [`Self::next_event`]
    /// has returned.
    pub fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// The bytes of the data files before the cursor.
    pub fn bytes_done(&self) -> u64 {
        let Some(cursor) = self.cursor else { return 0 };
        let before = self.dir.files().iter().filter(|f| f.id < cursor.file_id).map(|f| f.bytes).sum::<u64>();
        before + cursor.offset
    }

    /// The next event; `None` at the end.
    pub fn next_event(&mut self) -> Option<Event> {
        loop {
            let file = self.dir.files().get(self.place)?;
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => match File::open(&file.path) {
                    Ok(data) => self.scan.insert(Scan::new(data, file.bytes, self.begin)),
                    Err(_) => return Some(self.give_up_file("the operating system cannot open it")),
                },
            };
            match scan.next_piece() {
                Ok(Some(piece)) => {
                    if let Some(event) = self.take(piece) {
                        return Some(event);
                    }
                }
                Ok(None) => self.next_file(),
                Err(_) => return Some(self.give_up_file("the operating system cannot read from here on")),
            }
        }
    }

    fn take(&mut self, piece: Piece) -> Option<Event> {
        let file = self.dir.files().get(self.place)?;
        match piece {
            Piece::Damage { offset, bytes, what } => {
                self.cursor = Some(Cursor { file_id: file.id, offset: offset + bytes });
                Some(Event::Fault(Fault { file: file.path.clone(), offset, bytes, what }))
            }
            Piece::Record { offset, tstamp_secs, key, value } => {
                let bytes = super::record::HEADER_BYTES + key.len() + value.len();
                self.cursor = Some(Cursor { file_id: file.id, offset: offset + bytes as u64 });
                let place = u32::try_from(self.place).unwrap_or(u32::MAX);
                // A tombstone that is not marked comes from an old hint file, which does not
                // distinguish tombstones.
                let current = self.latest.is_current(&key, place, offset) && Tombstone::of(&value).is_none();
                current.then(|| Event::Version(Version { file_id: file.id, offset, tstamp_secs, key, value }))
            }
        }
    }

    fn next_file(&mut self) {
        self.place += 1;
        self.begin = 0;
        self.scan = None;
    }

    fn give_up_file(&mut self, what: &'static str) -> Event {
        let file = &self.dir.files()[self.place];
        let offset = self.cursor.filter(|c| c.file_id == file.id).map_or(0, |c| c.offset);
        self.cursor = Some(Cursor { file_id: file.id, offset: file.bytes });
        let bytes = file.bytes.saturating_sub(offset);
        let fault = Fault { file: file.path.clone(), offset, bytes, what };
        self.next_file();
        Event::Fault(fault)
    }
}
