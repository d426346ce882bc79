//! How a pool ends.

use super::{COUNTER, config, mapped, occupy, open, owner, pool, program, soon, until};
use crate::{FunctionError, FunctionPool, Lane, PoolConfig};
use ombak_runtime::{Runtime, TokioRuntime};
use ombak_script::{ErrorKind, Limits};
use ombak_stats::{Figure, Number};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The threads refer to the pool, and must not keep it alive.
#[tokio::test]
async fn threads_end_with_the_last_user_of_the_pool() {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let pool = FunctionPool::new(runtime.clone(), config(), program());
    let map = open(&pool, Lane::Map, COUNTER);
    mapped(&map, soon()).await.unwrap();
    let figures = pool.feature();
    drop(pool);
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[2]", "a function is a user");
    drop(map);
    let has_none = |figure: &Figure<'_>| matches!(figure.number, Number::Gauge(0));
    until(|| figures.figures().iter().any(|figure| figure.name == "ombak_functions_map_threads" && has_none(figure)))
        .await;
    drop(figures);
    until(|| Arc::strong_count(&runtime) == 1).await;
}

#[tokio::test]
async fn a_stop_ends_what_runs_and_what_waits() {
    let limits = Limits { call_time_max: Duration::from_secs(3600), ..Limits::default() };
    let pool = pool(PoolConfig { limits, overdue_max: Duration::from_secs(60), ..config() });
    let endless = open(&pool, Lane::Map, "function() { for (;;); }");
    let (begun, begins) = oneshot::channel();
    let running = tokio::spawn({
        let endless = endless.clone();
        async move {
            let work = |calls: &mut crate::Calls<'_>| {
                begun.send(()).unwrap();
                calls.map("1", "null", "null")
            };
            endless.run(&owner(), soon(), work).await
        }
    });
    begins.await.unwrap();
    let waiting = tokio::spawn({
        let endless = endless.clone();
        async move { mapped(&endless, soon()).await }
    });
    until(|| pool.counts(Lane::Map).waiting == 1).await;
    pool.stop();
    assert_eq!(pool.counts(Lane::Map).threads, 0);
    assert_eq!(running.await.unwrap(), Err(FunctionError::Stopped));
    assert_eq!(waiting.await.unwrap(), Err(FunctionError::Stopped));
    assert_eq!(mapped(&endless, soon()).await, Err(FunctionError::Stopped));
}

#[tokio::test]
async fn the_owner_of_work_that_waits_hears_of_a_stop() {
    let pool = pool(config());
    let hook = open(&pool, Lane::PostCommit, "function(o) {}");
    let end = occupy(&hook).await;
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    hook.submit(&owner(), soon(), |_| panic!("never runs"), move |why| tell.send(why).unwrap()).unwrap();
    let stopping = tokio::task::spawn_blocking({
        let pool = pool.clone();
        move || pool.stop()
    });
    let why = tokio::task::spawn_blocking(move || told.recv()).await.unwrap();
    assert_eq!(why, Ok(FunctionError::Stopped));
    end();
    stopping.await.unwrap();
}

/// A call that is too short to look at the clock is not begun, either.
#[tokio::test]
async fn no_call_begins_after_a_stop() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, COUNTER);
    let (begun, begins) = oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::sync_channel::<()>(1);
    let (tell, told) = oneshot::channel();
    let work = move |calls: &mut crate::Calls<'_>| {
        begun.send(()).unwrap();
        goes_on.recv().unwrap();
        tell.send(calls.map("1", "null", "null")).unwrap();
    };
    map.submit(&owner(), soon(), work, |why| panic!("{why}")).unwrap();
    begins.await.unwrap();
    let stopping = tokio::task::spawn_blocking({
        let pool = pool.clone();
        move || pool.stop()
    });
    // Work is refused from the moment on at which calls are.
    let refused = async || mapped(&map, Instant::now()).await == Err(FunctionError::Stopped);
    while !refused().await {
        tokio::task::yield_now().await;
    }
    go_on.send(()).unwrap();
    assert_eq!(told.await.unwrap().unwrap_err().kind, ErrorKind::Time);
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_stop_ends_a_step_that_the_engine_cannot_interrupt() {
    let limits = Limits { call_time_max: Duration::from_secs(3600), ..Limits::default() };
    let pool = pool(PoolConfig { limits, ..config() });
    let native = open(&pool, Lane::Map, "function() { return [].reverse.call({ length: Math.pow(2, 53) - 1 }); }");
    let call = tokio::spawn(async move { mapped(&native, soon()).await });
    until(|| pool.open_sessions(Lane::Map) == 1 || pool.counts(Lane::Map).busy == 1).await;
    let stopping = tokio::task::spawn_blocking({
        let pool = pool.clone();
        move || pool.stop()
    });
    stopping.await.unwrap();
    assert_eq!(pool.counts(Lane::Map).threads, 0);
    assert_eq!(call.await.unwrap(), Err(FunctionError::Stopped));
}

#[tokio::test]
async fn threads_without_work_end_with_their_processes() {
    let pool = pool(PoolConfig { idle_max: Duration::from_millis(1), ..config() });
    let map = open(&pool, Lane::Map, COUNTER);
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]");
    until(|| pool.counts(Lane::Map).threads == 0).await;
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]", "in another process");
}
