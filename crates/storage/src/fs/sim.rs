//! The tests' twin of the file system: in memory, seeded, and as treacherous as a disk may be.
//!
//! What it models: what of unsynced bytes, lengths, names and directories survives a loss of power (nothing, all, or
//! any mixture, torn at sectors); failing calls; a disk that fills up; a failed sync, after which the dirty pages are
//! lost although the next sync succeeds, as on Linux; bits that flip; reads that are not in the page cache.
//!
//! What it is not: it has no permissions, links or timestamps.

use super::{File, FileLock, FileSystem, OpenMode};
use crate::backend::ReadMode;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// What tears: a disk writes a sector as a whole.
const SECTOR_BYTES: usize = 512;
const ROOT: usize = 0;

/// What a loss of power leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    Everything,
    /// Everything: the process was killed, the machine went on.
    Nothing,
    /// Any sectors, lengths and names, at random.
    Some,
}

/// A class of calls, to make them fail.
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
    /// `rename`.
    Rename,
    /// `remove_file`, `remove_dir`.
    Remove,
    /// Everything else.
    Other,
}

/// A file system in memory that can be made to fail.
pub struct FaultyFs {
    state: Arc<Mutex<State>>,
}

struct State {
    nodes: Vec<Node>,
    locks: BTreeSet<PathBuf>,
    random: u64,
    calls: u64,
    counts: BTreeMap<Call, u64>,
    /// The power goes at the call of this number, before it does anything.
    power_cut_at: Option<u64>,
    is_off: bool,
    /// Countdown to a failing call, by class.
    failing: BTreeMap<Call, u64>,
    free_bytes: Option<u64>,
    nothing_is_cached: bool,
}

enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Default)]
struct FileNode {
    /// What programs see.
    bytes: Vec<u8>,
    /// What the disk holds.
    disk: Vec<u8>,
    /// Sectors to be written by the next sync.
    dirty: BTreeSet<usize>,
}

#[derive(Default)]
struct DirNode {
    names: BTreeMap<String, usize>,
    disk: BTreeMap<String, usize>,
    /// Changes since the last sync, each done as a whole or not at all.
    pending: Vec<Vec<(String, Option<usize>)>>,
}

fn sector_of(bytes: &[u8], sector: usize) -> [u8; SECTOR_BYTES] {
    let mut content = [0; SECTOR_BYTES];
    let start = (sector * SECTOR_BYTES).min(bytes.len());
    let end = (start + SECTOR_BYTES).min(bytes.len());
    content[..end - start].copy_from_slice(&bytes[start..end]);
    content
}

impl FileNode {
    fn write_sector_to_disk(&mut self, sector: usize) {
        let content = sector_of(&self.bytes, sector);
        let start = sector * SECTOR_BYTES;
        if self.disk.len() < start + SECTOR_BYTES {
            self.disk.resize(start + SECTOR_BYTES, 0);
        }
        self.disk[start..start + SECTOR_BYTES].copy_from_slice(&content);
    }

    fn sync(&mut self) {
        for sector in std::mem::take(&mut self.dirty) {
            self.write_sector_to_disk(sector);
        }
        self.disk.resize(self.bytes.len(), 0);
    }
}

impl DirNode {
    fn change(&mut self, changes: Vec<(String, Option<usize>)>) {
        apply(&mut self.names, &changes);
        self.pending.push(changes);
    }

    fn sync(&mut self) {
        self.pending.clear();
        self.disk = self.names.clone();
    }
}

fn apply(names: &mut BTreeMap<String, usize>, changes: &[(String, Option<usize>)]) {
    for (name, node) in changes {
        match node {
            Some(node) => drop(names.insert(name.clone(), *node)),
            None => drop(names.remove(name)),
        }
    }
}

impl FaultyFs {
    /// An empty file system. The same seed and calls give the same faults.
    pub fn new(seed: u64) -> Arc<Self> {
        Self::with_nodes(vec![Node::Dir(DirNode::default())], seed)
    }

