//! A simulated file system for tests: in memory, seeded, with the failures of real disks.
//!
//! What it models:
//! * which unsynced bytes, lengths, names and directories survive a loss of power: none, all, or
//!   any mixture, torn at any byte;
//! * calls that fail, and a disk that fills up;
//! * a failed sync, after which the dirty pages are lost although the next sync succeeds, as on
//!   Linux;
//! * bits that flip, and writes that land elsewhere;
//! * blocks that cannot be read, until they are written anew;
//! * reads and writes that do only a part of their work;
//! * a disk that does not answer, and reads that are not in the page cache.
//!
//! What it is not: it has no permissions or timestamps.

mod disk;
mod file;
mod state;

use super::{File, FileIdentity, FileLock, FileSystem, OpenMode};
use crate::machine::{Machine, RealMachine};
use disk::{DirNode, FileNode, Node};
use file::{FaultyFile, FaultyLock};
use parking_lot::MutexGuard;
use state::{ROOT, Shared, State, names_of};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// How much of the unsynced data a loss of power destroys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All unsynced data is lost.
    Everything,
    /// Nothing is lost: the process was killed, and the machine went on.
    Nothing,
    /// A random choice of sectors, lengths and names is lost.
    Some,
    /// All unsynced data is lost, and the machine went on: the file system shut itself down and was
    /// mounted again, or its volume was detached and came back.
    Remount,
    /// The same, and a random choice is lost.
    PartialRemount,
}

impl Loss {
    /// Whether unsynced data may be lost.
    pub const fn loses_unsynced(self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Whether the machine has lost its power, and all that is in its memory.
    pub const fn ends_machine(self) -> bool {
        matches!(self, Self::Everything | Self::Some)
    }

    const fn is_random(self) -> bool {
        matches!(self, Self::Some | Self::PartialRemount)
    }
}

/// A class of calls, for tests that make them fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// `open`, creating or not.
    Open,
    /// `read_at`.
    Read,
    /// `write_at`.
    Write,
    /// `sync_data`.
    SyncData,
    /// `sync_dir`.
    SyncDir,
    /// `truncate`.
    Truncate,
    /// `rename`, `hard_link`.
    Rename,
    /// `remove_file`, `remove_dir`.
    Remove,
    /// Everything else.
    Other,
}

/// A file system in memory that can be made to fail.
pub struct FaultyFs {
    shared: Arc<Shared>,
    machine: Arc<dyn Machine>,
}

impl FaultyFs {
    /// An empty file system. The same seed and the same calls give the same faults.
    pub fn new(seed: u64) -> Arc<Self> {
        Self::on_machine(seed, Arc::new(RealMachine))
    }

    /// An empty file system of a simulated machine.
    pub fn on_machine(seed: u64, machine: Arc<dyn Machine>) -> Arc<Self> {
        Self::with_nodes(vec![Node::Dir(DirNode::default())], seed, machine)
    }

    fn with_nodes(nodes: Vec<Node>, seed: u64, machine: Arc<dyn Machine>) -> Arc<Self> {
        Arc::new(Self { shared: Arc::new(Shared::new(nodes, seed)), machine })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    fn enter(&self, call: Call) -> io::Result<MutexGuard<'_, State>> {
        let (state, entered) = self.shared.enter(call);
        entered.map(|()| state)
    }

    /// Number of calls so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Number of calls of one class so far.
    pub fn calls_of(&self, call: Call) -> u64 {
        self.state().counts.get(&call).copied().unwrap_or(0)
    }

    /// Cuts the power at the `number`-th call from now (1 = the next). That call and all later ones
    /// fail.
    pub fn cut_power_at(&self, number: u64) {
        let mut state = self.state();
        state.power_cut_at = Some(state.calls + number.max(1));
    }

    /// Calls `observer` before each call does anything, and tells it whether the power is off. A
    /// test uses this to change, at the same moment, files that are not in this file system.
    pub fn observe(&self, observer: impl FnMut(bool) + Send + 'static) {
        self.state().observer = Some(Box::new(observer));
    }

