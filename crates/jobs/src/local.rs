//! The work of this node on parts of jobs.
//!
//! A piece is done on a thread that gives way to all others ([`Worker`]). The task that serves its
//! request waits for it on a thread of the connections. There it also does for the worker what ends
//! on such threads: gets that ask other replicas, and listings. So a piece changes threads twice,
//! and once more for each of those.

mod kept;
mod keys;
mod mapping;
mod reading;
mod reducing;
mod results;
mod scripts;
mod worker;

use crate::JobsConfig;
use crate::counts::JobCounts;
use crate::part::{PartAnswer, PartClient, PartError, PartRequest, SentPiece};
use kept::KeptKeys;
use keys::PieceKeys;
use ombak_kv::Kv;
use ombak_mapreduce::{Failure, Reducer, Values};
use ombak_runtime::{BoxFuture, Runtime, TaskThreads, within};
use ombak_stats::ActiveGuard;
use ombak_types::etf::Term;
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use results::Results;
use scripts::OpenFunctions;
use std::future::{Future, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::yield_now;
use worker::Worker;

/// How many keys are read and mapped together, at most.
const KEYS_AT_ONCE_MAX: usize = 32;

/// This node as one that works on parts. Cheap to clone: clones share everything.
#[derive(Clone)]
pub struct LocalParts {
    inner: Arc<Inner>,
}

struct Inner {
    kv: Kv,
    runtime: Arc<dyn Runtime>,
    config: JobsConfig,
    counts: Arc<JobCounts>,
    /// The threads. They begin with the first work.
    threads: Mutex<Option<Arc<dyn TaskThreads>>>,
    turns: Arc<Semaphore>,
    kept: Mutex<KeptKeys>,
    functions: OpenFunctions,
}

impl LocalParts {
    pub(crate) fn new(kv: Kv, runtime: Arc<dyn Runtime>, config: JobsConfig, counts: Arc<JobCounts>) -> Self {
        let turns = Arc::new(Semaphore::new(config.parts_at_once_max.max(1)));
        let (threads, kept) = (Mutex::new(None), Mutex::new(KeptKeys::default()));
        let functions = OpenFunctions::default();
        Self { inner: Arc::new(Inner { kv, runtime, config, counts, threads, turns, kept, functions }) }
    }

    /// Calls the function of a reduce phase.
    pub(crate) async fn reduce(
        &self,
        (job, number): (u128, usize),
        function: &Reducer,
        arg: &Arc<Term>,
        values: Vec<Values>,
        deadline: Instant,
    ) -> Result<Values, Failure> {
        let (function, arg) = (function.clone(), arg.clone());
        let reduced = self.inner.on_thread(deadline, move |worker| async move {
            let values = Values::concat(values);
            worker.reduce((job, number), &function, &arg, values, deadline).await.map(Values::from)
        });
        let reduced = reduced.await;
        reduced.map_err(|error| match error {
            PartError::Failed(failure) => failure,
            PartError::Lost(error) => Failure::Other(error.to_string()),
        })
    }

    /// Works on a piece, and makes of it on the same thread what the caller needs.
    pub fn piece_as<T: Send + 'static>(
        &self,
        request: PartRequest,
        make: fn(PartAnswer) -> T,
    ) -> BoxFuture<'static, Result<T, PartError>> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.piece(request, make).await })
    }

    /// Drops something large on a thread for jobs.
    pub(crate) fn drop_later<T: Send + 'static>(&self, large: T) {
        self.inner.later(move || drop(large));
    }

    /// Decodes a piece.
    pub(crate) async fn read(&self, piece: SentPiece, deadline: Instant) -> Result<PartAnswer, PartError> {
        match piece {
            SentPiece::Read(answer) => Ok(answer),
            encoded => self.inner.on_thread(deadline, |_| async { encoded.read() }).await,
        }
    }
}

impl PartClient for LocalParts {
    fn piece(&self, request: PartRequest) -> BoxFuture<'static, Result<SentPiece, PartError>> {
        self.piece_as(request, SentPiece::Read)
    }

    fn end_job(&self, job: u128) -> BoxFuture<'static, ()> {
        let inner = self.inner.clone();
        // Nothing is kept if nothing has run here.
        self.inner.later(move || {
            let forgotten = inner.kept.lock().forget(job);
            drop(forgotten);
            inner.functions.forget(job);
        });
        Box::pin(ready(()))
    }
}