    fn with_nodes(nodes: Vec<Node>, seed: u64) -> Arc<Self> {
        let state = State {
            nodes,
            locks: BTreeSet::new(),
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            calls: 0,
            counts: BTreeMap::new(),
            power_cut_at: None,
            is_off: false,
            failing: BTreeMap::new(),
            free_bytes: None,
            nothing_is_cached: false,
        };
        Arc::new(Self { state: Arc::new(Mutex::new(state)) })
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// Calls of one class so far.
    pub fn calls_of(&self, call: Call) -> u64 {
        self.state.lock().counts.get(&call).copied().unwrap_or(0)
    }

    /// Lets the power go at the `number`-th call from now (1 = the next): it and all later ones fail.
    pub fn cut_power_at(&self, number: u64) {
        let mut state = self.state.lock();
        state.power_cut_at = Some(state.calls + number.max(1));
    }

    /// Whether the power is gone.
    pub fn is_off(&self) -> bool {
        self.state.lock().is_off
    }

    /// Lets the `number`-th call of a class from now (1 = the next) fail with an I/O error.
    pub fn fail_at(&self, call: Call, number: u64) {
        self.state.lock().failing.insert(call, number.max(1));
    }

    /// Bytes that may still be written; none = no limit.
    pub fn set_free_bytes(&self, free_bytes: Option<u64>) {
        self.state.lock().free_bytes = free_bytes;
    }

    /// Makes every cached read answer `WouldBlock`, or none.
    pub fn set_nothing_is_cached(&self, nothing: bool) {
        self.state.lock().nothing_is_cached = nothing;
    }

    /// Flips one bit of a file, on disk and in the cache.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> io::Result<()> {
        let mut state = self.state.lock();
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

    /// Length of a file.
    pub fn length(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.state.lock();
        let node = state.find(path)?;
        Ok(state.file(node)?.bytes.len() as u64)
    }

    /// Cuts the power, or kills the process ([`Loss::Nothing`]), and starts again: what is found. This file system is off
    /// afterwards.
    pub fn restart(&self, loss: Loss) -> Arc<Self> {
        let mut state = self.state.lock();
        state.is_off = true;
        let mut nodes = std::mem::take(&mut state.nodes);
        // After a kill, what was not synced is as it was: there, and in danger.
        for node in nodes.iter_mut().filter(|_| loss != Loss::Nothing) {
            match node {
                Node::File(file) => state.lose_bytes(file, loss == Loss::Some),
                Node::Dir(dir) => state.lose_names(dir, loss == Loss::Some),
            }
        }
        Self::with_nodes(nodes, state.random)
    }
}

impl State {
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    fn flip_coin(&mut self) -> bool {
        self.next_random() & 1 == 1
    }

    fn lose_bytes(&mut self, file: &mut FileNode, some_survive: bool) {
        if some_survive {
            let (disk_len, len) = (file.disk.len(), file.bytes.len());
            for sector in file.dirty.clone() {
                if self.flip_coin() {
                    file.write_sector_to_disk(sector);
                }
            }
            let (low, high) = (disk_len.min(len), disk_len.max(len));
            // Often one of the two lengths, sometimes one between.
            let kept = match self.next_random() % 4 {
                0 => disk_len,
                1 | 2 => len,
                _ => low + (self.next_random() % (high - low + 1) as u64) as usize,
            };
            file.disk.resize(kept, 0);
        }
        file.bytes = file.disk.clone();
        file.dirty.clear();
    }

    fn lose_names(&mut self, dir: &mut DirNode, some_survive: bool) {
        for changes in std::mem::take(&mut dir.pending) {
            if some_survive && self.flip_coin() {
                apply(&mut dir.disk, &changes);
            }
        }
        dir.names = dir.disk.clone();
    }

    /// Accounts for a call; fails it if that was asked for.
    fn enter(&mut self, call: Call) -> io::Result<()> {
        self.calls += 1;
        *self.counts.entry(call).or_default() += 1;
        if self.power_cut_at.is_some_and(|at| self.calls >= at) {
            self.is_off = true;
        }
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        if let Some(left) = self.failing.get_mut(&call) {
            *left -= 1;
            if *left == 0 {
                self.failing.remove(&call);
                return Err(io::Error::other("injected I/O error"));
            }
        }
        Ok(())
    }

