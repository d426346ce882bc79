//! The files of a tree on disk, read without opening the tree. Opening it would remove the files
//! that the library does not know.
//!
//! What it is: the list of the tree's tables, with its checksum; a check of every byte of every
//! table; and a reader for the readable rest of a damaged tree.
//!
//! What it is not: it writes nothing, and does not know what keys and values mean.

use super::format::{CURRENT_BYTES, TableFile, damaged_blocks, decode_current, decode_list, has_contents};
use crate::journal::IndexDamage;
use bytes::Bytes;
use lsm_tree::table::Scanner;
use lsm_tree::{Cache, Checksum, CompressionType, InternalValue, Table};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

pub(super) const CURRENT_FILE: &str = "current";
pub(super) const TABLES_DIR: &str = "tables";
/// Longer than any list of tables.
const LIST_BYTES_MAX: u64 = 64 << 20;
const CHUNK_BYTES: usize = 256 << 10;
const CACHE_BYTES: u64 = 4 << 20;

/// A part of a tree that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeDamage {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) what: &'static str,
}

impl From<TreeDamage> for IndexDamage {
    fn from(TreeDamage { file, offset, length, what }: TreeDamage) -> Self {
        Self { file, offset, length, what }
    }
}

/// The tables that belong to a tree.
#[derive(Debug)]
pub(crate) struct TreeFiles {
    dir: PathBuf,
    runs: Vec<Vec<TableFile>>,
}

