//! The state of the simulated file system: its nodes, and the faults that wait for a call.

use super::Call;
use super::disk::{DirNode, FileNode, Node, SECTOR_BYTES};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

pub(super) const ROOT: usize = 0;
/// While transfers are short, one in this many calls is interrupted.
const INTERRUPTED_ONE_IN: u64 = 8;

/// A test that waits longer than this for a call has failed.
const HELD_WAIT_MAX: Duration = Duration::from_secs(30);

/// A function that is called before each call does anything, with whether the power is off.
pub(super) type Observer = Box<dyn FnMut(bool) + Send>;

/// The state, and the condition variable for its changes.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

pub(super) struct State {
    pub(super) nodes: Vec<Node>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) random: u64,
    pub(super) calls: u64,
    pub(super) counts: BTreeMap<Call, u64>,
    /// The number of the call at which the power is cut, before the call does anything.
    pub(super) power_cut_at: Option<u64>,
    pub(super) is_off: bool,
    /// Countdown to a failing call, by class.
    pub(super) failing: BTreeMap<Call, u64>,
    /// Countdown to a write that lands elsewhere.
    pub(super) misdirected: Option<u64>,
    /// Countdown to a read that ends before the file does.
    pub(super) ending_early: Option<u64>,
    /// How many of the next reads fail with a media error, wherever they read.
    pub(super) media_errors: u64,
    pub(super) free_bytes: Option<u64>,
    /// Number of power cuts so far.
    pub(super) power_cuts: u64,
    pub(super) nothing_is_cached: bool,
    /// Whether reads and writes transfer only a part of what was asked for.
    pub(super) transfers_are_short: bool,
    pub(super) observer: Option<Observer>,
    /// The classes whose calls wait, and how many calls do.
    held: BTreeMap<Call, usize>,
}

