//! A node with queues, which a test can stop and start again.

use ombak_key_queues::{JobEnd, JobId, JobKind, JobStatus, KeyQueues, KeyQueuesConfig, QueueError};
use ombak_kv::folds::{FoldRange, FoldWants};
use ombak_kv::hooks::{Hooks, PutFilter};
use ombak_kv::{
    DeleteMode, DeleteRequest, GetOptions, GetReply, GetRequest, Kv, KvConfig, MemoryReservation, PutOptions,
    PutRequest,
};
use ombak_runtime::{BoxFuture, OtherClocks, TokioRuntime};
use ombak_storage::fs::RealFs;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, BucketProps, Error, Object, Sibling, VectorClock};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a test waits for a condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// Memory without a limit.
pub struct Unlimited;

impl MemoryReservation for Unlimited {
    fn reserve(&mut self, _bytes: u64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Refuses to write keys whose names begin with `refused`, as long as it is told to.
struct Refuses(Arc<AtomicBool>);

impl PutFilter for Refuses {
    fn before_put(&self, _: &Bucket, key: &[u8], _: &BucketProps, _: &mut Object) -> Result<(), Error> {
        let is_refused = key.starts_with(b"refused") && self.0.load(Ordering::SeqCst);
        if is_refused { Err(Error::Overload) } else { Ok(()) }
    }
}

pub struct Node {
    pub dir: TempDir,
    pub kv: Kv,
    pub queues: KeyQueues,
    pub wall_secs: Arc<AtomicU64>,
    pub refuses: Arc<AtomicBool>,
}

impl Node {
    pub async fn start(config: KeyQueuesConfig) -> Self {
        Self::start_in(TempDir::new().unwrap(), Arc::new(AtomicU64::new(2_000_000_000)), config).await
    }

    async fn start_in(dir: TempDir, wall_secs: Arc<AtomicU64>, config: KeyQueuesConfig) -> Self {
        let refuses = Arc::new(AtomicBool::new(false));
        let kv = open(dir.path(), wall_secs.clone(), refuses.clone());
        let queues = KeyQueues::new(&kv, config);
        queues.start();
        let node = Self { dir, kv, queues, wall_secs, refuses };
        // The jobs are read beside this.
        node.until("the queues are open", || async {
            !matches!(node.queues.pause(JobId::MAX).await, Err(QueueError::NotOpen))
                && !matches!(node.fill(JobKind::Erase, "no such bucket").await, Err(QueueError::NotOpen))
        })
        .await;
        node
    }

    /// Ends the node and starts it again.
    pub async fn restart(self, config: KeyQueuesConfig) -> Self {
        let Self { dir, kv, queues, wall_secs, .. } = self;
        drop(queues);
        tokio::task::spawn_blocking(move || kv.close()).await.unwrap();
        Self::start_in(dir, wall_secs, config).await
    }

    pub async fn put(&self, bucket: &str, key: &str, value: &str) {
        self.put_with(bucket, key, value, VectorClock::new()).await;
    }

    pub async fn put_with(&self, bucket: &str, key: &str, value: &str, clock: VectorClock) {
        let object = Object { clock, siblings: vec![Sibling::new(value.to_owned())] };
        let key = Some(key.to_owned().into());
        let request =
            PutRequest { bucket: Bucket::untyped(bucket.to_owned()), key, object, options: PutOptions::default() };
        self.kv.put(request).await.unwrap();
    }

    pub async fn delete(&self, bucket: &str, key: &str) {
        let (get, put) = (GetOptions::default(), PutOptions::default());
        let bucket = Bucket::untyped(bucket.to_owned());
        let request = DeleteRequest { bucket, key: key.to_owned().into(), clock: None, get, put, rw: None };
        self.kv.delete(request).await.unwrap();
    }

    pub async fn get(&self, bucket: &str, key: &str) -> Option<Object> {
        let bucket = Bucket::untyped(bucket.to_owned());
        let request = GetRequest { bucket, key: key.to_owned().into(), options: GetOptions::default() };
        match self.kv.get(request).await.unwrap() {
            GetReply::Found(object) => Some(object),
            GetReply::NotFound { .. } => None,
        }
    }

    pub async fn fill(&self, kind: JobKind, bucket: &str) -> Result<u64, QueueError> {
        let range = FoldRange::of_bucket(Bucket::untyped(bucket.to_owned()));
        self.queues.fill(kind, range, &mut Unlimited).await
    }

    /// How many living objects and how many tombstones a bucket has.
    pub async fn count(&self, bucket: &str) -> (usize, usize) {
        let range = || FoldRange::of_bucket(Bucket::untyped(bucket.to_owned()));
        let living = self.kv.fold(range(), FoldWants::Living, &mut Unlimited).await.unwrap().keys.len();
        let tombstones = self.kv.fold(range(), FoldWants::Tombstones, &mut Unlimited).await.unwrap().keys.len();
        (living, tombstones)
    }

    pub fn job(&self, id: JobId) -> JobStatus {
        self.queues.jobs().into_iter().find(|job| job.id == id).expect("the job is known")
    }

    /// The last job, when all have ended.
    pub async fn last_ended(&self) -> JobStatus {
        let ended = || async { self.queues.jobs().iter().all(|job| job.ended.is_some()) };
        self.until("all jobs have ended", ended).await;
        self.queues.jobs().pop().expect("a job")
    }

    pub async fn until<F: Future<Output = bool>>(&self, what: &str, is_so: impl Fn() -> F) {
        let end = Instant::now() + PATIENCE;
        while !is_so().await {
            assert!(Instant::now() < end, "not in time: {what}: {:?}", self.queues.jobs());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The files of jobs.
    pub fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.dir.path().join("key_queues")).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn set_time(&self, secs: u64) {
        self.wall_secs.store(secs, Ordering::SeqCst);
    }
}

/// Whether a job has done all that it had to do.
pub fn is_done(job: &JobStatus) -> bool {
    matches!(job.ended, Some((JobEnd::Done, _)))
}

fn open(dir: &Path, wall_secs: Arc<AtomicU64>, refuses: Arc<AtomicBool>) -> Kv {
    let stores = BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), JournalConfig::default()).unwrap();
    let clock = move || UnixMicros::from_secs(wall_secs.load(Ordering::SeqCst));
    let runtime = OtherClocks::of(Arc::new(TokioRuntime)).with_wall_clock(clock);
    let config = KvConfig {
        ring_size: 8,
        delete_mode: DeleteMode::Keep,
        runtime: Arc::new(runtime),
        hooks: Hooks { filters: vec![Arc::new(Refuses(refuses))], ..Hooks::default() },
        ..KvConfig::new("riak@127.0.0.1", dir, Arc::new(stores))
    };
    Kv::open(config).unwrap()
}
