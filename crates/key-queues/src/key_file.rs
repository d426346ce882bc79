//! The file of the keys of a job.
//!
//! ```text
//! file    8 bytes "OMBKKEYS", u32 version (1), records
//! record  u32 length of the content, u32 CRC-32 of the content, content
//! content u32 length of the key, storage key, clock (`ombak_types::stored_object`)
//! ```
//!
//! All integers are little-endian. A file is written as a whole, and then only appended to: the
//! keys that could not be done yet are appended once more, so that those behind them have their
//! turn. When most of a file is done, the rest is copied to another one.
//!
//! Damage costs the records that it lies in, and no others: each record has a checksum, so the next
//! whole one behind it is found by looking at each byte.

use bytes::Bytes;
use ombak_storage::ReadMode;
use ombak_storage::fs::{File, FileSystem, OpenMode, is_media_error};
use ombak_types::VectorClock;
use ombak_types::stored_object::{decode_clock, encode_clock};
use std::io;
use std::path::Path;
use std::sync::Arc;

const BEGIN: &[u8; 8] = b"OMBKKEYS";
const VERSION: u32 = 1;
/// Where the first record is.
pub(crate) const FIRST_OFFSET: u64 = 12;
const RECORD_HEAD_BYTES: usize = 8;
/// No record is longer: a key, the name of its bucket and its clock have limits.
const CONTENT_BYTES_MAX: usize = 4 << 20;
/// The shortest content: the length of a key, and a clock without entries.
const CONTENT_BYTES_MIN: usize = 5;
/// How many bytes one look for a whole record passes over.
const LOOK_BYTES: u64 = 16 << 20;
/// How many bytes a look reads at once. A disk usually loses so many together.
const BLOCK_BYTES: u64 = 4096;
/// How many bytes are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// A key of a job: the storage key, and the clock that the fold has found.
pub(crate) type QueuedKey = (Bytes, VectorClock);

/// The keys of a page, and the offset behind each of them.
pub(crate) struct ReadPage {
    pub(crate) keys: Vec<QueuedKey>,
    pub(crate) next_offset: u64,
}

/// An open file of keys. All calls block.
pub(crate) struct KeyFile {
    file: Arc<dyn File>,
    /// What has been appended and not written.
    buffer: Vec<u8>,
    /// Where the buffer belongs.
    written_to: u64,
}

impl KeyFile {
    /// Creates a file without keys.
    pub(crate) fn create(fs: &dyn FileSystem, path: &Path) -> io::Result<Self> {
        let file = fs.open(path, OpenMode::CreateNew)?;
        let mut buffer = BEGIN.to_vec();
        buffer.extend_from_slice(&VERSION.to_le_bytes());
        Ok(Self { file, buffer, written_to: 0 })
    }

