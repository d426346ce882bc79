//! Lets a fold find the keys of a job.

use crate::error::QueueError;
use crate::job::{JobId, JobKind};
use crate::key_file::{KeyFile, QueuedKey};
use crate::queues::Shared;
use crate::saved::{SavedJob, keys_path};
use crate::state::names_of;
use ombak_kv::folds::{FoldOf, FoldProgress, FoldRange, FoldWants, Found, FoundKey, KeyConsumer};
use ombak_kv::{Kv, MemoryReservation};
use ombak_runtime::BoxFuture;
use ombak_types::names::encode_storage_key;
use ombak_types::{Bucket, Error, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::sync::Arc;

/// The keys that are to be found.
pub(crate) struct Fill {
    pub(crate) kind: JobKind,
    pub(crate) range: FoldRange,
    pub(crate) part_of: Option<JobId>,
    /// How many keys are taken at most; the others are left for another job. Without it, a fold
    /// that finds more keys than there is room for is refused.
    pub(crate) keys_max: Option<u64>,
}

/// Finds keys, and adds a job of them if there are some. Returns their number.
pub(crate) async fn fill(
    shared: &Arc<Shared>,
    kv: &Kv,
    Fill { kind, range, part_of, keys_max }: Fill,
    room: &mut dyn MemoryReservation,
    progress: &FoldProgress,
) -> Result<u64, QueueError> {
    let bucket = match &range.of {
        FoldOf::Bucket(bucket) => bucket.clone(),
        FoldOf::Classes(_) => Bucket::untyped(""),
    };
    let wants = match kind {
        JobKind::Erase | JobKind::Drop => FoldWants::Living,
        JobKind::Reap => FoldWants::Tombstones,
        JobKind::Repair => FoldWants::Clocks,
    };
    let mut filler = Filler::begin(shared, kv, kind, (keys_max, part_of)).await?;
    let folded = kv.fold_keys_watched(range, wants, room, &mut filler, progress).await;
    if let Some(refused) = filler.refused.take() {
        return Err(refused);
    }
    if !filler.is_full {
        folded?;
    }
    let (id, taken) = (filler.reserved.id, filler.taken);
    if taken == 0 {
        return Ok(0);
    }
    let file = filler.file.clone();
    let file_bytes = shared
        .on_disk(kv, move |shared| {
            let mut file = file.lock();
            file.sync()?;
            shared.fs.sync_dir(&shared.dir)?;
            Ok(file.bytes())
        })
        .await?;
    let mut job = SavedJob::new(id, kind, names_of(&bucket), shared.now_secs());
    (job.keys, job.file_bytes, job.part_of) = (taken, file_bytes, part_of);
    shared.add(kv, job).await?;
    drop(filler);
    Ok(taken)
}

/// Writes the keys of a fold into the file of a job.
struct Filler {
    shared: Arc<Shared>,
    kv: Kv,
    kind: JobKind,
    keys_max: Option<u64>,
    file: Arc<Mutex<KeyFile>>,
    taken: u64,
    /// Why no more keys are taken.
    refused: Option<QueueError>,
    /// Lets a worker remove the file, unless there is a job.
    reserved: Reserved,
    /// Whether it has taken as many keys as it may.
    is_full: bool,
}

/// The number of a job that may come. If it is dropped before the job is there, a worker removes
/// the file.
struct Reserved {
    shared: Arc<Shared>,
    id: JobId,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shared.state.lock().break_off(self.id);
        self.shared.work.notify_waiters();
    }
}

impl Filler {
    async fn begin(
        shared: &Arc<Shared>,
        kv: &Kv,
        kind: JobKind,
        (keys_max, part_of): (Option<u64>, Option<JobId>),
    ) -> Result<Self, QueueError> {
        let reserved = {
            let mut state = shared.state.lock();
            let id = state.new_id(part_of, kv.is_leaving())?;
            state.begin_to_fill(id, kind);
            Reserved { shared: shared.clone(), id }
        };
        let id = reserved.id;
        let file = shared.on_disk(kv, move |shared| KeyFile::create(&*shared.fs, &keys_path(&shared.dir, id, 0)));
        let file = Arc::new(Mutex::new(file.await?));
        let (shared, kv) = (shared.clone(), kv.clone());
        Ok(Self { shared, kv, kind, keys_max, file, taken: 0, refused: None, reserved, is_full: false })
    }

    async fn write(&mut self, mut keys: Vec<FoundKey>) -> Result<(), QueueError> {
        // A home partition without keys says nothing about the room.
        if keys.is_empty() {
            return Ok(());
        }
        if let Some(keys_max) = self.keys_max {
            let in_queue = self.shared.state.lock().room(self.kind, self.shared.keys_max(self.kind));
            let room = keys_max.saturating_sub(self.taken).min(in_queue);
            if room == 0 && self.taken == 0 {
                return Err(QueueError::Full { kind: self.kind, room });
            }
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            self.is_full = keys.len() >= room;
            keys.truncate(room);
        }
        if keys.is_empty() {
            return Ok(());
        }
        let (kind, count) = (self.kind, keys.len() as u64);
        let found = self.shared.state.lock().found(self.reserved.id, kind, count, self.shared.keys_max(kind));
        found.map_err(|room| QueueError::Full { kind, room })?;
        self.taken += count;
        let file = self.file.clone();
        let write = move |_: &Shared| {
            let keys: Vec<QueuedKey> = keys.into_iter().filter_map(queued).collect();
            file.lock().append(&keys)
        };
        self.shared.on_disk(&self.kv, write).await
    }
}

impl KeyConsumer for Filler {
    fn take(&mut self, keys: Vec<FoundKey>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let ends = |why: String| Err(StoreFailure::new(StoreFailureKind::Busy, why).into());
            match self.write(keys).await {
                Ok(()) if self.is_full => ends("there are enough keys".to_owned()),
                Ok(()) => Ok(()),
                Err(refused) => {
                    let why = refused.to_string();
                    self.refused = Some(refused);
                    ends(why)
                }
            }
        })
    }
}

/// A key as it is kept. All folds of jobs ask for clocks.
fn queued(FoundKey { bucket, key, found }: FoundKey) -> Option<QueuedKey> {
    let Found::Clock(clock) = found else { return None };
    let mut storage_key = Vec::new();
    encode_storage_key(&bucket, &key, &mut storage_key);
    Some((storage_key.into(), clock))
}
