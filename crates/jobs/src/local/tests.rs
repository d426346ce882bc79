//! What a node bounds when it works on pieces.

use super::*;
use crate::part::{PartWork, PhaseOfPart};
use crate::{JobFunctions, Jobs, NoPartNodes};
use bytes::Bytes;
use ombak_functions::{Catalogue, FunctionPool, NothingRegistered, PoolConfig};
use ombak_kv::{KvConfig, PutOptions, PutRequest, head_terms};
use ombak_mapreduce::{Input, Job, Phase};
use ombak_runtime::{OtherClocks, TokioRuntime, give_way, pauses_of_this_thread};
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::{Bucket, Object, Sibling};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Node {
    pub(crate) kv: Kv,
    pub(crate) jobs: Jobs,
    _dir: tempfile::TempDir,
}

impl Node {
    pub(crate) fn open(config: JobsConfig) -> Self {
        Self::open_in(config, Arc::new(TokioRuntime))
    }

    fn open_in(config: JobsConfig, runtime: Arc<dyn Runtime>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backend = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
        let mut kv_config = KvConfig::new("riak@127.0.0.1", dir.path(), backend);
        (kv_config.ring_size, kv_config.runtime) = (8, runtime);
        let kv = Kv::open(kv_config).unwrap();
        let jobs = Jobs::new(kv.clone(), config, Arc::new(NoPartNodes));
        Self { kv, jobs, _dir: dir }
    }

    async fn put(&self, key: &str, value: Vec<u8>) {
        let object = Object::new(Sibling::new(value));
        let key = Some(Bytes::copy_from_slice(key.as_bytes()));
        let request = PutRequest { bucket: Bucket::untyped("b"), key, object, options: PutOptions::default() };
        self.kv.put(request).await.unwrap();
    }

    pub(crate) async fn fill(&self, count: u32) {
        for n in 0..count {
            self.put(&format!("k{n}"), vec![b'x']).await;
        }
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.jobs.local_parts().inner
    }
}