    /// Opens the file of a job, of which so many bytes count. Returns also what is damaged of it,
    /// if its keys can be read nevertheless.
    pub(crate) fn open(fs: &dyn FileSystem, path: &Path, bytes: u64) -> io::Result<(Self, Option<&'static str>)> {
        let file = fs.open(path, OpenMode::Write)?;
        let mut head = [0; FIRST_OFFSET as usize];
        let read = match file.read_at(&mut head, 0, ReadMode::Blocking) {
            Err(error) if is_media_error(&error) => 0,
            read => read?,
        };
        let (is_ours, is_version) = (&head[..8] == BEGIN, head[8..] == VERSION.to_le_bytes());
        if read == head.len() && is_ours && !is_version {
            let why = "another version of ombak has written its keys";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let length = file.length()?;
        let damage = match () {
            () if length < FIRST_OFFSET => return Err(damaged("it is no file of keys")),
            () if length < bytes => Some("its end is missing"),
            () if !is_ours || !is_version => Some("its head is damaged"),
            () => None,
        };
        let bytes = bytes.min(length);
        file.truncate(bytes)?;
        Ok((Self { file, buffer: Vec::new(), written_to: bytes }, damage))
    }

    /// Appends keys. They are on the disk after [`Self::sync`].
    pub(crate) fn append<'a>(&mut self, keys: impl IntoIterator<Item = &'a QueuedKey>) -> io::Result<()> {
        for (key, clock) in keys {
            let clock = encode_clock(clock);
            let content_bytes = 4 + key.len() + clock.len();
            if content_bytes > CONTENT_BYTES_MAX {
                return Err(damaged("a key has a clock that is too large"));
            }
            let mut content = Vec::with_capacity(content_bytes);
            content.extend_from_slice(&(key.len() as u32).to_le_bytes());
            content.extend_from_slice(key);
            content.extend_from_slice(&clock);
            self.buffer.extend_from_slice(&(content.len() as u32).to_le_bytes());
            self.buffer.extend_from_slice(&crc32fast::hash(&content).to_le_bytes());
            self.buffer.extend_from_slice(&content);
            if self.buffer.len() >= BUFFER_BYTES {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Makes everything durable that was appended.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.write()?;
        self.file.sync_data()
    }

    /// How many bytes it has, with those that are not durable yet.
    pub(crate) fn bytes(&self) -> u64 {
        self.written_to + self.buffer.len() as u64
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_at(&self.buffer, self.written_to)?;
        self.written_to += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Copies the keys from an offset on to a new file, and makes that durable.
    pub(crate) fn copy_from(&self, offset: u64, fs: &dyn FileSystem, path: &Path) -> io::Result<Self> {
        match fs.remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut copy = Self::create(fs, path)?;
        let (mut at, mut chunk) = (offset, vec![0; BUFFER_BYTES]);
        loop {
            copy.write()?;
            let read = self.file.read_at(&mut chunk, at, ReadMode::Blocking)?;
            if read == 0 {
                copy.sync()?;
                return Ok(copy);
            }
            copy.buffer.extend_from_slice(&chunk[..read]);
            at += read as u64;
        }
    }

    /// Reads the keys from an offset on, within two limits; at least one if there is one. Keys
    /// before a damaged record come without it. Fails with `InvalidData` if the first one is
    /// damaged: [`Self::next_whole`] finds where the keys go on.
    pub(crate) fn read(&self, offset: u64, keys_max: usize, bytes_max: usize) -> io::Result<ReadPage> {
        let mut page = ReadPage { keys: Vec::new(), next_offset: offset };
        let mut chunk = vec![0; bytes_max.max(RECORD_HEAD_BYTES)];
        let read = match self.file.read_at(&mut chunk, offset, ReadMode::Blocking) {
            // A shorter read may stop before the bytes that are lost.
            Err(error) if is_media_error(&error) && bytes_max > BLOCK_BYTES as usize => {
                return self.read(offset, keys_max, bytes_max / 16);
            }
            Err(error) if is_media_error(&error) => return Err(damaged("the disk does not give it back")),
            read => read?,
        };
        chunk.truncate(read);
        let mut rest = &chunk[..];
        while page.keys.len() < keys_max && !rest.is_empty() {
            let Some((length, crc)) = record_head(rest) else { break };
            if length > CONTENT_BYTES_MAX && page.keys.is_empty() {
                return Err(damaged("a record is too long"));
            }
            let whole = RECORD_HEAD_BYTES + length;
            let Some(content) = rest.get(RECORD_HEAD_BYTES..whole) else { break };
            match read_content(content, crc) {
                Ok(key) => page.keys.push(key),
                Err(error) if page.keys.is_empty() => return Err(error),
                Err(_) => break,
            }
            page.next_offset += whole as u64;
            rest = &rest[whole..];
        }
        if page.keys.is_empty() && read > 0 {
            return self.read_long_record(offset, &chunk);
        }
        Ok(page)
    }

    /// Reads the first record of a chunk that does not hold all of it.
    fn read_long_record(&self, offset: u64, chunk: &[u8]) -> io::Result<ReadPage> {
        let (length, crc) = record_head(chunk).ok_or_else(|| damaged("its end is missing"))?;
        let mut content = vec![0; length];
        let read = match self.file.read_at(&mut content, offset + RECORD_HEAD_BYTES as u64, ReadMode::Blocking) {
            Err(error) if is_media_error(&error) => return Err(damaged("the disk does not give it back")),
            read => read?,
        };
        if read < length {
            return Err(damaged("its end is missing"));
        }
        let next_offset = offset + (RECORD_HEAD_BYTES + length) as u64;
        Ok(ReadPage { keys: vec![read_content(&content, crc)?], next_offset })
    }

    /// Looks from a damaged record on for one that is whole. Returns its offset, that of the end,
    /// or how far the look came, which is further than `offset` unless the record there is whole
    /// after all.
    pub(crate) fn next_whole(&self, offset: u64) -> io::Result<u64> {
        let (mut at, stop) = (offset, offset.saturating_add(LOOK_BYTES).min(self.written_to));
        while at < stop {
            let block_end = (at / BLOCK_BYTES + 1) * BLOCK_BYTES;
            // The head of a record may lie in two blocks.
            let mut block = vec![0; (block_end - at) as usize + RECORD_HEAD_BYTES - 1];
            match self.file.read_at(&mut block, at, ReadMode::Blocking) {
                Ok(read) => block.truncate(read),
                Err(error) if is_media_error(&error) => block.clear(),
                Err(error) => return Err(error),
            }
            for place in 0..(block_end - at) as usize {
                let Some((length, _)) = block.get(place..).and_then(record_head) else { break };
                if (CONTENT_BYTES_MIN..=CONTENT_BYTES_MAX).contains(&length) {
                    let found = at + place as u64;
                    // Most lengths are no lengths, and the record would end behind the file.
                    let is_inside = found + (RECORD_HEAD_BYTES + length) as u64 <= self.written_to;
                    if is_inside && self.read_long_record(found, &block[place..]).is_ok() {
                        return Ok(found);
                    }
                }
            }
            at = block_end;
        }
        Ok(at.min(self.written_to))
    }
}

/// The length and the checksum of the first record.
fn record_head(bytes: &[u8]) -> Option<(usize, u32)> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    let crc = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    Some((length as usize, crc))
}

fn read_content(content: &[u8], crc: u32) -> io::Result<QueuedKey> {
    if crc32fast::hash(content) != crc {
        return Err(damaged("a record does not match its checksum"));
    }
    let key_bytes = content.get(..4).and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize));
    let key_bytes =
        key_bytes.filter(|bytes| content.len() - 4 >= *bytes).ok_or_else(|| damaged("a key is too long"))?;
    let (key, clock) = content[4..].split_at(key_bytes);
    let clock = decode_clock(clock).map_err(|_| damaged("a clock does not decode"))?;
    Ok((Bytes::copy_from_slice(key), clock))
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;
    use ombak_types::{Actor, Dot};

