//! The file of dropped copies: what exchanges have removed because all other primaries lacked it.
//!
//! A copy is in the file, synced, before it leaves its store. The file is for people: nothing of it
//! is read again by itself. When it is half full, it becomes the older one of two, and the oldest
//! copies go with the one before.
//!
//! ```text
//! file    = magic 8 bytes, copies
//! copy    = u32 length of what follows the checksum, u64 checksum (FNV-1a) of it, then
//!           u32 partition, u32 n, u64 seq, u64 dropped at (microseconds), u32 stored secs (0: not known),
//!           u32 length, key, u32 length, head, body: all that is left
//! ```
//!
//! All numbers are little-endian. A copy that was cut short by a loss of power ends the file. A
//! place that does not read as a copy hides nothing of what follows it: the next whole copy is
//! searched.

use bytes::Bytes;
use ombak_kv::ClassId;
use ombak_storage::fs::{File, FileSystem, OpenMode, read_file};
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE_NAME: &str = "dropped-copies";
const OLDER_FILE_NAME: &str = "dropped-copies.older";
const MAGIC: &[u8; 8] = b"OMBAKDC1";
/// Maximum length of both files together. One copy may be longer.
const BYTES_MAX: u64 = 64 << 20;
/// The longest file that is read: half of the maximum, and one copy of any size.
const READ_MAX: u64 = 1 << 30;
const HEADER: usize = 12;

/// A copy that was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedCopy {
    /// Its class.
    pub class: ClassId,
    /// Its seq in the store.
    pub seq: u64,
    /// When it was dropped.
    pub dropped_at: UnixMicros,
    /// Unix seconds of the write, if they are known.
    pub stored_secs: Option<u32>,
    /// The storage key.
    pub key: Bytes,
    /// Clock and metadata, as they were stored.
    pub head: Bytes,
    /// The values, as they were stored.
    pub body: Bytes,
}

/// The two files of a node.
pub(super) struct DroppedCopies {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    bytes_max: u64,
    /// The newer file and its length, once something was dropped.
    open: Mutex<Option<(Arc<dyn File>, u64)>>,
}

impl DroppedCopies {
    pub(super) fn new(fs: Arc<dyn FileSystem>, dir: PathBuf) -> Self {
        Self { fs, dir, bytes_max: BYTES_MAX, open: Mutex::new(None) }
    }

    /// Adds a copy. It is durable when this returns. Blocks.
    pub(super) fn append(&self, copy: &DroppedCopy) -> io::Result<()> {
        let record = encode(copy)?;
        let mut open = self.open.lock();
        let (file, at) = match open.take() {
            Some((file, length)) if length < self.bytes_max / 2 => (file, length),
            Some(_) => self.begin_anew()?,
            None => self.find()?,
        };
        file.write_at(&record, at)?;
        file.sync_data()?;
        *open = Some((file, at + record.len() as u64));
        Ok(())
    }

