//! openraft's view of the log and the vote on disk.

use super::room::{Counted, PatientPool};
use super::types::{Entry, EntryId, Group, StorageError, Vote};
use crate::log::{LogError, LogStore};
use bytes::Bytes;
use openraft::storage::{LogFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{AnyError, ErrorSubject, ErrorVerb, StorageIOError};
use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// The log on disk. Each change runs on a thread that may block, in the order of the calls.
#[derive(Clone)]
pub(crate) struct RaftLog {
    store: Arc<Mutex<LogStore>>,
    /// The entries of the store, for readers that do not wait for the disk.
    entries: Arc<RwLock<BTreeMap<u64, Bytes>>>,
    pool: PatientPool,
    /// The last entry that the durable snapshot includes. Without it, entries are purged as
    /// openraft says: only its tests do that.
    durable_snapshot: Option<watch::Receiver<Option<EntryId>>>,
    /// How many purges wait for a durable snapshot.
    awaiting_snapshot: Arc<AtomicUsize>,
}

impl RaftLog {
    pub fn new(store: LogStore, pool: PatientPool, durable_snapshot: Option<watch::Receiver<Option<EntryId>>>) -> Self {
        let entries = Arc::new(RwLock::new(store.content().entries.clone()));
        Self { store: Arc::new(Mutex::new(store)), entries, pool, durable_snapshot, awaiting_snapshot: Arc::default() }
    }

    /// Whether a change of the log waits for room on the disk. openraft answers nothing meanwhile.
    pub fn waits_for_room(&self) -> bool {
        self.pool.waits_for_room()
    }

    /// Whether a change of the log waits until a snapshot is on the disk.
    pub fn awaits_snapshot(&self) -> bool {
        self.awaiting_snapshot.load(Ordering::SeqCst) > 0
    }

    /// The length of the log's file in bytes. It may wait for the disk.
    pub async fn length_bytes(&self) -> u64 {
        let store = self.store.clone();
        self.pool.pool().run(move || store.lock().length_bytes()).await.unwrap_or(0)
    }

    /// Carries out a change, durably. While the disk has no room it waits.
    async fn change(
        &self,
        change: impl Fn(&mut LogStore) -> Result<(), LogError> + Clone + Send + 'static,
        mirror: impl FnOnce(&mut BTreeMap<u64, Bytes>) + Clone + Send + 'static,
    ) -> Result<(), io::Error> {
        let (store, entries) = (self.store.clone(), self.entries.clone());
        let change = move || {
            let mut store = store.lock();
            change(&mut store)?;
            mirror.clone()(&mut entries.write());
            Ok(())
        };
        self.pool.carry_out(change).await
    }

    /// Waits until a durable snapshot includes `last`. openraft purges right after it has handed a
    /// received snapshot to the state machine. If the power went then, neither the entries nor the
    /// snapshot would be there.
    async fn wait_for_snapshot(&self, last: EntryId) -> Result<(), StorageError> {
        let Some(mut durable) = self.durable_snapshot.clone() else { return Ok(()) };
        let _awaiting = Counted::new(self.awaiting_snapshot.clone());
        let found = durable.wait_for(|durable| durable.is_some_and(|durable| durable >= last)).await;
        found.map(|_| ()).map_err(|_| write_error("the snapshot that replaces the entries was not written"))
    }
}

impl RaftLogReader<Group> for RaftLog {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        let bounds: (Bound<u64>, Bound<u64>) = (range.start_bound().cloned(), range.end_bound().cloned());
        if is_empty(bounds) {
            return Ok(Vec::new());
        }
        let entries: Vec<Bytes> = self.entries.read().range(bounds).map(|(_, entry)| entry.clone()).collect();
        entries.iter().map(|entry| from_json(entry)).collect()
    }
}