    fn file(&mut self, node: usize) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::Error::other("the power is off")),
        }
    }

    fn dir(&mut self, node: usize) -> io::Result<&mut DirNode> {
        match self.nodes.get_mut(node) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::Error::other("the power is off")),
        }
    }

    fn find(&mut self, path: &Path) -> io::Result<usize> {
        let mut node = ROOT;
        for name in names_of(path) {
            node = *self.dir(node)?.names.get(&name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    fn find_parent(&mut self, path: &Path) -> io::Result<(usize, String)> {
        let name = names_of(path).pop().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.find(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?, name))
    }

    fn add(&mut self, parent: usize, name: String, node: Node) -> io::Result<usize> {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.dir(parent)?.change(vec![(name, Some(number))]);
        Ok(number)
    }

    fn write(&mut self, node: usize, bytes: &[u8], offset: usize) -> io::Result<()> {
        let growth = (offset + bytes.len()).saturating_sub(self.file(node)?.bytes.len()) as u64;
        let allowed = self.free_bytes.map_or(bytes.len(), |free| {
            let missing = growth.saturating_sub(free) as usize;
            bytes.len().saturating_sub(missing)
        });
        if let Some(free) = &mut self.free_bytes {
            *free = free.saturating_sub(growth);
        }
        let file = self.file(node)?;
        let end = offset + allowed;
        if file.bytes.len() < end {
            file.bytes.resize(end, 0);
        }
        file.bytes[offset..end].copy_from_slice(&bytes[..allowed]);
        if allowed > 0 {
            file.dirty.extend(offset / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
        }
        if allowed < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

fn names_of(path: &Path) -> Vec<String> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect()
}

struct FaultyFile {
    state: Arc<Mutex<State>>,
    node: usize,
}

impl File for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        let mut state = self.state.lock();
        state.enter(Call::Read)?;
        if mode == ReadMode::Cached && state.nothing_is_cached {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let bytes = &state.file(self.node)?.bytes;
        let start = (offset as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        if let Err(error) = state.enter(Call::Write) {
            // A failed write may have done a part of its work.
            if !state.nodes.is_empty() {
                let part = (state.next_random() % (bytes.len() as u64 + 1)) as usize;
                let _ = state.write(self.node, &bytes[..part], offset as usize);
            }
            return Err(error);
        }
        state.write(self.node, bytes, offset as usize)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let entered = state.enter(Call::SyncData);
        if entered.is_err() {
            // Some pages made it; the others count as clean from now on.
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
        let mut state = self.state.lock();
        state.enter(Call::Other)?;
        Ok(state.file(self.node)?.bytes.len() as u64)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.enter(Call::Truncate)?;
        let file = state.file(self.node)?;
        let old = file.bytes.len();
        file.bytes.resize(length as usize, 0);
        let sectors = length as usize / SECTOR_BYTES..=old.max(length as usize) / SECTOR_BYTES;
        file.dirty.extend(sectors);
        let freed = old.saturating_sub(length as usize) as u64;
        state.free_bytes = state.free_bytes.map(|free| free + freed);
        Ok(())
    }
}

struct FaultyLock {
    state: Arc<Mutex<State>>,
    path: PathBuf,
}

impl FileLock for FaultyLock {}

impl Drop for FaultyLock {
    fn drop(&mut self) {
        self.state.lock().locks.remove(&self.path);
    }
}

impl FileSystem for FaultyFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.lock();
        state.enter(Call::Open)?;
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
        Ok(Arc::new(FaultyFile { state: self.state.clone(), node }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.enter(Call::Rename)?;
        let node = state.find(from)?;
        let (from_dir, from_name) = state.find_parent(from)?;
        let (to_dir, to_name) = state.find_parent(to)?;
        if from_dir == to_dir {
            state.dir(from_dir)?.change(vec![(from_name, None), (to_name, Some(node))]);
            return Ok(());
        }
        state.dir(from_dir)?.change(vec![(from_name, None)]);
        state.dir(to_dir)?.change(vec![(to_name, Some(node))]);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.enter(Call::Remove)?;
        let node = state.find(path)?;
        let freed = state.file(node)?.bytes.len() as u64;
        state.free_bytes = state.free_bytes.map(|free| free + freed);
        let (parent, name) = state.find_parent(path)?;
        state.dir(parent)?.change(vec![(name, None)]);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.enter(Call::Remove)?;
        let node = state.find(path)?;
        if !state.dir(node)?.names.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (parent, name) = state.find_parent(path)?;
        state.dir(parent)?.change(vec![(name, None)]);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state.lock();
        state.enter(Call::Other)?;
        let node = state.find(dir)?;
        Ok(state.dir(node)?.names.keys().cloned().collect())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.enter(Call::Other)?;
        let mut node = ROOT;
        for name in names_of(dir) {
            let known = state.dir(node)?.names.get(&name).copied();
            node = match known {
                Some(node) => node,
                None => state.add(node, name, Node::Dir(DirNode::default()))?,
            };
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.enter(Call::SyncDir)?;
        let node = state.find(dir)?;
        state.dir(node)?.sync();
        Ok(())
    }

    fn free_bytes(&self, _dir: &Path) -> io::Result<u64> {
        let mut state = self.state.lock();
        state.enter(Call::Other)?;
        Ok(state.free_bytes.unwrap_or(u64::MAX))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let mut state = self.state.lock();
        state.enter(Call::Other)?;
        if !state.locks.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(FaultyLock { state: self.state.clone(), path: path.to_owned() }))
    }
}

#[cfg(test)]
mod tests;