    /// All copies of both files, the oldest first. Blocks.
    pub(super) fn list(&self) -> io::Result<Vec<DroppedCopy>> {
        let mut copies = self.read(OLDER_FILE_NAME)?;
        copies.extend(self.read(FILE_NAME)?);
        Ok(copies)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The newer file, and where its whole copies end.
    fn find(&self) -> io::Result<(Arc<dyn File>, u64)> {
        let path = self.path(FILE_NAME);
        if self.fs.open(&path, OpenMode::Read).is_err() {
            return self.create(&path);
        }
        let bytes = read_file(&*self.fs, &path, READ_MAX)?;
        let length = decode(&bytes).1;
        if length == 0 && bytes.len() <= MAGIC.len() {
            // A loss of power came while the file was made. It has no copy, and must not push the
            // older file out.
            return self.begin(self.fs.open(&path, OpenMode::Write)?);
        }
        if length == 0 || length as u64 >= self.bytes_max / 2 {
            return self.begin_anew();
        }
        let file = self.fs.open(&path, OpenMode::Write)?;
        file.truncate(length as u64)?;
        Ok((file, length as u64))
    }

    fn begin_anew(&self) -> io::Result<(Arc<dyn File>, u64)> {
        let path = self.path(FILE_NAME);
        self.fs.rename(&path, &self.path(OLDER_FILE_NAME))?;
        self.create(&path)
    }

    fn create(&self, path: &Path) -> io::Result<(Arc<dyn File>, u64)> {
        self.begin(self.fs.open(path, OpenMode::CreateNew)?)
    }

    /// Begins a file that has no copy. Its beginning is durable before the first copy is written.
    fn begin(&self, file: Arc<dyn File>) -> io::Result<(Arc<dyn File>, u64)> {
        file.write_at(MAGIC, 0)?;
        file.sync_data()?;
        self.fs.sync_dir(&self.dir)?;
        Ok((file, MAGIC.len() as u64))
    }

    fn read(&self, name: &str) -> io::Result<Vec<DroppedCopy>> {
        match read_file(&*self.fs, &self.path(name), READ_MAX) {
            Ok(bytes) => Ok(decode(&bytes).0),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    }
}

/// FNV-1a with 64 bits: it is for accidents.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn length_of(bytes: &[u8]) -> io::Result<[u8; 4]> {
    let length = u32::try_from(bytes.len());
    length.map(u32::to_le_bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a copy is too long"))
}

fn encode(copy: &DroppedCopy) -> io::Result<Vec<u8>> {
    let DroppedCopy { class, seq, dropped_at, stored_secs, key, head, body } = copy;
    let content = [
        &class.partition.to_le_bytes()[..],
        &class.n.to_le_bytes(),
        &seq.to_le_bytes(),
        &dropped_at.0.to_le_bytes(),
        &stored_secs.unwrap_or_default().to_le_bytes(),
        &length_of(key)?,
        key,
        &length_of(head)?,
        head,
        body,
    ]
    .concat();
    Ok([&length_of(&content)?[..], &checksum(&content).to_le_bytes(), &content].concat())
}

/// The whole copies of a file, and where they end; 0 if it is no such file.
fn decode(bytes: &[u8]) -> (Vec<DroppedCopy>, usize) {
    let mut copies = Vec::new();
    let (mut at, mut end) = (MAGIC.len(), 0);
    if bytes.starts_with(MAGIC) {
        end = at;
    }
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() > HEADER) {
        match decode_one(rest) {
            Some((copy, length)) => {
                copies.push(copy);
                at += length;
                end = at;
            }
            None => at += 1,
        }
    }
    (copies, end)
}

fn decode_one(bytes: &[u8]) -> Option<(DroppedCopy, usize)> {
    let (length, sum) = (number(bytes.get(..4)?) as usize, number(bytes.get(4..HEADER)?));
    let content = bytes.get(HEADER..)?.get(..length)?;
    // The lengths are cheaper than the checksum, and most other bytes have none that fit.
    let (key, rest) = part(content.get(28..)?)?;
    let (head, body) = part(rest)?;
    if checksum(content) != sum {
        return None;
    }
    let class = ClassId { partition: number(content.get(..4)?) as u32, n: number(content.get(4..8)?) as u32 };
    let (seq, dropped_at) = (number(content.get(8..16)?), UnixMicros(number(content.get(16..24)?)));
    let stored_secs = Some(number(content.get(24..28)?) as u32).filter(|secs| *secs > 0);
    let [key, head, body] = [key, head, body].map(Bytes::copy_from_slice);
    Some((DroppedCopy { class, seq, dropped_at, stored_secs, key, head, body }, HEADER + length))
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = number(bytes.get(..4)?) as usize;
    bytes.get(4..)?.split_at_checked(length)
}

/// A little-endian number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    fn copy(seq: u64, bytes: usize) -> DroppedCopy {
        DroppedCopy {
            class: ClassId { partition: 300, n: 3 },
            seq,
            dropped_at: UnixMicros(1_600_000_000_000_000),
            stored_secs: Some(1_600_000_000),
            key: "a key".into(),
            head: "a head".into(),
            body: vec![b'v'; bytes].into(),
        }
    }

    fn open(dir: &Path) -> DroppedCopies {
        DroppedCopies::new(Arc::new(RealFs), dir.to_owned())
    }

    #[test]
    fn copies_outlive_the_process_and_a_cut_end_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open(dir.path()).list().unwrap(), []);
        open(dir.path()).append(&copy(1, 5)).unwrap();
        let again = open(dir.path());
        again.append(&DroppedCopy { stored_secs: None, ..copy(2, 0) }).unwrap();
        let all = [copy(1, 5), DroppedCopy { stored_secs: None, ..copy(2, 0) }];
        assert_eq!(open(dir.path()).list().unwrap(), all);
        let path = dir.path().join(FILE_NAME);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(open(dir.path()).list().unwrap(), all[..1]);
        open(dir.path()).append(&copy(3, 1)).unwrap();
        assert_eq!(open(dir.path()).list().unwrap(), [copy(1, 5), copy(3, 1)]);
    }

    #[test]
    fn a_rotten_copy_hides_none_of_the_others() {
        let dir = tempfile::tempdir().unwrap();
        (1..4).for_each(|seq| open(dir.path()).append(&copy(seq, 5)).unwrap());
        let path = dir.path().join(FILE_NAME);
        let whole = std::fs::read(&path).unwrap();
        let seqs = || open(dir.path()).list().unwrap().iter().map(|copy| copy.seq).collect::<Vec<u64>>();
        let length = (whole.len() - MAGIC.len()) / 3;
        // Its length, its checksum, a length in it, and its end.
        for at in [0, 4, HEADER + 28, length - 1] {
            let mut bytes = whole.clone();
            bytes[MAGIC.len() + length + at] ^= 0x41;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(seqs(), [1, 3], "byte {at}");
            open(dir.path()).append(&copy(4, 5)).unwrap();
            assert_eq!(seqs(), [1, 3, 4], "byte {at}");
        }
        let mut bytes = whole;
        bytes[0] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(seqs(), [1, 2, 3], "the magic");
    }

    #[test]
    fn the_oldest_copies_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let dropped = DroppedCopies { bytes_max: 2_000, ..open(dir.path()) };
        (0..5).for_each(|seq| dropped.append(&copy(seq, 600)).unwrap());
        let seqs: Vec<u64> = dropped.list().unwrap().iter().map(|copy| copy.seq).collect();
        assert_eq!(seqs, [2, 3, 4]);
    }

    #[test]
    fn a_file_that_was_not_made_to_its_end_pushes_no_copies_out() {
        let dir = tempfile::tempdir().unwrap();
        let dropped = DroppedCopies { bytes_max: 2_000, ..open(dir.path()) };
        (0..3).for_each(|seq| dropped.append(&copy(seq, 600)).unwrap());
        let seqs = || open(dir.path()).list().unwrap().iter().map(|copy| copy.seq).collect::<Vec<u64>>();
        assert_eq!(seqs(), [0, 1, 2]);
        for beginning in [&b""[..], b"OMB", &[0; 8], MAGIC] {
            std::fs::write(dir.path().join(FILE_NAME), beginning).unwrap();
            open(dir.path()).append(&copy(9, 1)).unwrap();
            assert_eq!(seqs(), [0, 1, 9], "{beginning:?}");
        }
    }

    #[test]
    fn the_file_has_the_bytes_of_version_2() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).append(&copy(7, 5)).unwrap();
        let path = dir.path().join(FILE_NAME);
        let written = std::fs::read(&path).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 2, FILE_NAME, &written);
        std::fs::write(&path, frozen).unwrap();
        assert_eq!(open(dir.path()).list().unwrap(), [copy(7, 5)]);
    }
}