impl Inner {
    async fn piece<T: Send + 'static>(
        self: &Arc<Self>,
        request: PartRequest,
        make: fn(PartAnswer) -> T,
    ) -> Result<T, PartError> {
        let deadline = request.deadline;
        let turn = self.turn(deadline).await?;
        let _active = ActiveGuard::new(&self.counts.pieces_active);
        let _maps = request.map.is_some().then(|| ActiveGuard::new(&self.counts.maps_active));
        let work = move |worker: Worker| async move {
            // The turn is over when the work is, also if nobody waits for it.
            let _turn = turn;
            worker.piece(&request).await.map(make)
        };
        let answer = self.on_thread(deadline, work).await;
        if answer.is_ok() {
            self.counts.pieces.add(1);
        }
        answer
    }

    /// Waits until this node works on less.
    async fn turn(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, PartError> {
        let _waiting = ActiveGuard::new(&self.counts.pieces_waiting);
        let turn = within(&*self.runtime, Some(deadline), Box::pin(self.turns.clone().acquire_owned())).await;
        let turn = turn.map_err(|_| PartError::Failed(Failure::Timeout))?;
        turn.map_err(|_| PartError::Lost(Error::Stopping))
    }

    /// Lets a worker do something on a thread for jobs, and waits for it no longer than until
    /// `deadline`. When nobody waits any more, work that waits is dropped at once, and work that
    /// has begun ends at its next await.
    async fn on_thread<T, W>(
        self: &Arc<Self>,
        deadline: Instant,
        work: impl FnOnce(Worker) -> W + Send + 'static,
    ) -> Result<T, PartError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, PartError>> + Send,
    {
        let threads = self.threads().map_err(PartError::Lost)?;
        let (ask, asked) = mpsc::channel(1);
        let (mut give, take) = oneshot::channel();
        let worker = Worker::new(self.clone(), ask);
        let waiting = Arc::new(Mutex::new(Some((work, worker))));
        let _dropped_at_the_end = DropsContent(waiting.clone());
        threads.spawn(Box::pin(async move {
            let Some((work, worker)) = waiting.lock().take() else { return };
            let mut work = pin!(work(worker));
            let done = poll_fn(|cx| match give.poll_closed(cx) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => work.as_mut().poll(cx).map(Some),
            });
            if let Some(done) = done.await {
                // Sending fails when nobody waits any more.
                let _ = give.send(done);
            }
        }));
        let done = within(&*self.runtime, Some(deadline), worker::serve(&self.kv, asked, take)).await;
        done.map_err(|_| PartError::Failed(Failure::Timeout))?
    }

    /// Does something on a thread for jobs, if there are any yet. Nobody waits for it.
    fn later(&self, work: impl FnOnce() + Send + 'static) {
        let threads = self.threads.lock().clone();
        match threads {
            Some(threads) => threads.spawn(Box::pin(async { work() })),
            None => work(),
        }
    }

    fn threads(&self) -> Result<Arc<dyn TaskThreads>, Error> {
        let mut threads = self.threads.lock();
        if let Some(threads) = &*threads {
            return Ok(threads.clone());
        }
        let started = self.runtime.start_background_threads("ombak-job", self.config.threads);
        let started = started.map_err(|error| {
            StoreFailure::new(StoreFailureKind::Io, format!("cannot create threads for jobs: {error}"))
        })?;
        Ok(threads.insert(started).clone())
    }
}

/// Work that waits for a thread goes with the one who waits for it.
struct DropsContent<T>(Arc<Mutex<Option<T>>>);

impl<T> Drop for DropsContent<T> {
    fn drop(&mut self) {
        let content = self.0.lock().take();
        drop(content);
    }
}

impl Worker {
    async fn piece(&self, request: &PartRequest) -> Result<PartAnswer, PartError> {
        let node = self.node();
        let until = (node.runtime.now() + node.config.piece_time_max).min(request.deadline);
        let mut keys = PieceKeys::open(self, request).await?;
        let mut results = Results::new(request, node.config.piece_bytes_max);
        while let Some(inputs) = keys.next(KEYS_AT_ONCE_MAX) {
            let (values, done) = self.map(request, inputs).await?;
            keys.done(done);
            results.add(self, values).await?;
            if results.is_full() || node.runtime.now() >= until {
                break;
            }
            // Other pieces have their turn on this thread, and this one may have nobody who waits.
            yield_now().await;
        }
        let results = results.finish(self).await?;
        Ok(PartAnswer { results, from: keys.end(node, request) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.get_mut() {
            threads.stop();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
