//! Room on a disk that was allocated before the disk was full.
//!
//! What it is: a file that takes room and holds nothing. When a small write that must not fail
//! finds no room, the file gives up its last piece, and the write is tried again. When the file
//! system has room again, the file takes back what it lacks.
//!
//! What it is not: it does not decide who may use it ([`ReservedFs`](super::ReservedFs) does), and
//! it keeps nobody else from taking the room that it has given up.

use super::{File, FileSystem, OpenMode};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::{info, warn};

/// The name of the file in the directory of a node.
pub const DISK_RESERVE_FILE: &str = "disk.reserve";
/// The reserve is at most one part in this many of the file system.
const SHARE_MAX: u64 = 20;
/// What the reserve takes back, it takes only if this many times its size is free. Stores keep a
/// reserve of their own free, and nothing is gained if the two take turns.
const FREE_FOR_EACH: u64 = 3;
/// The least that is given up at once.
const PIECE_BYTES_MIN: u64 = 64 << 10;

/// The file. It is opened when it is first used.
pub struct DiskReserve {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    size_bytes: u64,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    file: Option<Arc<dyn File>>,
    bytes: u64,
    /// Whether something was given up that was not taken back.
    is_short: bool,
}

impl DiskReserve {
    /// A reserve in a directory of `size_bytes`, or of less if its file system is small. What an
    /// earlier process has allocated counts at once.
    pub fn new(fs: Arc<dyn FileSystem>, dir: &Path, size_bytes: u64) -> Self {
        let of_disk = fs.size_bytes(dir).unwrap_or(u64::MAX) / SHARE_MAX;
        Self { fs, path: dir.join(DISK_RESERVE_FILE), size_bytes: size_bytes.min(of_disk), held: Mutex::default() }
    }

    /// Gives up room for a write of `bytes`. Returns false if nothing is left to give.
    pub(super) fn give_up(&self, bytes: u64) -> bool {
        let mut held = self.held.lock();
        let Ok(file) = self.open(&mut held, OpenMode::Write) else { return false };
        if held.bytes == 0 {
            return false;
        }
        // File systems need room for themselves, too.
        let piece = bytes.saturating_mul(2).max(PIECE_BYTES_MIN);
        let left = held.bytes.saturating_sub(piece);
        if file.truncate(left).is_err() {
            return false;
        }
        held.bytes = left;
        if !std::mem::replace(&mut held.is_short, true) {
            warn!(path = %self.path.display(), "the disk is full: what this node has to note is paid for by its reserve");
        }
        true
    }

    /// Allocates what the file lacks, if the file system has plenty of room. Blocks.
    pub fn take_back(&self) -> io::Result<()> {
        let mut held = self.held.lock();
        let file = match self.open(&mut held, OpenMode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.open(&mut held, OpenMode::CreateNew),
            opened => opened,
        }?;
        if held.bytes >= self.size_bytes {
            return Ok(());
        }
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let needed = self.size_bytes.saturating_mul(FREE_FOR_EACH);
        if self.fs.free_bytes(dir)? < needed.saturating_add(self.size_bytes - held.bytes) {
            return Ok(());
        }
        if let Err(error) = file.allocate(held.bytes, self.size_bytes).and_then(|()| file.sync_data()) {
            return file.truncate(held.bytes).and(Err(error));
        }
        held.bytes = self.size_bytes;
        if std::mem::take(&mut held.is_short) {
            info!(path = %self.path.display(), "the disk has room again, and the reserve of this node is whole");
        }
        Ok(())
    }

    /// Whether the disk was full, and the reserve has not been made whole since.
    pub fn is_short(&self) -> bool {
        self.held.lock().is_short
    }

    fn open(&self, held: &mut Held, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if let Some(file) = &held.file {
            return Ok(file.clone());
        }
        let file = self.fs.open(&self.path, mode)?;
        // A file that an earlier version of the configuration made larger is cut.
        held.bytes = file.length()?.min(self.size_bytes);
        file.truncate(held.bytes)?;
        held.file = Some(file.clone());
        Ok(file)
    }
}
