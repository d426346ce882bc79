//! The queues of a node.

use crate::config::KeyQueuesConfig;
use crate::drop;
use crate::error::QueueError;
use crate::figures::Counters;
use crate::fill::{self, Fill};
use crate::job::{JobEnd, JobId, JobKind, JobStatus};
use crate::saved::{self, SavedJob, keys_path, record_path};
use crate::state::State;
use crate::worker;
use ombak_kv::folds::{FoldProgress, FoldRange};
use ombak_kv::{Kv, MemoryReservation, WeakKv};
use ombak_runtime::{Runtime, RuntimeExt};
use ombak_storage::fs::FileSystem;
use ombak_types::Bucket;
use parking_lot::Mutex;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long the queues wait before they are read again, if that fails.
const OPEN_INTERVAL: Duration = Duration::from_secs(5);
/// The directory of the queues in that of the node.
const DIRECTORY: &str = "key_queues";

/// The queues of a node. Cheap to clone: clones share everything.
#[derive(Clone)]
pub struct KeyQueues {
    pub(crate) kv: Kv,
    pub(crate) shared: Arc<Shared>,
}

/// What the handle and the workers share. It does not keep the engine.
pub(crate) struct Shared {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) config: KeyQueuesConfig,
    pub(crate) state: Arc<Mutex<State>>,
    pub(crate) counters: Arc<Counters>,
    /// Wakes the workers.
    pub(crate) work: Notify,
    /// Lets one record be written at a time, so that the last one has the last state. It is taken
    /// by the thread that writes, because nobody may wait for that any more.
    saving: Mutex<()>,
    is_working: AtomicBool,
}

impl KeyQueues {
    /// The queues of a node. They are not open before [`Self::start`].
    pub fn new(kv: &Kv, config: KeyQueuesConfig) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let counters = Arc::new(Counters::new(&state));
        let shared = Shared {
            runtime: kv.shared_runtime().clone(),
            fs: kv.file_system().clone(),
            dir: kv.data_dir().join(DIRECTORY),
            config,
            state,
            counters,
            work: Notify::new(),
            saving: Mutex::new(()),
            is_working: AtomicBool::new(false),
        };
        Self { kv: kv.clone(), shared: Arc::new(shared) }
    }

    /// Reads the jobs of an earlier run and starts the workers, once. They end when the engine
    /// closes. Call it where `Runtime::spawn` works.
    pub fn start(&self) {
        if self.shared.is_working.swap(true, Ordering::SeqCst) {
            return;
        }
        self.kv.stats().attach(self.shared.counters.clone());
        let state = Arc::downgrade(&self.shared.state);
        self.kv.count_jobs_with(Box::new(move || state.upgrade().map_or(0, |state| state.lock().not_ended())));
        let (shared, engine) = (self.shared.clone(), self.kv.downgrade());
        self.shared.runtime.spawn(Box::pin(async move {
            if !shared.open(&engine).await {
                return;
            }
            for kind in [JobKind::Erase, JobKind::Reap, JobKind::Repair] {
                shared.runtime.spawn(Box::pin(worker::run(shared.clone(), engine.clone(), kind)));
            }
            drop::run(shared, engine).await;
        }));
    }

    /// Lets a fold find keys, and keeps them as a job. Returns their number when all of them are on
    /// the disk. `kind` is not [`JobKind::Drop`].
    ///
    /// Fails if the fold fails or finds more keys than there is room for. Then there is no job. If
    /// the future is dropped, there is none either.
    pub async fn fill(
        &self,
        kind: JobKind,
        range: FoldRange,
        room: &mut dyn MemoryReservation,
    ) -> Result<u64, QueueError> {
        self.fill_watched(kind, range, room, &FoldProgress::default()).await
    }

    /// As [`Self::fill`]. `progress` says meanwhile how far the fold is.
    pub async fn fill_watched(
        &self,
        kind: JobKind,
        range: FoldRange,
        room: &mut dyn MemoryReservation,
        progress: &FoldProgress,
    ) -> Result<u64, QueueError> {
        let fill = Fill { kind, range, part_of: None, keys_max: None };
        fill::fill(&self.shared, &self.kv, fill, room, progress).await
    }

    /// Begins to drop a bucket: to erase everything that is written in it up to now, and then to
    /// reap the tombstones. Returns the job, which may have begun earlier.
    pub async fn drop_bucket(&self, bucket: &Bucket) -> Result<JobId, QueueError> {
        drop::begin(&self.shared, &self.kv, bucket).await
    }

    /// All jobs that wait or work, and the last ones that have ended.
    pub fn jobs(&self) -> Vec<JobStatus> {
        self.shared.state.lock().statuses()
    }

    /// Lets a job rest, also after a restart. A page that a worker has begun is finished.
    pub async fn pause(&self, id: JobId) -> Result<(), QueueError> {
        self.set_paused(id, true).await
    }

    /// Lets a job go on that was paused.
    pub async fn resume(&self, id: JobId) -> Result<(), QueueError> {
        self.set_paused(id, false).await
    }

    /// Ends a job. What it has not done stays as it is.
    pub async fn cancel(&self, id: JobId) -> Result<(), QueueError> {
        let part = {
            let mut state = self.shared.state.lock();
            state.named(id)?;
            state.part_of(id)
        };
        self.shared.end(&self.kv, id, JobEnd::Cancelled).await?;
        match part {
            Some(part) => self.shared.end(&self.kv, part, JobEnd::Cancelled).await,
            None => Ok(()),
        }
    }

    async fn set_paused(&self, id: JobId, is_paused: bool) -> Result<(), QueueError> {
        self.shared.state.lock().named(id)?.saved.is_paused = is_paused;
        self.shared.work.notify_waiters();
        self.shared.save(&self.kv, id).await
    }
}

