//! The file of told seqs.
//!
//! ```text
//! file    = magic 8 bytes, entries
//! entry   = u64 node, u32 partition, u64 store id, u64 seq, u64 checksum (XXH3) of these 28 bytes
//! ```
//!
//! All numbers are little-endian. Of several entries for one node and partition the last one
//! counts. Entries have one length, so a damaged one hides no other: it is left out, and logged.
//! Entries are appended. When most of them are outdated, the file is replaced by one with the
//! newest ones.

use crate::replica::ToldSeq;
use ombak_storage::fs::{File, FileSystem, OpenMode, read_file, replace_file};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;
use xxhash_rust::xxh3::xxh3_64;

const FILE_NAME: &str = "told-seqs";
const MAGIC: &[u8; 8] = b"OMBAKTS1";
const SUMMED_BYTES: usize = 28;
const ENTRY_BYTES: usize = SUMMED_BYTES + 8;
/// The longest file that is read. A file is replaced long before it is as long.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// So many outdated entries are always allowed.
const OUTDATED_MIN: u64 = 4_096;

/// All told seqs, by node and partition.
pub(super) type Told = BTreeMap<(NodeId, u32), ToldSeq>;

/// The file. One thread uses it at a time.
pub(super) struct ToldFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    /// The file to append to, and the number of its entries. None before the first append, and
    /// after a failure: then the file is replaced as a whole, because nobody knows what of it is on
    /// the disk.
    open: Option<(Arc<dyn File>, u64)>,
}

impl ToldFile {
    pub(super) fn new(fs: Arc<dyn FileSystem>, data_dir: &Path) -> Self {
        Self { fs, path: data_dir.join(FILE_NAME), open: None }
    }

    /// Reads what was told before; nothing if there is no file. Blocks.
    pub(super) fn load(&self) -> io::Result<Told> {
        let bytes = match read_file(&*self.fs, &self.path, FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Told::new()),
            Err(why) => return Err(why),
        };
        let Some(entries) = bytes.strip_prefix(MAGIC) else {
            let what = format!("{} is no file of told seqs", self.path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        };
        let (mut told, mut damaged) = (Told::new(), 0u64);
        for entry in entries.chunks(ENTRY_BYTES) {
            match decode(entry) {
                Some((place, seq)) => {
                    told.insert(place, seq);
                }
                None => damaged += 1,
            }
        }
        if damaged > 0 {
            warn!(damaged, "some entries of the file of told seqs cannot be read; the last may be cut short");
        }
        Ok(told)
    }

    /// Makes `news` durable. `count` is the number of all told seqs, with the news. `all` returns
    /// them if the file is to be replaced. Blocks.
    pub(super) fn append(&mut self, news: &Told, count: usize, all: impl FnOnce() -> Told) -> io::Result<()> {
        let Some((file, entries)) = self.open.take() else { return self.replace(&all()) };
        if entries > 2 * count as u64 + OUTDATED_MIN {
            return self.replace(&all());
        }
        let bytes: Vec<u8> = news.iter().flat_map(encode).collect();
        file.write_at(&bytes, MAGIC.len() as u64 + entries * ENTRY_BYTES as u64)?;
        file.sync_data()?;
        self.open = Some((file, entries + news.len() as u64));
        Ok(())
    }

    /// Replaces the file by one that has these told seqs. Blocks.
    pub(super) fn replace(&mut self, all: &Told) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(all.iter().flat_map(encode));
        self.open = None;
        replace_file(&*self.fs, &self.path, &bytes)?;
        let file = self.fs.open(&self.path, OpenMode::Write)?;
        self.open = Some((file, all.len() as u64));
        Ok(())
    }
}

fn encode(((node, partition), told): (&(NodeId, u32), &ToldSeq)) -> [u8; ENTRY_BYTES] {
    let mut out = [0; ENTRY_BYTES];
    out[..8].copy_from_slice(&node.get().to_le_bytes());
    out[8..12].copy_from_slice(&partition.to_le_bytes());
    out[12..20].copy_from_slice(&told.store_id.to_le_bytes());
    out[20..SUMMED_BYTES].copy_from_slice(&told.seq.to_le_bytes());
    let sum = xxh3_64(&out[..SUMMED_BYTES]);
    out[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
    out
}

fn decode(entry: &[u8]) -> Option<((NodeId, u32), ToldSeq)> {
    let (summed, sum) = entry.split_at_checked(SUMMED_BYTES)?;
    if sum.first_chunk::<8>().is_none_or(|sum| u64::from_le_bytes(*sum) != xxh3_64(summed)) {
        return None;
    }
    let number = |at: usize| summed.get(at..)?.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let partition = summed.get(8..)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))?;
    let told = ToldSeq { store_id: number(12)?, seq: number(20)? };
    Some(((NodeId::new(number(0)?), partition), told))
}