pub(crate) fn inputs(keys: impl IntoIterator<Item = u32>) -> Vec<Input> {
    keys.into_iter().map(|n| Input::new(Bucket::untyped("b"), Bytes::from(format!("k{n}")))).collect()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A piece that reads objects.
fn piece_of(keys: Vec<Input>, deadline: Instant) -> PartRequest {
    let function = r#"{"language":"erlang","module":"riak_kv_mapreduce","function":"map_object_value"}"#;
    mapped_with(function, keys, deadline)
}

fn mapped_with(function: &str, keys: Vec<Input>, deadline: Instant) -> PartRequest {
    let job = format!(r#"{{"inputs":"b","query":[{{"map":{function}}}]}}"#);
    let phase: Phase = Job::from_json(job.as_bytes()).unwrap().phases.remove(0);
    let map = Some(PhaseOfPart { number: 0, phase });
    PartRequest { job: 1, work: PartWork::Keys(keys), from: None, map, prereduce: None, deadline }
}

#[tokio::test]
async fn a_piece_waits_for_its_turn_until_its_deadline() {
    let node = Node::open(JobsConfig { parts_at_once_max: 1, ..JobsConfig::default() });
    node.fill(1).await;
    let parts = node.jobs.local_parts();
    let turn = node.inner().turn(soon()).await.unwrap();
    let late = parts.piece_as(piece_of(inputs(0..1), Instant::now() + Duration::from_millis(20)), |piece| piece).await;
    assert_eq!(late, Err(PartError::Failed(Failure::Timeout)));
    let waiting = tokio::spawn(parts.piece_as(piece_of(inputs(0..1), soon()), |piece| piece));
    while node.inner().counts.pieces_waiting.get() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(node.inner().counts.pieces_active.get(), 0);
    drop(turn);
    assert_eq!(waiting.await.unwrap().unwrap().results.len(), 1);
    assert_eq!((node.inner().counts.pieces_waiting.get(), node.inner().counts.pieces.get()), (0, 1));
}

#[tokio::test]
async fn a_piece_ends_when_its_time_is_over_and_the_next_one_goes_on_there() {
    let node = Node::open(JobsConfig { piece_time_max: Duration::ZERO, ..JobsConfig::default() });
    node.fill(100).await;
    let (mut request, mut pieces) = (piece_of(inputs(0..100), soon()), Vec::new());
    loop {
        let piece = node.jobs.local_parts().piece_as(request.clone(), |piece| piece).await.unwrap();
        pieces.push(piece.results.len());
        match piece.from {
            Some(from) => request.from = Some(from),
            None => break,
        }
    }
    assert_eq!(pieces, [KEYS_AT_ONCE_MAX, KEYS_AT_ONCE_MAX, KEYS_AT_ONCE_MAX, 4]);
}

ombak_functions::function_worker_of_tests!();

#[tokio::test]
async fn calls_of_a_function_end_with_the_time_of_their_piece() {
    let pool = FunctionPool::new(Arc::new(TokioRuntime), PoolConfig::default(), program());
    let catalogue = Catalogue::new(Arc::new(NothingRegistered), Vec::new(), false);
    let functions = Some(JobFunctions { pool, catalogue });
    let node = Node::open(JobsConfig { functions, piece_time_max: Duration::ZERO, ..JobsConfig::default() });
    node.fill(5).await;
    let request = mapped_with(r#"{"language":"javascript","name":"Riak.mapValues"}"#, inputs(0..5), soon());
    let piece = node.jobs.local_parts().piece_as(request, |piece| piece).await.unwrap();
    assert_eq!((piece.results.len(), piece.from.is_some()), (1, true));
}

#[tokio::test]
async fn a_short_piece_does_not_wait_for_the_end_of_a_long_one() {
    const KEYS: usize = 200_000;
    let long_time = Duration::from_secs(60);
    let node = Node::open(JobsConfig {
        threads: 1,
        piece_time_max: long_time,
        piece_bytes_max: usize::MAX,
        ..JobsConfig::default()
    });
    node.fill(1).await;
    let parts = node.jobs.local_parts();
    let keys = vec![inputs(0..1).remove(0); KEYS];
    let long = tokio::spawn(parts.piece_as(piece_of(keys, soon()), |piece| piece.results.len()));
    while node.inner().counts.pieces_active.get() == 0 {
        tokio::task::yield_now().await;
    }
    parts.piece_as(piece_of(inputs(0..1), soon()), |piece| piece).await.unwrap();
    assert!(!long.is_finished());
    long.abort();
}

#[tokio::test]
async fn a_piece_ends_when_it_has_enough_bytes() {
    let node = Node::open(JobsConfig { piece_bytes_max: 1, ..JobsConfig::default() });
    node.fill(100).await;
    let piece = node.jobs.local_parts().piece_as(piece_of(inputs(0..100), soon()), |piece| piece).await.unwrap();
    assert_eq!((piece.results.len(), piece.from.is_some()), (KEYS_AT_ONCE_MAX, true));
}

#[tokio::test]
async fn objects_are_read_together_up_to_a_bound_of_their_bytes() {
    let node = Node::open(JobsConfig::default());
    for n in 0..4 {
        node.put(&format!("k{n}"), vec![b'x'; 600 << 10]).await;
    }
    let read = node.inner().on_thread(soon(), |worker| async move { worker.read(&inputs(0..4), soon()).await });
    let read = read.await.unwrap();
    assert_eq!(read.len(), 2, "the second one passes the bound of 1 MiB");
}

/// Says when it is dropped.
struct Dropped(Option<oneshot::Sender<()>>);

impl Dropped {
    fn new() -> (Self, oneshot::Receiver<()>) {
        let (tell, told) = oneshot::channel();
        (Self(Some(tell)), told)
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        // The test may have ended.
        self.0.take().map(|tell| tell.send(()));
    }
}

#[tokio::test]
async fn work_ends_when_nobody_waits_for_it() {
    let node = Node::open(JobsConfig { threads: 1, ..JobsConfig::default() });
    let (begin, begun) = oneshot::channel();
    let (held, dropped) = Dropped::new();
    let inner = node.inner().clone();
    let waits = tokio::spawn(async move {
        let work = |_| async move {
            let _held = held;
            begin.send(()).unwrap();
            std::future::pending::<Result<(), PartError>>().await
        };
        inner.on_thread(soon(), work).await
    });
    begun.await.unwrap();
    waits.abort();
    timeout(PATIENCE, dropped).await.unwrap().unwrap();
}

#[tokio::test]
async fn work_that_waits_for_a_thread_goes_with_its_waiter() {
    let node = Node::open(JobsConfig { threads: 1, ..JobsConfig::default() });
    let (open, gate) = sync_channel::<()>(1);
    let (begin, begun) = oneshot::channel();
    let inner = node.inner().clone();
    let first = tokio::spawn(async move {
        let work = |_| async move {
            begin.send(()).unwrap();
            gate.recv().unwrap();
            Ok(())
        };
        inner.on_thread(soon(), work).await
    });
    begun.await.unwrap();
    let (held, dropped) = Dropped::new();
    let second = node.inner().on_thread(Instant::now() + Duration::from_millis(20), |_| async move {
        let _held = held;
        Ok(())
    });
    assert_eq!(second.await, Err(PartError::Failed(Failure::Timeout)));
    timeout(PATIENCE, dropped).await.unwrap().unwrap();
    assert!(!first.is_finished());
    open.send(()).unwrap();
    assert_eq!(first.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn work_that_panics_is_lost_and_its_thread_goes_on() {
    let node = Node::open(JobsConfig { threads: 1, ..JobsConfig::default() });
    let broken = node.inner().on_thread(soon(), |_| async { panic!("on purpose") });
    let lost: Result<(), PartError> = broken.await;
    assert!(matches!(&lost, Err(PartError::Lost(Error::Storage(_)))), "{lost:?}");
    let encoded = SentPiece::Encoded(Box::new(|| panic!("on purpose")));
    let lost = node.jobs.local_parts().read(encoded, soon()).await;
    assert!(matches!(&lost, Err(PartError::Lost(Error::Storage(_)))), "{lost:?}");
    assert_eq!(node.inner().on_thread(soon(), |_| async { Ok(7) }).await, Ok(7));
}

/// A turn that ended with its waiter would let any number of pieces be under way.
#[tokio::test]
async fn a_turn_lasts_as_long_as_the_work() {
    let (open, opened) = sync_channel::<()>(1);
    let (opened, has_begun) = (Mutex::new(opened), Arc::new(AtomicBool::new(false)));
    let begun = has_begun.clone();
    // A piece looks at the clock first, and waits there until the other end of the channel is gone.
    let clocks = OtherClocks::of(Arc::new(TokioRuntime)).with_monotonic_clock(move || {
        if thread::current().name() == Some("ombak-job") {
            begun.store(true, Ordering::SeqCst);
            opened.lock().recv().unwrap_err();
        }
        Instant::now()
    });
    let node = Node::open_in(JobsConfig { parts_at_once_max: 1, ..JobsConfig::default() }, Arc::new(clocks));
    node.fill(1).await;
    let parts = node.jobs.local_parts();
    let piece = tokio::spawn(parts.piece_as(piece_of(inputs(0..1), soon()), |piece| piece));
    while !has_begun.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    piece.abort();
    assert!(piece.await.unwrap_err().is_cancelled());
    assert_eq!(node.inner().turns.available_permits(), 0, "the work goes on");
    drop(open);
    while node.inner().turns.available_permits() == 0 {
        tokio::task::yield_now().await;
    }
}

/// How often a thread that gives way pauses while it does this.
pub(crate) fn pauses_in(work: impl FnOnce() + Send + 'static) -> u64 {
    let working = thread::spawn(move || {
        give_way();
        work();
        pauses_of_this_thread()
    });
    working.join().unwrap()
}