impl Shared {
    /// Reads the jobs of an earlier run, as often as needed. Returns false if the engine closes.
    async fn open(self: &Arc<Self>, engine: &WeakKv) -> bool {
        loop {
            let Some(kv) = engine.upgrade().filter(Kv::is_open) else { return false };
            match self.on_disk(&kv, |shared| saved::read_all(&*shared.fs, &shared.dir)).await {
                Ok((jobs, last_id)) => {
                    *self.state.lock() = State::new(jobs, last_id);
                    return true;
                }
                Err(error) => tracing::error!(%error, "the queues of keys cannot be read; this is tried again"),
            }
            drop(kv);
            self.runtime.sleep(OPEN_INTERVAL).await;
        }
    }

    /// How many keys of a kind may wait.
    pub(crate) fn keys_max(&self, kind: JobKind) -> u64 {
        match kind {
            JobKind::Erase | JobKind::Drop => self.config.erase_keys_max,
            JobKind::Reap => self.config.reap_keys_max,
            JobKind::Repair => self.config.repair_keys_max,
        }
    }

    pub(crate) fn now_secs(&self) -> u64 {
        self.runtime.wall_clock().secs()
    }

    /// Works with files on a thread that may wait.
    pub(crate) async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        kv: &Kv,
        work: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, QueueError> {
        let shared = self.clone();
        let done = kv.offload(move || work(&shared)).await?;
        done.map_err(|error| QueueError::Disk(error.to_string()))
    }

    /// Makes the state of a job durable.
    pub(crate) async fn save(self: &Arc<Self>, kv: &Kv, id: JobId) -> Result<(), QueueError> {
        let save = move |shared: &Self| {
            let _turn = shared.saving.lock();
            let saved = shared.state.lock().job(id).map(|job| job.saved.clone());
            let Some(saved) = saved else { return Ok(()) };
            saved.save(&*shared.fs, &shared.dir)?;
            shared.state.lock().was_saved(&saved);
            Ok(())
        };
        self.on_disk(kv, save).await
    }

    /// Ends what was to end before and could not: jobs of drops that have ended, and jobs whose
    /// records do not say that they have ended.
    pub(crate) async fn end_what_is_left(self: &Arc<Self>, kv: &Kv) -> Result<(), QueueError> {
        let (orphan, unsaved) = {
            let state = self.state.lock();
            (state.orphan(), state.unsaved_end())
        };
        if let Some(id) = orphan {
            self.end(kv, id, JobEnd::Cancelled).await?;
        }
        if let Some(id) = unsaved {
            self.save_end(kv, id).await?;
        }
        Ok(())
    }

    /// Adds a job whose keys are on the disk. It is there, or not, as a whole: the thread that
    /// writes its record adds it.
    pub(crate) async fn add(self: &Arc<Self>, kv: &Kv, job: SavedJob) -> Result<(), QueueError> {
        let add = move |shared: &Self| {
            job.save(&*shared.fs, &shared.dir)?;
            let id = job.id;
            let Some(forgotten) = shared.state.lock().add(job) else {
                return shared.remove(record_path(&shared.dir, id));
            };
            for id in forgotten {
                if let Err(error) = shared.remove(record_path(&shared.dir, id)) {
                    tracing::warn!(job = id, %error, "the record of a job that has ended cannot be removed");
                }
            }
            Ok(())
        };
        let added = self.on_disk(kv, add).await;
        self.work.notify_waiters();
        added
    }

    /// Ends a job, and removes its keys.
    pub(crate) async fn end(self: &Arc<Self>, kv: &Kv, id: JobId, end: JobEnd) -> Result<(), QueueError> {
        tracing::info!(job = id, ?end, "a job of keys has ended");
        self.state.lock().end(id, end, self.now_secs());
        self.work.notify_waiters();
        self.save_end(kv, id).await
    }

    /// Makes the end of a job durable. If that fails, a worker does it later.
    async fn save_end(self: &Arc<Self>, kv: &Kv, id: JobId) -> Result<(), QueueError> {
        let known = self.state.lock().job(id).map(|job| (job.saved.part_of, job.saved.generation));
        let Some((part_of, generation)) = known else { return Ok(()) };
        if let Some(drop) = part_of {
            self.save(kv, drop).await?;
        }
        self.save(kv, id).await?;
        self.on_disk(kv, move |shared| shared.remove(keys_path(&shared.dir, id, generation))).await
    }

    /// Removes a file that may be gone.
    pub(crate) fn remove(&self, path: PathBuf) -> io::Result<()> {
        match self.fs.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