    fn keys(count: u64) -> Vec<QueuedKey> {
        let key = |number: u64| {
            let entry = Dot { actor: Actor::new(b"actor"), counter: number + 1, stamp_secs: 5 };
            (Bytes::from(format!("key {number}")), VectorClock::from_entries([entry]))
        };
        (0..count).map(key).collect()
    }

    fn read_all(file: &KeyFile, keys_max: usize, bytes_max: usize) -> io::Result<Vec<QueuedKey>> {
        let (mut all, mut offset) = (Vec::new(), FIRST_OFFSET);
        loop {
            let page = file.read(offset, keys_max, bytes_max)?;
            if page.keys.is_empty() {
                return Ok(all);
            }
            assert!(page.keys.len() <= keys_max);
            all.extend(page.keys);
            offset = page.next_offset;
        }
    }

    #[test]
    fn keys_come_back_in_pages_of_any_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.keys");
        let mut written = KeyFile::create(&RealFs, &path).unwrap();
        let mut expected = keys(100);
        expected.push((Bytes::from(vec![7; 60_000]), VectorClock::new()));
        written.append(&expected).unwrap();
        written.sync().unwrap();
        let (file, damage) = KeyFile::open(&RealFs, &path, written.bytes()).unwrap();
        assert_eq!(damage, None);
        for (keys_max, bytes_max) in [(1, 1), (7, 100), (1_000, 1 << 20), (3, 1 << 20), (1_000, 59)] {
            assert_eq!(read_all(&file, keys_max, bytes_max).unwrap(), expected, "{keys_max} {bytes_max}");
        }
    }

    #[test]
    fn what_was_not_made_durable_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.keys");
        let mut file = KeyFile::create(&RealFs, &path).unwrap();
        file.append(&keys(3)).unwrap();
        file.sync().unwrap();
        let bytes = file.bytes();
        file.append(&keys(1)).unwrap();
        file.sync().unwrap();
        let (mut file, _) = KeyFile::open(&RealFs, &path, bytes).unwrap();
        assert_eq!(read_all(&file, 10, 1_000).unwrap(), keys(3));
        file.append(&keys(2)).unwrap();
        file.sync().unwrap();
        assert_eq!(read_all(&file, 10, 1_000).unwrap().len(), 5);
    }

    /// What can be read of a damaged file, and whether the damage is told.
    fn read_around_damage(file: &KeyFile) -> io::Result<(Vec<QueuedKey>, bool)> {
        let (mut all, mut offset, mut is_told) = (Vec::new(), FIRST_OFFSET, false);
        loop {
            match file.read(offset, 10, 1_000) {
                Ok(page) if page.keys.is_empty() => return Ok((all, is_told)),
                Ok(page) => {
                    all.extend(page.keys);
                    offset = page.next_offset;
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let next = file.next_whole(offset)?;
                    assert!(next > offset, "a look gets on");
                    (offset, is_told) = (next, true);
                }
                Err(error) => return Err(error),
            }
        }
    }

    #[test]
    fn damage_costs_the_record_that_it_is_in_and_is_told_wherever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.keys");
        let mut file = KeyFile::create(&RealFs, &path).unwrap();
        file.append(&keys(3)).unwrap();
        file.sync().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let record_bytes = (whole.len() - FIRST_OFFSET as usize) / 3;
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x40;
            std::fs::write(&path, bytes).unwrap();
            let opened = KeyFile::open(&RealFs, &path, whole.len() as u64);
            // A version that is not known may be a later one: its keys stay.
            if (8..12).contains(&at) {
                assert_eq!(opened.map(drop).map_err(|error| error.kind()), Err(io::ErrorKind::Unsupported));
                continue;
            }
            let (file, damage) = opened.unwrap();
            let (read, is_told) = read_around_damage(&file).unwrap();
            let mut expected = keys(3);
            if let Some(in_records) = at.checked_sub(FIRST_OFFSET as usize) {
                expected.remove(in_records / record_bytes);
                assert!(is_told, "byte {at}");
            } else {
                assert_eq!(damage, Some("its head is damaged"), "byte {at}");
            }
            assert_eq!(read, expected, "byte {at}");
        }
    }

    #[test]
    fn the_keys_before_a_missing_end_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.keys");
        let mut file = KeyFile::create(&RealFs, &path).unwrap();
        file.append(&keys(3)).unwrap();
        file.sync().unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let (file, damage) = KeyFile::open(&RealFs, &path, whole.len() as u64).unwrap();
        assert_eq!(damage, Some("its end is missing"));
        assert_eq!(read_around_damage(&file).unwrap(), (keys(2), true));
        std::fs::write(&path, &whole[..5]).unwrap();
        assert!(KeyFile::open(&RealFs, &path, whole.len() as u64).is_err(), "nothing is left");
    }

    #[test]
    fn a_long_stretch_of_damage_is_passed_over_in_steps() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.keys");
        let mut file = KeyFile::create(&RealFs, &path).unwrap();
        file.append(&keys(1)).unwrap();
        file.sync().unwrap();
        let begin = std::fs::read(&path).unwrap();
        let record = begin[FIRST_OFFSET as usize..].to_vec();
        let damage = vec![0xA5; LOOK_BYTES as usize + 9_999];
        let bytes = [begin, damage, record].concat();
        std::fs::write(&path, &bytes).unwrap();
        let (file, _) = KeyFile::open(&RealFs, &path, bytes.len() as u64).unwrap();
        let again = [keys(1), keys(1)].concat();
        assert_eq!(read_around_damage(&file).unwrap(), (again, true));
    }
}
