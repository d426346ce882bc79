//! Open files and locks of the simulated file system.

use super::Call;
use super::state::{Shared, is_due};
use crate::backend::ReadMode;
use crate::fs::{File, FileLock, read_whole, write_whole};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) struct FaultyFile {
    pub(super) shared: Arc<Shared>,
    pub(super) node: usize,
}

impl FaultyFile {
    /// One system call. It may read less than asked for.
    fn read_some(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        if mode == ReadMode::Cached && self.shared.state().is_held(Call::Read) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (mut state, entered) = self.shared.enter(Call::Read);
        entered?;
        if mode == ReadMode::Cached && state.nothing_is_cached {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let wanted = state.transferred(buffer.len())?;
        if is_due(&mut state.ending_early) {
            return Ok(0);
        }
        if state.media_errors > 0 {
            state.media_errors -= 1;
            return Err(media_error());
        }
        let file = state.file(self.node)?;
        let bytes = &file.bytes;
        let start = (offset as usize).min(bytes.len());
        let count = wanted.min(bytes.len() - start);
        if !file.is_readable(start, count) {
            return Err(media_error());
        }
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    /// One system call. It may write less than it was given.
    fn write_some(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (mut state, entered) = self.shared.enter(Call::Write);
        if let Err(error) = entered {
            // A failed write may have done a part of its work.
            if !state.nodes.is_empty() {
                let part = (state.next_random() % (bytes.len() as u64 + 1)) as usize;
                let _ = state.write(self.node, &bytes[..part], offset as usize);
            }
            return Err(error);
        }
        let count = state.transferred(bytes.len())?;
        state.write(self.node, &bytes[..count], offset as usize)?;
        Ok(count)
    }
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        read_whole(buffer, |rest, done| self.read_some(rest, offset + done as u64, mode))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_whole(bytes, |rest, done| self.write_some(rest, offset + done as u64))
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut state, entered) = self.shared.enter(Call::SyncData);
        if entered.is_err() {
            // Some pages reach the disk. The others count as clean from now on, as on Linux.
            let is_off = state.is_off;
            for sector in state.file(self.node)?.dirty.clone() {
                let arrives = state.flip_coin();
                let file = state.file(self.node)?;
                if arrives {
                    file.write_sector_to_disk(sector);
                }
                if !is_off {
                    file.dirty.remove(&sector);
                }
            }
        }
        entered?;
        state.file(self.node)?.sync();
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        let (mut state, entered) = self.shared.enter(Call::Other);
        entered?;
        Ok(state.file(self.node)?.bytes.len() as u64)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let (mut state, entered) = self.shared.enter(Call::Truncate);
        entered?;
        let file = state.file(self.node)?;
        let freed = file.bytes.len().saturating_sub(length as usize) as u64;
        file.truncate(length as usize);
        state.free_bytes = state.free_bytes.map(|free| free + freed);
        Ok(())
    }
}

/// What the system reports of a sector that cannot be read.
fn media_error() -> io::Error {
    Errno::IO.into()
}

pub(super) struct FaultyLock {
    pub(super) shared: Arc<Shared>,
    pub(super) path: PathBuf,
}

impl FileLock for FaultyLock {}

impl Drop for FaultyLock {
    fn drop(&mut self) {
        self.shared.state().locks.remove(&self.path);
    }
}
