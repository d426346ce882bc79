//! openraft's view of the state machine and its snapshots.

use super::log_storage::{error, to_json};
use super::room::PatientPool;
use super::types::{Applied, Entry, EntryId, Group, SnapshotMeta, StorageError, StoredMembership};
use crate::log::{SavedSnapshot, SnapshotFile};
use crate::state::{Metadata, RaftId};
use bytes::Bytes;
use ombak_runtime::Published;
use openraft::storage::{RaftSnapshotBuilder, RaftStateMachine, Snapshot};
use openraft::{EntryPayload, ErrorSubject, ErrorVerb};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use tokio::sync::watch;

/// The state after some entry, with that entry and the membership.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    pub metadata: Metadata,
    pub applied: Option<EntryId>,
    pub membership: StoredMembership,
}

/// What the description in the file says of a snapshot.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    /// The log of the node that wrote the file.
    pub(super) log: RaftId,
    pub(super) meta: SnapshotMeta,
}

/// The newest snapshot.
struct Snapshots {
    file: SnapshotFile,
    log: RaftId,
    pool: PatientPool,
    /// The last entry that the file includes, as far as the file was written since the start.
    /// Locked while the file is written.
    on_disk: Arc<Mutex<Option<EntryId>>>,
    current: Mutex<Option<(SnapshotMeta, Bytes)>>,
    durable: watch::Sender<Option<EntryId>>,
}

impl Snapshots {
    /// Writes a snapshot to the disk, and then makes it the current one. While the disk has no room
    /// it waits. Building and installing may overlap, and then the newer one stays: without its
    /// entries, which are purged once it is durable, an older one would be of no use.
    async fn save(&self, meta: SnapshotMeta, state: Bytes) -> Result<(), StorageError> {
        let description = to_json(&Description { log: self.log, meta: meta.clone() })?;
        let (file, saved) = (self.file.clone(), SavedSnapshot { description, state: state.clone() });
        let (last, on_disk) = (meta.last_log_id, self.on_disk.clone());
        let save = move || {
            let mut on_disk = on_disk.lock();
            if *on_disk <= last {
                file.save(&saved)?;
                *on_disk = last;
            }
            Ok(())
        };
        let written = self.pool.carry_out(save).await;
        written.map_err(|e| error(ErrorSubject::Snapshot(None), ErrorVerb::Write, e))?;
        let mut current = self.current.lock();
        if current.as_ref().is_none_or(|(known, _)| known.last_log_id <= last) {
            *current = Some((meta, state));
        }
        drop(current);
        self.durable.send_if_modified(|durable| {
            let is_newer = *durable < last;
            if is_newer {
                *durable = last;
            }
            is_newer
        });
        Ok(())
    }
}

/// The state machine of a node.
pub(crate) struct Machine {
    position: Position,
    snapshots: Arc<Snapshots>,
    /// Gets each new position.
    published: Arc<Published<Arc<Position>>>,
}

/// A machine, and how others see it.
pub(crate) struct OpenMachine {
    pub machine: Machine,
    /// The newest position.
    pub published: Arc<Published<Arc<Position>>>,
    /// The last entry that the durable snapshot includes.
    pub durable_snapshot: watch::Receiver<Option<EntryId>>,
}

impl Machine {
    /// Begins with the saved snapshot. The error says what is wrong with it.
    pub fn open(
        file: SnapshotFile,
        saved: Option<SavedSnapshot>,
        log: RaftId,
        pool: PatientPool,
    ) -> Result<OpenMachine, String> {
        let damaged = |e: serde_json::Error| format!("is damaged ({e})");
        let mut position = Position::default();
        let mut current = None;
        if let Some(SavedSnapshot { description, state }) = saved {
            let Description { log: writer, meta } = serde_json::from_slice(&description).map_err(damaged)?;
            if writer != log {
                return Err(format!("belongs to the metadata log {writer} and not to {log}"));
            }
            position = position_of(&meta, &state).map_err(|e| e.to_string())?;
            current = Some((meta, state));
        }
        let (durable, durable_snapshot) = watch::channel(position.applied);
        let published = Arc::new(Published::new(Arc::new(position.clone())));
        let position_now = published.clone();
        let snapshots = Arc::new(Snapshots {
            file,
            log,
            pool,
            on_disk: Arc::new(Mutex::new(position.applied)),
            current: Mutex::new(current),
            durable,
        });
        let machine = Self { position, snapshots, published };
        Ok(OpenMachine { machine, published: position_now, durable_snapshot })
    }