    /// Lets this call and all later ones fail, as those of a file system that shut itself down.
    /// What happens to the unsynced data is said when it is mounted again; see
    /// [`restart`](Self::restart).
    pub fn shut_down(&self) {
        self.state().is_off = true;
    }

    /// Whether the power is off, or the file system is shut down.
    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// Lets the `number`-th call of a class from now (1 = the next) fail with an I/O error.
    pub fn fail_at(&self, call: Call, number: u64) {
        self.state().failing.insert(call, number.max(1));
    }

    /// Writes the bytes of the `number`-th write from now (1 = the next) to a wrong place of any
    /// file. The call reports success.
    pub fn misdirect_write_at(&self, number: u64) {
        self.state().misdirected = Some(number.max(1));
    }

    /// Lets the `number`-th read from now (1 = the next) report the end of the file too early.
    pub fn end_read_early_at(&self, number: u64) {
        self.state().ending_early = Some(number.max(1));
    }

    /// Makes the blocks of 4 KiB with these bytes of a file unreadable: reads of them fail with EIO
    /// until they are written anew. A restart does not change that.
    pub fn set_unreadable(&self, path: &Path, bytes: Range<u64>) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(path)?;
        state.file(node)?.set_unreadable(bytes.start as usize..bytes.end as usize);
        Ok(())
    }

    /// Makes all of a file readable again.
    pub fn set_readable(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(path)?;
        state.file(node)?.unreadable.clear();
        Ok(())
    }

    /// Lets the next read fail with EIO, wherever it reads.
    pub fn fail_next_read_as_media_error(&self) {
        self.set_media_errors(1);
    }

    /// Lets this many reads from now on fail with EIO, wherever they read: a volume that is gone
    /// for a while. 0: none does any more.
    pub fn set_media_errors(&self, reads: u64) {
        self.state().media_errors = reads;
    }

    /// Lets each read and write do only a part of its work, or be interrupted, as system calls may.
    pub fn set_transfers_are_short(&self, short: bool) {
        self.state().transfers_are_short = short;
    }

    /// Lets calls of a class wait until [`release`](Self::release), like a disk that does not
    /// answer. Cached reads answer `WouldBlock` meanwhile.
    pub fn hold(&self, call: Call) {
        self.shared.hold(call);
    }

    /// Lets the held calls go on.
    pub fn release(&self, call: Call) {
        self.shared.release(call);
    }

    /// Waits until some caller waits in a held call.
    ///
    /// # Panics
    /// If no caller does within half a minute.
    pub fn wait_for_held(&self, call: Call) {
        self.shared.wait_for_held(call);
    }

    /// Limits the bytes that can still be written; none: no limit.
    pub fn set_free_bytes(&self, free_bytes: Option<u64>) {
        self.state().free_bytes = free_bytes;
    }

    /// Whether every cached read answers `WouldBlock`.
    pub fn set_nothing_is_cached(&self, nothing: bool) {
        self.state().nothing_is_cached = nothing;
    }

    /// Flips one bit of a file, on disk and in the cache.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut state = self.state();
        let node = state.find(path)?;
        let file = state.file(node)?;
        let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        let content = file.bytes.get_mut(byte).ok_or(io::ErrorKind::UnexpectedEof)?;
        *content ^= mask;
        if let Some(content) = file.disk.get_mut(byte) {
            *content ^= mask;
        }
        Ok(())
    }

    /// The content of a file, also where it is unreadable for programs.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut state = self.state();
        let node = state.find(path)?;
        Ok(state.file(node)?.bytes.clone())
    }

    /// Length of a file in bytes.
    pub fn length(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.state();
        let node = state.find(path)?;
        Ok(state.file(node)?.bytes.len() as u64)
    }

    /// A copy of the whole disk, as a volume manager or a hypervisor takes it: every file keeps its
    /// inode. No process uses the copy.
    pub fn snapshot(&self) -> Arc<Self> {
        let state = self.state();
        let copy = Self::with_nodes(state.nodes.clone(), state.random, self.machine.clone());
        copy.state().power_cuts = state.power_cuts;
        copy
    }

    /// Cuts the power, or kills the process ([`Loss::Nothing`]), or mounts the file system again
    /// ([`Loss::Remount`]), and returns the file system that the next start finds. This one is off
    /// afterwards.
    pub fn restart(&self, loss: Loss) -> Arc<Self> {
        let mut state = self.state();
        state.is_off = true;
        let mut nodes = std::mem::take(&mut state.nodes);
        // After a kill, unsynced data stays as it was: readable, but not safe from a later loss of
        // power.
        for node in nodes.iter_mut().filter(|_| loss.loses_unsynced()) {
            let mut random = || state.next_random();
            let random: Option<&mut dyn FnMut() -> u64> = if loss.is_random() { Some(&mut random) } else { None };
            match node {
                Node::File(file) => file.lose(random),
                Node::Dir(dir) => dir.lose(random),
            }
        }
        let next = Self::with_nodes(nodes, state.random, self.machine.clone());
        next.state().power_cuts = state.power_cuts + u64::from(loss.ends_machine());
        next
    }
}