impl Shared {
    pub(super) fn new(nodes: Vec<Node>, seed: u64) -> Self {
        let state = State {
            nodes,
            locks: BTreeSet::new(),
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            calls: 0,
            counts: BTreeMap::new(),
            power_cut_at: None,
            is_off: false,
            failing: BTreeMap::new(),
            misdirected: None,
            ending_early: None,
            media_errors: 0,
            free_bytes: None,
            power_cuts: 0,
            nothing_is_cached: false,
            transfers_are_short: false,
            observer: None,
            held: BTreeMap::new(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Begins a call: waits while its class is held, counts it, and returns whether it fails.
    pub(super) fn enter(&self, call: Call) -> (MutexGuard<'_, State>, io::Result<()>) {
        let mut state = self.state.lock();
        while let Some(waiting) = state.held.get_mut(&call) {
            *waiting += 1;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
        let result = state.count(call);
        (state, result)
    }

    pub(super) fn hold(&self, call: Call) {
        self.state.lock().held.entry(call).or_default();
    }

    pub(super) fn release(&self, call: Call) {
        self.state.lock().held.remove(&call);
        self.changed.notify_all();
    }

    /// Waits until some caller waits in a held call.
    pub(super) fn wait_for_held(&self, call: Call) {
        let mut state = self.state.lock();
        while state.held.get(&call).is_some_and(|waiting| *waiting == 0) {
            let late = self.changed.wait_for(&mut state, HELD_WAIT_MAX).timed_out();
            assert!(!late, "no thread reached the call {call:?} in time");
        }
    }
}

impl State {
    pub(super) fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub(super) fn flip_coin(&mut self) -> bool {
        self.next_random() & 1 == 1
    }

    pub(super) fn is_held(&self, call: Call) -> bool {
        self.held.contains_key(&call)
    }

    fn count(&mut self, call: Call) -> io::Result<()> {
        self.calls += 1;
        *self.counts.entry(call).or_default() += 1;
        if self.power_cut_at.is_some_and(|at| self.calls >= at) {
            self.is_off = true;
        }
        if let Some(observer) = &mut self.observer {
            observer(self.is_off);
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

    /// How many bytes of a transfer of `length` bytes one call does.
    pub(super) fn transferred(&mut self, length: usize) -> io::Result<usize> {
        if !self.transfers_are_short || length == 0 {
            return Ok(length);
        }
        if self.next_random().is_multiple_of(INTERRUPTED_ONE_IN) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(1 + (self.next_random() % length as u64) as usize)
    }

    pub(super) fn file(&mut self, node: usize) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::Error::other("the power is off")),
        }
    }

    pub(super) fn dir(&mut self, node: usize) -> io::Result<&mut DirNode> {
        match self.nodes.get_mut(node) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::Error::other("the power is off")),
        }
    }

    pub(super) fn find(&mut self, path: &Path) -> io::Result<usize> {
        let mut node = ROOT;
        for name in names_of(path) {
            node = *self.dir(node)?.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    pub(super) fn find_parent(&mut self, path: &Path) -> io::Result<(usize, String)> {
        let name = names_of(path).last().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        Ok((self.find(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?, name))
    }

    pub(super) fn add(&mut self, parent: usize, name: String, node: Node) -> io::Result<usize> {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.dir(parent)?.change(vec![(name, Some(number))]);
        Ok(number)
    }

    /// Removes a name of a file. With the last name, its bytes become free.
    pub(super) fn unlink(&mut self, node: usize, parent: usize, name: String) -> io::Result<()> {
        self.file(node)?;
        self.dir(parent)?.change(vec![(name, None)]);
        self.free_if_unnamed(node)
    }

    /// Frees the bytes of a file that has lost a name, if that was the last one.
    pub(super) fn free_if_unnamed(&mut self, node: usize) -> io::Result<()> {
        let length = self.file(node)?.bytes.len() as u64;
        let has_name = |other: &Node| matches!(other, Node::Dir(dir) if dir.names.values().any(|named| *named == node));
        if let Some(free) = self.free_bytes
            && !self.nodes.iter().any(has_name)
        {
            self.free_bytes = Some(free + length);
        }
        Ok(())
    }

    /// Writes as many bytes as there is room for.
    pub(super) fn write(&mut self, node: usize, bytes: &[u8], offset: usize) -> io::Result<()> {
        let growth = (offset + bytes.len()).saturating_sub(self.file(node)?.bytes.len()) as u64;
        let allowed = self.free_bytes.map_or(bytes.len(), |free| {
            let missing = growth.saturating_sub(free) as usize;
            bytes.len().saturating_sub(missing)
        });
        if let Some(free) = &mut self.free_bytes {
            *free = free.saturating_sub(growth);
        }
        if is_due(&mut self.misdirected) {
            self.write_elsewhere(node, &bytes[..allowed], offset)?;
        } else {
            self.file(node)?.put(&bytes[..allowed], offset);
        }
        if allowed < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// Simulates a misdirected write: the bytes land at the start of another sector, of this file
    /// or another one. The right place keeps its old content.
    fn write_elsewhere(&mut self, node: usize, bytes: &[u8], offset: usize) -> io::Result<()> {
        self.file(node)?.extend(offset + bytes.len());
        let is_target = |number: &usize| matches!(&self.nodes[*number], Node::File(file) if !file.bytes.is_empty());
        let targets: Vec<usize> = (0..self.nodes.len()).filter(is_target).collect();
        let random = (self.next_random() as usize, self.next_random() as usize);
        let Some(target) = targets.get(random.0 % targets.len().max(1)) else { return Ok(()) };
        let file = self.file(*target)?;
        let at = random.1 % file.bytes.len().div_ceil(SECTOR_BYTES) * SECTOR_BYTES;
        if (*target, at) != (node, offset) {
            let fitting = bytes.len().min(file.bytes.len() - at);
            file.put(&bytes[..fitting], at);
        }
        Ok(())
    }
}

/// Counts down, and returns whether the chosen call has come.
pub(super) fn is_due(countdown: &mut Option<u64>) -> bool {
    match countdown {
        Some(1) => {
            *countdown = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

pub(super) fn names_of(path: &Path) -> impl Iterator<Item = &str> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    })
}