impl TreeFiles {
    /// Reads the list of tables. None if there is no tree.
    pub(crate) fn read(dir: &Path) -> io::Result<Result<Option<Self>, TreeDamage>> {
        let current = dir.join(CURRENT_FILE);
        let bytes = match std::fs::read(&current) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let damage = TreeDamage { file: current, offset: 0, length: 0, what: "the list of tables is missing" };
                return Ok(if table_names(dir)?.is_empty() { Ok(None) } else { Err(damage) });
            }
            Err(error) => return Err(error),
        };
        let damaged =
            |file: PathBuf, length: usize, what| Err(TreeDamage { file, offset: 0, length: length as u64, what });
        let Some((version, checksum)) = decode_current(&bytes) else {
            return Ok(damaged(current, bytes.len(), "not the name of a list of tables"));
        };
        let path = dir.join(format!("v{version}"));
        let list = match File::open(&path).and_then(|file| read_at_most(file, LIST_BYTES_MAX)) {
            Ok(list) => list,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(damaged(current, CURRENT_BYTES, "the list of tables that it names is missing"));
            }
            Err(error) => return Err(error),
        };
        if xxh3_128(&list) != checksum {
            return Ok(damaged(path, list.len(), "the checksum of the list of tables is wrong"));
        }
        Ok(match decode_list(&list) {
            Some(runs) => Ok(Some(Self { dir: dir.to_owned(), runs })),
            None => damaged(path, list.len(), "not a list of tables"),
        })
    }

    /// Checks the table of contents at the end of each table, because the library uses it before it
    /// checks a checksum.
    pub(crate) fn check_contents(&self) -> io::Result<Result<(), TreeDamage>> {
        for table in self.runs.iter().flatten() {
            let file = self.path(table);
            let what = match File::open(&file).and_then(|open| has_contents(&open)) {
                Ok(true) => continue,
                Ok(false) => "its table of contents is wrong",
                Err(error) if error.kind() == io::ErrorKind::NotFound => "the table is missing",
                Err(error) => return Err(error),
            };
            return Ok(Err(TreeDamage { file, offset: 0, length: 0, what }));
        }
        Ok(Ok(()))
    }

    /// All tables in the directory, whether they belong to the tree or not: for a tree whose list
    /// is lost.
    pub(crate) fn without_list(dir: &Path) -> io::Result<Self> {
        let ids = table_names(dir)?;
        let table = |id: u64| vec![TableFile { id, checksum: 0, seqno_base: 0 }];
        Ok(Self { dir: dir.to_owned(), runs: ids.into_iter().map(table).collect() })
    }

    /// Total size of all tables in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let length = |table: &TableFile| std::fs::metadata(self.path(table)).map_or(0, |meta| meta.len());
        self.runs.iter().flatten().map(length).sum()
    }

    /// Reads every byte of every table. `observe` gets the number of bytes read, and returns
    /// whether to go on.
    pub(crate) fn check(&self, observe: &mut dyn FnMut(u64) -> bool) -> io::Result<Vec<TreeDamage>> {
        let mut damage = Vec::new();
        for table in self.runs.iter().flatten() {
            let path = self.path(table);
            let whole = |what| TreeDamage { file: path.clone(), offset: 0, length: 0, what };
            match checksum_of(&path, observe) {
                Ok(Some(checksum)) if checksum == table.checksum => {}
                Ok(Some(_)) => damage.extend(damaged_blocks(&path)?),
                Ok(None) => return Ok(damage),
                Err(error) if error.kind() == io::ErrorKind::NotFound => damage.push(whole("the table is missing")),
                Err(_) => damage.push(whole("the disk gives an error")),
            }
        }
        Ok(damage)
    }

    /// The damaged parts of a table that does not match its checksum.
    pub(crate) fn damaged_parts(path: &Path) -> io::Result<Vec<IndexDamage>> {
        Ok(damaged_blocks(path)?.into_iter().map(IndexDamage::from).collect())
    }

    /// Whether the library can open every table, with the filters and indexes that it reads for
    /// that.
    pub(crate) fn can_be_opened(&self) -> bool {
        let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
        matches!(self.check_contents(), Ok(Ok(())))
            && self.runs.iter().flatten().all(|table| self.open_with(table, &cache, true).is_some())
    }

    /// The newest value of a key in the readable parts.
    pub(crate) fn get(&self, key: &Bytes) -> Option<Bytes> {
        let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
        let key = lsm_tree::Slice::from(key.clone());
        let mut newest: Option<InternalValue> = None;
        for table in self.runs.iter().flatten() {
            let Some(open) = self.open(table, &cache) else { continue };
            // A damaged block index gives errors forever, so the first error ends the loop.
            for item in open.range(key.clone()..=key.clone()).map_while(Result::ok) {
                if newest.as_ref().is_none_or(|newest| newest.key.seqno < item.key.seqno) {
                    newest = Some(item);
                }
            }
        }
        newest.filter(|item| item.key.value_type == lsm_tree::ValueType::Value).map(|item| Bytes::from(item.value))
    }

    /// Whether the library can look up a key without reading damage.
    pub(crate) fn can_look_up(&self, key: &Bytes) -> bool {
        let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
        let key = lsm_tree::Slice::from(key.clone());
        let can_look_up = |open: Table| open.range(key.clone()..=key.clone()).all(|item| item.is_ok());
        self.runs.iter().flatten().all(|table| self.open(table, &cache).is_some_and(can_look_up))
    }

    /// Visits the readable entries in the order of keys: the newest entry of each key, and none for
    /// a removed key.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&[u8], Option<Bytes>)) {
        let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
        let mut streams: Vec<Box<dyn Iterator<Item = InternalValue> + '_>> = Vec::new();
        for run in &self.runs {
            let cache = cache.clone();
            streams.push(Box::new(run.iter().flat_map(move |table| self.items(table, &cache))));
        }
        // Tables with a damaged block index are also read from their beginning.
        let damaged = self.runs.iter().flatten().filter(|table| !self.is_readable(table, &cache));
        streams.extend(damaged.map(|table| Box::new(self.scanned(table)) as Box<dyn Iterator<Item = _>>));
        let mut heap: BinaryHeap<Head> = BinaryHeap::with_capacity(streams.len());
        for (stream, items) in streams.iter_mut().enumerate() {
            heap.extend(items.next().map(|item| Head { item, stream }));
        }
        let mut last: Option<lsm_tree::UserKey> = None;
        while let Some(Head { item, stream }) = heap.pop() {
            heap.extend(streams.get_mut(stream).and_then(Iterator::next).map(|item| Head { item, stream }));
            if last.as_ref() == Some(&item.key.user_key) {
                continue;
            }
            let is_there = item.key.value_type == lsm_tree::ValueType::Value;
            visit(&item.key.user_key, is_there.then(|| Bytes::from(item.value)));
            last = Some(item.key.user_key);
        }
    }

    fn path(&self, table: &TableFile) -> PathBuf {
        self.dir.join(TABLES_DIR).join(table.id.to_string())
    }

    fn open(&self, table: &TableFile, cache: &Arc<Cache>) -> Option<Table> {
        self.open_with(table, cache, false)
    }

    fn open_with(&self, table: &TableFile, cache: &Arc<Cache>, reads_filter: bool) -> Option<Table> {
        let (path, checksum) = (self.path(table), Checksum::from_raw(table.checksum));
        Table::recover(path, checksum, table.seqno_base, 0, cache.clone(), None, reads_filter, reads_filter).ok()
    }

    fn is_readable(&self, table: &TableFile, cache: &Arc<Cache>) -> bool {
        self.open(table, cache).is_some_and(|open| open.iter().all(|item| item.is_ok()))
    }

    /// The entries that the block index of a table leads to. Blocks that cannot be read are
    /// skipped.
    fn items(&self, table: &TableFile, cache: &Arc<Cache>) -> Box<dyn Iterator<Item = InternalValue>> {
        let Some(open) = self.open(table, cache) else { return Box::new(std::iter::empty()) };
        // Each error is either a skipped block or a damaged block index, which gives errors
        // forever. So the errors are bounded by the number of blocks.
        let mut errors_left = open.metadata.data_block_count;
        let mut items = open.iter();
        Box::new(std::iter::from_fn(move || {
            loop {
                match items.next()? {
                    Ok(item) => return Some(item),
                    Err(_) => errors_left = errors_left.checked_sub(1)?,
                }
            }
        }))
    }

    /// Reads a table without its index, from its beginning to the first block that cannot be read.
    fn scanned(&self, table: &TableFile) -> impl Iterator<Item = InternalValue> + use<> {
        let path = self.path(table);
        let scan = |compression| Scanner::new(&path, usize::MAX, compression, table.seqno_base).ok();
        let scanner = scan(CompressionType::Lz4).or_else(|| scan(CompressionType::None));
        scanner.into_iter().flat_map(|scanner| scanner.map_while(Result::ok))
    }
}