impl FileSystem for FaultyFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.enter(Call::Open)?;
        let node = match mode {
            OpenMode::Read | OpenMode::Write => state.find(path)?,
            OpenMode::CreateNew => {
                if state.find(path).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                let (parent, name) = state.find_parent(path)?;
                state.add(parent, name, Node::File(FileNode::default()))?
            }
        };
        state.file(node)?;
        Ok(Arc::new(FaultyFile { shared: self.shared.clone(), node }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Rename)?;
        let node = state.find(from)?;
        let (from_dir, from_name) = state.find_parent(from)?;
        let (to_dir, to_name) = state.find_parent(to)?;
        let replaced = state.dir(to_dir)?.names.get(&to_name).copied();
        if from_dir == to_dir {
            state.dir(from_dir)?.change(vec![(from_name, None), (to_name, Some(node))]);
        } else {
            state.dir(from_dir)?.change(vec![(from_name, None)]);
            state.dir(to_dir)?.change(vec![(to_name, Some(node))]);
        }
        replaced.filter(|replaced| *replaced != node).map_or(Ok(()), |replaced| state.free_if_unnamed(replaced))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Remove)?;
        let node = state.find(path)?;
        state.file(node)?;
        let (parent, name) = state.find_parent(path)?;
        state.unlink(node, parent, name)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Rename)?;
        let node = state.find(from)?;
        state.file(node)?;
        if state.find(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (parent, name) = state.find_parent(to)?;
        state.dir(parent)?.change(vec![(name, Some(node))]);
        Ok(())
    }

    fn file_identity(&self, path: &Path) -> io::Result<FileIdentity> {
        let mut state = self.enter(Call::Other)?;
        Ok(FileIdentity { inode: state.find(path)? as u64, created_ns: 0 })
    }

    fn machine(&self) -> &dyn Machine {
        &*self.machine
    }

    fn os_boot_id(&self) -> io::Result<Option<u128>> {
        Ok(Some(u128::from(self.enter(Call::Other)?.power_cuts)))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Remove)?;
        let node = state.find(path)?;
        if !state.dir(node)?.names.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (parent, name) = state.find_parent(path)?;
        state.dir(parent)?.change(vec![(name, None)]);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.enter(Call::Other)?;
        let node = state.find(dir)?;
        Ok(state.dir(node)?.names.keys().cloned().collect())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::Other)?;
        let mut node = ROOT;
        for name in names_of(dir) {
            let known = state.dir(node)?.names.get(name).copied();
            node = match known {
                Some(node) => node,
                None => state.add(node, name.to_owned(), Node::Dir(DirNode::default()))?,
            };
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.enter(Call::SyncDir)?;
        let node = state.find(dir)?;
        state.dir(node)?.sync();
        Ok(())
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        let state = self.enter(Call::Other)?;
        Ok(state.free_bytes.unwrap_or(u64::MAX))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let mut state = self.enter(Call::Other)?;
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(FaultyLock { shared: self.shared.clone(), path: path.to_owned() }))
    }
}

#[cfg(test)]
mod tests;
