//! The writers of a node.
//!
//! A writer of the library needs 15 MB. The pool bounds how many are open, over all indexes. A
//! writer stays open after its turn, because opening it starts three threads. It is closed when
//! another index needs its place. Indexes that wait get their turn in the order in which they came.

use crate::error::IndexError;
use crate::merges;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tantivy::indexer::IndexWriterOptions;
use tantivy::merge_policy::NoMergePolicy;
use tantivy::{FutureResult, IndexWriter, SegmentMeta};

/// The memory that one writer needs at least.
pub const WRITER_BYTES_MIN: usize = 15_000_000;

/// The memory that all writers of a node have together, unless the configuration says otherwise.
pub const WRITERS_BYTES_DEFAULT: usize = 64 << 20;

/// Memory and number of writers, shared by all indexes of a node.
pub struct WriterPool {
    writers_max: usize,
    bytes_each: usize,
    state: Mutex<State>,
    changed: Condvar,
    next_owner: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The least recently used first.
    idle: Vec<(Owner, OpenWriter)>,
    /// Writers that are in use, are being opened or are being closed.
    busy_count: usize,
    /// Indexes whose writers are being closed. Until then the library's lock is held.
    closing: Vec<Owner>,
    waiting: VecDeque<u64>,
    next_ticket: u64,
}

/// An index, as the pool knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u64);

/// A writer, and the merge that it has begun.
pub(crate) struct OpenWriter {
    pub(crate) writer: IndexWriter,
    pub(crate) merge: Option<FutureResult<Option<SegmentMeta>>>,
}

impl OpenWriter {
    /// Closes the writer, and waits for its merge: what was merged would be lost.
    fn close(self) {
        if let Some(merge) = self.merge {
            // The next merge tries again.
            let _ = merges::wait(merge);
        }
        drop(self.writer);
    }
}

impl fmt::Debug for WriterPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterPool").field("writers_max", &self.writers_max).finish_non_exhaustive()
    }
}

impl WriterPool {
    /// A pool whose writers have this memory together. There is at least one.
    pub fn new(memory_bytes: usize) -> Arc<Self> {
        let writers_max = (memory_bytes / WRITER_BYTES_MIN).max(1);
        Arc::new(Self {
            writers_max,
            bytes_each: (memory_bytes / writers_max).clamp(WRITER_BYTES_MIN, u32::MAX as usize / 2),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            next_owner: AtomicU64::new(0),
        })
    }

    /// How many writers can be open.
    pub fn writers_max(&self) -> usize {
        self.writers_max
    }

    /// How many writers are open.
    pub fn open_count(&self) -> usize {
        let state = self.state.lock();
        state.busy_count + state.idle.len()
    }

    pub(crate) fn new_owner(&self) -> Owner {
        Owner(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    /// A writer of an index, when it is its turn. An index asks for one writer at a time.
    pub(crate) fn lease(&self, owner: Owner, index: &tantivy::Index) -> Result<Lease<'_>, IndexError> {
        let mut closing = None;
        {
            let mut state = self.state.lock();
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.waiting.push_back(ticket);
            self.changed.wait_while(&mut state, |state| {
                let has_place = state.busy_count < self.writers_max;
                state.waiting.front() != Some(&ticket) || !has_place || state.closing.contains(&owner)
            });
            state.waiting.pop_front();
            state.busy_count += 1;
            self.changed.notify_all();
            if let Some(at) = state.idle.iter().position(|(idle, _)| *idle == owner) {
                let (_, writer) = state.idle.remove(at);
                return Ok(Lease { pool: self, owner, writer: Some(writer), kept: None });
            }
            if state.busy_count + state.idle.len() > self.writers_max && !state.idle.is_empty() {
                let (owner, writer) = state.idle.remove(0);
                state.closing.push(owner);
                closing = Some((owner, writer));
            }
        }
        // The place is counted while its last writer is closed.
        let mut lease = Lease { pool: self, owner, writer: None, kept: None };
        if let Some((owner, writer)) = closing {
            self.close(owner, writer);
        }
        lease.writer = Some(self.open(index)?);
        Ok(lease)
    }

    /// Closes a writer whose index is among those that are being closed.
    fn close(&self, owner: Owner, writer: OpenWriter) {
        writer.close();
        self.state.lock().closing.retain(|closing| *closing != owner);
        self.changed.notify_all();
    }

    fn open(&self, index: &tantivy::Index) -> Result<OpenWriter, IndexError> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(self.bytes_each)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer: IndexWriter = index.writer_with_options(options)?;
        // The index chooses merges itself: the library would begin any number of them.
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(OpenWriter { writer, merge: None })
    }

    /// Closes the writer of an index that nobody uses any more.
    pub(crate) fn forget(&self, owner: Owner) {
        let writer = {
            let mut state = self.state.lock();
            // Another index can be closing it.
            self.changed.wait_while(&mut state, |state| state.closing.contains(&owner));
            let at = state.idle.iter().position(|(idle, _)| *idle == owner);
            at.map(|at| state.idle.remove(at).1)
        };
        if let Some(writer) = writer {
            self.close(owner, writer);
        }
    }
}

/// A turn with a writer. Without [`Lease::keep`] the writer is closed and loses what it has not
/// committed.
pub(crate) struct Lease<'a> {
    pool: &'a WriterPool,
    owner: Owner,
    writer: Option<OpenWriter>,
    /// The writer, if it stays open after the turn.
    kept: Option<OpenWriter>,
}

impl Lease<'_> {
    /// The writer.
    pub(crate) fn writer(&mut self) -> Result<&mut OpenWriter, IndexError> {
        self.writer.as_mut().ok_or_else(|| IndexError::Storage(String::from("the writer was closed")))
    }

    /// Ends the turn, and leaves the writer open.
    pub(crate) fn keep(mut self) {
        self.kept = self.writer.take();
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // What a merge has done so far is not worth a failed writer.
            drop(writer);
        }
        let mut state = self.pool.state.lock();
        state.busy_count -= 1;
        state.idle.extend(self.kept.take().map(|writer| (self.owner, writer)));
        drop(state);
        self.pool.changed.notify_all();
    }
}
