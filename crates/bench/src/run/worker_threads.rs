//! The threads of a run. Each has a runtime of its own and its share of the workers.

use super::mix::Mix;
use super::schedule::Schedule;
use super::stop::Stop;
use super::worker::{Job, order_of};
use crate::config::Config;
use crate::drivers::{DriverError, Worker};
use crate::generators::{Draw, Generators, Place};
use crate::stats::Tally;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};

/// How long to wait for unfinished operations at the end of the run.
const GRACE: Duration = Duration::from_secs(5);

/// What all threads share.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) generators: Generators,
    pub(super) mix: Mix,
}

/// The threads of a run. Their workers are connected and wait for the start.
pub(super) struct WorkerThreads {
    threads: Vec<JoinHandle<()>>,
    tallies: Vec<Arc<Mutex<Tally>>>,
    /// An empty tally that replaces one of `tallies` while that one is added up.
    spare: Tally,
    go: watch::Sender<Option<Start>>,
    done: mpsc::Receiver<()>,
}

/// The signal to start.
#[derive(Clone)]
struct Start {
    at: Instant,
    stop: Arc<Stop>,
}

impl WorkerThreads {
    /// Starts the threads and connects every worker.
    pub(super) async fn assemble(shared: &Arc<Shared>, threads: usize) -> Result<Self, DriverError> {
        let (go, wait_for_go) = watch::channel(None);
        let (ready, mut readiness) = mpsc::channel(threads);
        let (finished, done) = mpsc::channel(1);
        let spare = Tally::new(shared.config.operations.len());
        let mut all = Self { threads: Vec::new(), tallies: Vec::new(), spare, go, done };
        for thread in 0..threads {
            let tally = Arc::new(Mutex::new(Tally::new(shared.config.operations.len())));
            all.tallies.push(tally.clone());
            let part = ThreadPart { shared: shared.clone(), tally, first: thread + 1, step: threads };
            let (ready, finished, go) = (ready.clone(), finished.clone(), wait_for_go.clone());
            let run = move || part.run(ready, go, finished);
            let spawned = std::thread::Builder::new().name(format!("bench-{thread}")).spawn(run);
            all.threads.push(spawned.map_err(|error| DriverError(format!("cannot start a thread: {error}")))?);
        }
        drop(ready);
        let mut connected = 0;
        while let Some(outcome) = readiness.recv().await {
            outcome?;
            connected += 1;
        }
        if connected < threads {
            return Err(DriverError(
                "a thread panicked while its workers connected; the message of the panic is above".into(),
            ));
        }
        Ok(all)
    }

    /// Adds the counts since the last call to `into`. No worker has to wait while counts are added.
    pub(super) fn collect(&mut self, into: &mut Tally) {
        for tally in &self.tallies {
            std::mem::swap(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner), &mut self.spare);
            self.spare.drain_into(into);
        }
    }

    /// Starts the workers.
    pub(super) fn start(&self, at: Instant, stop: &Arc<Stop>) {
        self.go.send_replace(Some(Start { at, stop: stop.clone() }));
    }

    /// Waits until every worker has ended.
    pub(super) async fn wait(&mut self) {
        while self.done.recv().await.is_some() {}
    }

    /// Waits for the threads, whose workers have been told to stop.
    pub(super) fn join(self) {
        // A thread that still waits for the start learns that there will be none.
        drop(self.go);
        for thread in self.threads {
            // A thread that panicked has already printed a message.
            drop(thread.join());
        }
    }
}

/// The part of one thread.
struct ThreadPart {
    shared: Arc<Shared>,
    tally: Arc<Mutex<Tally>>,
    /// The number of its first worker. The numbers of the others follow in steps of `step`.
    first: usize,
    step: usize,
}

impl ThreadPart {
    fn run(
        self,
        ready: mpsc::Sender<Result<(), DriverError>>,
        mut go: watch::Receiver<Option<Start>>,
        finished: mpsc::Sender<()>,
    ) {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return report_ready(ready, Err(no_runtime(&error))),
        };
        runtime.block_on(async {
            let connected = self.connect().await;
            let workers = match connected {
                Ok(workers) => workers,
                Err(error) => return report_ready(ready, Err(error)),
            };
            report_ready(ready, Ok(()));
            // The sender has been dropped if another thread could not connect.
            let Ok(start) = go.wait_for(Option::is_some).await.map(|start| (*start).clone()) else { return };
            if let Some(start) = start {
                self.run_workers(workers, start).await;
            }
        });
        drop(finished);
    }

    async fn connect(&self) -> Result<Vec<(usize, Worker, Draw)>, DriverError> {
        let config = &self.shared.config;
        let mut workers = Vec::new();
        for worker in (self.first..=config.concurrent).step_by(self.step) {
            let place = Place { worker, concurrent: config.concurrent, seed: config.rng_seed };
            let draw = self.shared.generators.draw(place).map_err(|error| DriverError(error.to_string()))?;
            workers.push((worker, config.driver.connect(worker).await?, draw));
        }
        Ok(workers)
    }

    async fn run_workers(&self, workers: Vec<(usize, Worker, Draw)>, start: Start) {
        let local = LocalSet::new();
        let mut working = JoinSet::new();
        let config = &self.shared.config;
        for (worker, driver, draw) in workers {
            let (shared, tally, start) = (self.shared.clone(), self.tally.clone(), start.clone());
            let (random, schedule) = (order_of(config.rng_seed, worker), Schedule::new(config.mode));
            let work = async move {
                let job = Job {
                    driver,
                    draw,
                    random,
                    mix: &shared.mix,
                    schedule,
                    due: None,
                    exhausted: false,
                    tally: &tally,
                    stop: &start.stop,
                    shutdown_on_error: shared.config.shutdown_on_error,
                    start: start.at,
                };
                job.run().await;
            };
            working.spawn_local_on(work, &local);
        }
        let all = local.run_until(async {
            while let Some(ended) = working.join_next().await {
                // The panic has printed its message, and the operation is counted as a crash.
                if ended.is_err() {
                    start.stop.request_for_crash();
                }
            }
        });
        let limit = async {
            match start.stop.end() {
                Some(end) => tokio::select! {
                    () = tokio::time::sleep_until(end.into()) => {}
                    () = start.stop.wait() => {}
                },
                None => start.stop.wait().await,
            }
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = all => {}
            () = limit => {}
        }
    }
}

/// Reports how connecting went and closes the thread's end of the channel. All workers are
/// connected when all threads have reported.
fn report_ready(ready: mpsc::Sender<Result<(), DriverError>>, outcome: Result<(), DriverError>) {
    // The channel has room for one message from each thread. If another thread has failed, nobody
    // receives this one.
    drop(ready.try_send(outcome));
}

fn no_runtime(error: &io::Error) -> DriverError {
    DriverError(format!("cannot start a thread's runtime: {error}"))
}