/// `BTreeMap::range` panics for such bounds.
fn is_empty(bounds: (Bound<u64>, Bound<u64>)) -> bool {
    match bounds {
        (Bound::Included(start), Bound::Excluded(end)) => start >= end,
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

impl RaftLogStorage<Group> for RaftLog {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Group>, StorageError> {
        let purged = self.store.lock().content().purged.clone();
        let last_purged_log_id: Option<EntryId> = purged.map(|(_, which)| from_json(&which)).transpose()?;
        let last = self.entries.read().last_key_value().map(|(_, entry)| entry.clone());
        let last = last.map(|entry| from_json::<Entry>(&entry)).transpose()?.map(|entry| entry.log_id);
        Ok(LogState { last_purged_log_id, last_log_id: last.or(last_purged_log_id) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let vote = serde_json::to_value(vote).map_err(write_error)?;
        self.change(move |store| store.save_vote(vote.clone()), |_| {})
            .await
            .map_err(|e| error(ErrorSubject::Vote, ErrorVerb::Write, e))
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        let vote = self.store.lock().vote().clone();
        serde_json::from_value(vote).map_err(|e| error(ErrorSubject::Vote, ErrorVerb::Read, e))
    }

    async fn save_committed(&mut self, committed: Option<EntryId>) -> Result<(), StorageError> {
        let which = to_json(&committed)?;
        self.change(move |store| store.set_committed(which.clone()), |_| {}).await.map_err(write_error)
    }

    async fn read_committed(&mut self) -> Result<Option<EntryId>, StorageError> {
        let committed = self.store.lock().content().committed.clone();
        committed.map_or(Ok(None), |which| from_json(&which))
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Group>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let encoded: Result<Vec<(u64, Bytes)>, StorageError> =
            entries.into_iter().map(|entry| Ok((entry.log_id.index, to_json(&entry)?))).collect();
        let encoded = encoded?;
        let new = encoded.clone();
        let appended =
            self.change(move |store| store.append(encoded.clone()), move |entries| entries.extend(new)).await;
        let failed = appended.as_ref().err().map(|e| write_error(AnyError::error(e)));
        callback.log_io_completed(appended);
        failed.map_or(Ok(()), Err)
    }

    async fn truncate(&mut self, from: EntryId) -> Result<(), StorageError> {
        let first = from.index;
        let forget = move |entries: &mut BTreeMap<u64, Bytes>| drop(entries.split_off(&first));
        self.change(move |store| store.remove_from(first), forget).await.map_err(write_error)
    }

    async fn purge(&mut self, last: EntryId) -> Result<(), StorageError> {
        self.wait_for_snapshot(last).await?;
        let which = to_json(&last)?;
        let next = last.index.saturating_add(1);
        let forget = move |entries: &mut BTreeMap<u64, Bytes>| *entries = entries.split_off(&next);
        self.change(move |store| store.purge(last.index, which.clone()), forget).await.map_err(write_error)
    }
}

pub(super) fn to_json(value: &impl Serialize) -> Result<Bytes, StorageError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(write_error)
}

pub(super) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StorageError> {
    serde_json::from_slice(bytes).map_err(|e| error(ErrorSubject::Logs, ErrorVerb::Read, e))
}

fn write_error(e: impl Into<WriteFailure>) -> StorageError {
    error(ErrorSubject::Logs, ErrorVerb::Write, e)
}

/// openraft's error for a failure of the disk. It stops the group on this node.
pub(super) fn error(
    subject: ErrorSubject<crate::state::RaftId>,
    verb: ErrorVerb,
    e: impl Into<WriteFailure>,
) -> StorageError {
    StorageIOError::new(subject, verb, e.into().0).into()
}

/// A cause, in openraft's form.
pub(super) struct WriteFailure(AnyError);

impl From<AnyError> for WriteFailure {
    fn from(e: AnyError) -> Self {
        Self(e)
    }
}

impl From<&str> for WriteFailure {
    fn from(e: &str) -> Self {
        Self(AnyError::error(e))
    }
}

impl From<io::Error> for WriteFailure {
    fn from(e: io::Error) -> Self {
        Self(AnyError::new(&e))
    }
}

impl From<serde_json::Error> for WriteFailure {
    fn from(e: serde_json::Error) -> Self {
        Self(AnyError::new(&e))
    }
}
