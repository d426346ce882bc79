//! Tests of the pool, with real threads, real processes and a real engine.

mod ends;
mod fairness;
mod functions;
mod processes;
mod stops;

use crate::{Function, FunctionError, FunctionPool, Lane, Owner, PoolConfig};
use ombak_runtime::TokioRuntime;
use ombak_script::{ErrorKind, Program};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

crate::function_worker_of_tests!();

/// An owner of work, where it does not matter which one.
fn owner() -> Owner {
    Owner::new("somebody")
}

const COUNTER: &str = "(function() { var n = 0; return function() { return [++n]; }; })()";

fn config() -> PoolConfig {
    // The machine may be busy. Tests of slow work say when work is slow.
    let slow_after = Duration::from_secs(3600);
    PoolConfig { map_threads: 1, reduce_threads: 1, hook_threads: 1, slow_after, ..PoolConfig::default() }
}

fn pool(config: PoolConfig) -> FunctionPool {
    FunctionPool::new(Arc::new(TokioRuntime), config, program())
}

fn open(pool: &FunctionPool, lane: Lane, source: &str) -> Function {
    pool.open(lane, Program::source(source).unwrap())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// What a map function gives.
async fn mapped(function: &Function, deadline: Instant) -> Result<String, FunctionError> {
    Ok(function.run(&owner(), deadline, |calls| calls.map("1", "null", "null")).await??)
}

fn kind(result: Result<String, FunctionError>) -> ErrorKind {
    match result.unwrap_err() {
        FunctionError::Script(error) => error.kind,
        other => panic!("{other}"),
    }
}

/// Waits until something holds. A test that waits in vain is ended by its runner.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Work that keeps its thread until it is told to end. Returns when it runs.
async fn occupy(function: &Function) -> impl FnOnce() {
    let (begun, begins) = oneshot::channel();
    let (end, ends) = std::sync::mpsc::sync_channel::<()>(1);
    let work = function.clone();
    tokio::spawn(async move {
        work.run(&owner(), soon(), move |_| {
            begun.send(()).unwrap();
            let _ = ends.recv();
        })
        .await
    });
    begins.await.unwrap();
    move || end.send(()).unwrap()
}