    fn apply_entry(&mut self, entry: Entry) -> Applied {
        self.position.applied = Some(entry.log_id);
        match entry.payload {
            EntryPayload::Blank => Applied(None),
            EntryPayload::Normal(command) => Applied(self.position.metadata.apply(entry.log_id.index, command).err()),
            EntryPayload::Membership(membership) => {
                self.position.membership = StoredMembership::new(Some(entry.log_id), membership);
                Applied(None)
            }
        }
    }

    fn publish(&self) {
        self.published.set(Arc::new(self.position.clone()));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.published.end();
    }
}

pub(super) fn position_of(meta: &SnapshotMeta, state: &[u8]) -> Result<Position, crate::state::BadSavedMetadata> {
    let metadata = Metadata::from_bytes(state)?;
    Ok(Position { metadata, applied: meta.last_log_id, membership: meta.last_membership.clone() })
}

impl RaftStateMachine<Group> for Machine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<EntryId>, StoredMembership), StorageError> {
        Ok((self.position.applied, self.position.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Applied>, StorageError>
    where
        I: IntoIterator<Item = Entry> + Send,
        I::IntoIter: Send,
    {
        let applied = entries.into_iter().map(|entry| self.apply_entry(entry)).collect();
        self.publish();
        Ok(applied)
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder { position: self.position.clone(), snapshots: self.snapshots.clone() }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Bytes>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, snapshot: Box<Bytes>) -> Result<(), StorageError> {
        let position = position_of(meta, &snapshot)
            .map_err(|e| error(ErrorSubject::Snapshot(None), ErrorVerb::Read, io::Error::other(e)))?;
        self.snapshots.save(meta.clone(), *snapshot).await?;
        self.position = position;
        self.publish();
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Group>>, StorageError> {
        let current = self.snapshots.current.lock().clone();
        Ok(current.map(|(meta, state)| Snapshot { meta, snapshot: Box::new(state) }))
    }
}

/// Makes a snapshot of one position while the machine goes on.
pub(crate) struct Builder {
    position: Position,
    snapshots: Arc<Snapshots>,
}

impl RaftSnapshotBuilder<Group> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Group>, StorageError> {
        let Position { metadata, applied, membership } = self.position.clone();
        let snapshot_id = applied.map_or_else(|| "empty".to_owned(), |applied| applied.to_string());
        let meta = SnapshotMeta { last_log_id: applied, last_membership: membership, snapshot_id };
        // Encoding many buckets takes long enough to belong on a thread that may block.
        let encoded = match self.snapshots.pool.pool().run(move || metadata.to_bytes()).await {
            Ok(encoded) => encoded.map_err(io::Error::other),
            Err(e) => Err(io::Error::other(e)),
        };
        let state = Bytes::from(encoded.map_err(|e| error(ErrorSubject::Snapshot(None), ErrorVerb::Write, e))?);
        self.snapshots.save(meta.clone(), state.clone()).await?;
        Ok(Snapshot { meta, snapshot: Box::new(state) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::async_runtime::in_runtime;
    use super::*;
    use ombak_runtime::{Pool, Runtime, TokioRuntime};
    use ombak_storage::fs::FileSystem;
    use ombak_storage::fs::sim::FaultyFs;
    use openraft::{CommittedLeaderId, LogId};
    use std::path::Path;

    /// Building takes long while the disk is full, and the leader sends a newer snapshot meanwhile.
    #[test]
    fn a_snapshot_that_was_begun_earlier_does_not_replace_a_newer_one() {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let fs = FaultyFs::new(1);
        fs.create_dir_all(Path::new("/data")).unwrap();
        let file = SnapshotFile::new(fs, Path::new("/data"));
        let pool = PatientPool::new(Pool::start(&runtime, "metadata", 1, 16).unwrap());
        let opened = Machine::open(file.clone(), None, RaftId::new(1), pool).unwrap();
        let meta = |index| SnapshotMeta {
            last_log_id: Some(LogId::new(CommittedLeaderId::new(1, RaftId::new(1)), index)),
            last_membership: StoredMembership::default(),
            snapshot_id: index.to_string(),
        };
        let snapshots = opened.machine.snapshots.clone();
        tokio.block_on(in_runtime(&runtime, async {
            snapshots.save(meta(7), Bytes::from_static(b"newer")).await.unwrap();
            snapshots.save(meta(5), Bytes::from_static(b"older")).await.unwrap();
        }));
        assert_eq!(file.read().unwrap().unwrap().state, Bytes::from_static(b"newer"));
        assert_eq!(opened.durable_snapshot.borrow().map(|last| last.index), Some(7));
    }
}