/// The next item of a stream. The greatest item is the one with the least key and, for equal keys,
/// the newest.
struct Head {
    item: InternalValue,
    stream: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_key = other.item.key.user_key.cmp(&self.item.key.user_key);
        by_key.then(self.item.key.seqno.cmp(&other.item.key.seqno))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

fn read_at_most(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn table_names(dir: &Path) -> io::Result<Vec<u64>> {
    match std::fs::read_dir(dir.join(TABLES_DIR)) {
        Ok(entries) => {
            let id = |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
            let mut ids: Vec<u64> = entries.filter_map(id).collect();
            ids.sort_unstable();
            Ok(ids)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The checksum of a file; none if `observe` ends the check.
fn checksum_of(path: &Path, observe: &mut dyn FnMut(u64) -> bool) -> io::Result<Option<u128>> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3Default::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(Some(hasher.digest128()));
        }
        hasher.update(&chunk[..read]);
        if !observe(read as u64) {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::TRAILER_BYTES;
    use super::super::{Tree, TreeLimits, TreeShared};
    use super::*;
    use crate::journal::le_at;
    use std::collections::BTreeMap;

    fn key(n: u32) -> Bytes {
        format!("key {n:05}").into()
    }

    /// Makes a tree of several levels, with entries that were replaced and removed.
    fn make_tree(dir: &Path) -> BTreeMap<Bytes, Bytes> {
        let shared = TreeShared::new(TreeLimits { table_bytes: 8 << 10, ..TreeLimits::default() });
        let tree = Tree::open(dir, &shared).unwrap();
        let mut model = BTreeMap::new();
        for round in 0..8u32 {
            for n in (round * 7..400).step_by(1 + round as usize % 3) {
                let value = (n % 5 != round % 5).then(|| Bytes::from(format!("{round} of {n} ").repeat(9)));
                match &value {
                    Some(value) => drop(model.insert(key(n), value.clone())),
                    None => drop(model.remove(&key(n))),
                }
                tree.apply([(key(n), value)]);
            }
            tree.rotate();
            tree.flush().unwrap();
            if round != 6 {
                tree.compact().unwrap();
            }
        }
        model
    }

    fn read_all(files: &TreeFiles) -> BTreeMap<Bytes, Bytes> {
        let mut found = BTreeMap::new();
        files.for_each(|key, value| {
            let value = value.map(|value| (Bytes::copy_from_slice(key), value));
            found.extend(value);
        });
        found
    }

    #[test]
    fn a_whole_tree_is_read_as_the_library_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let model = make_tree(dir.path());
        let files = TreeFiles::read(dir.path()).unwrap().unwrap().unwrap();
        let mut bytes = 0;
        assert_eq!(
            files
                .check(&mut |read| {
                    bytes += read;
                    true
                })
                .unwrap(),
            []
        );
        assert_eq!(bytes, files.bytes());
        assert!(files.runs.len() > 1 && files.runs.iter().flatten().count() > 3, "{files:?}");
        assert_eq!(read_all(&files), model);
        assert!(TreeFiles::read(&dir.path().join("nowhere")).unwrap().unwrap().is_none());
    }

    #[test]
    fn every_flipped_bit_is_found_and_the_rest_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let model = make_tree(dir.path());
        let tables = table_names(dir.path()).unwrap();
        let mut kept_least = usize::MAX;
        for seed in 0..400u64 {
            let id = tables[seed as usize % tables.len()];
            let path = dir.path().join(TABLES_DIR).join(id.to_string());
            let bytes = std::fs::read(&path).unwrap();
            let at = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (bytes.len() as u64 * 8);
            let mut bad = bytes.clone();
            bad[(at / 8) as usize] ^= 1 << (at % 8);
            std::fs::write(&path, &bad).unwrap();
            let files = TreeFiles::read(dir.path()).unwrap().unwrap().unwrap();
            let damage = files.check(&mut |_| true).unwrap();
            let covers = |d: &TreeDamage| d.file == path && (d.offset..d.offset + d.length).contains(&(at / 8));
            assert!(damage.iter().any(covers), "bit {at} of table {id}: {damage:?}");
            let found = read_all(&files);
            assert!(found.values().all(|value| value.windows(4).any(|part| part == b" of ")), "only what was written");
            let kept = model.iter().filter(|(key, value)| found.get(*key) == Some(value)).count();
            kept_least = kept_least.min(kept);
            std::fs::write(&path, &bytes).unwrap();
        }
        assert!(kept_least > model.len() / 2, "one block at most is lost: {kept_least} of {}", model.len());
    }

    #[test]
    fn a_damaged_list_shows_and_tables_are_read_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let model = make_tree(dir.path());
        for name in ["current", &list_name(dir.path())] {
            let path = dir.path().join(name);
            let bytes = std::fs::read(&path).unwrap();
            for byte in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[byte] ^= 4;
                std::fs::write(&path, &bad).unwrap();
                assert!(TreeFiles::read(dir.path()).unwrap().is_err(), "{name}, byte {byte}");
            }
            std::fs::write(&path, &bytes).unwrap();
        }
        std::fs::remove_file(dir.path().join(CURRENT_FILE)).unwrap();
        assert!(TreeFiles::read(dir.path()).unwrap().is_err());
        assert_eq!(read_all(&TreeFiles::without_list(dir.path()).unwrap()), model);
    }

    /// Without the check, the library would allocate as much memory as a flipped bit says.
    #[test]
    fn a_damaged_end_of_a_table_shows_before_the_library_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        make_tree(dir.path());
        let files = TreeFiles::read(dir.path()).unwrap().unwrap().unwrap();
        let path = files.path(&files.runs[0][0]);
        let good = std::fs::read(&path).unwrap();
        let contents = le_at!(u64, good, good.len() - 16) as usize;
        for at in contents..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            std::fs::write(&path, &bad).unwrap();
            assert!(files.check_contents().unwrap().is_err(), "byte {at} of {}", good.len());
        }
        for length in [0, 1, TRAILER_BYTES, good.len() - 1] {
            std::fs::write(&path, &good[..length]).unwrap();
            assert!(files.check_contents().unwrap().is_err(), "{length} bytes");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(files.check_contents().unwrap().unwrap_err().what, "the table is missing");
        std::fs::write(&path, &good).unwrap();
        assert_eq!(files.check_contents().unwrap(), Ok(()));
    }

    fn list_name(dir: &Path) -> String {
        let current = std::fs::read(dir.join(CURRENT_FILE)).unwrap();
        format!("v{}", le_at!(u64, current, 0))
    }
}
