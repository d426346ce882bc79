//! What ends functions, and what becomes of their work.

use super::{COUNTER, config, kind, mapped, occupy, open, owner, pool, soon, until};
use crate::{FunctionError, Lane, PoolConfig};
use ombak_script::{ErrorKind, Limits};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

#[tokio::test]
async fn the_deadline_of_the_caller_ends_the_function() {
    let limits = Limits { call_time_max: Duration::from_secs(3600), ..Limits::default() };
    let pool = pool(PoolConfig { limits, overdue_max: Duration::from_secs(60), ..config() });
    let endless = open(&pool, Lane::Map, "function() { for (;;); }");
    let late = mapped(&endless, Instant::now() + Duration::from_millis(20)).await;
    // Either the function ends first or the wait for it.
    assert_eq!(late, Err(FunctionError::Late));
    until(|| pool.counts(Lane::Map).busy == 0).await;
    assert_eq!(pool.counts(Lane::Map).ended_total, 0);
}

/// Calls that follow each other in one piece of work have the deadline of the work together.
#[tokio::test]
async fn no_call_begins_after_the_deadline_of_its_work() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, COUNTER);
    let (tell, told) = oneshot::channel();
    let deadline = Instant::now() + Duration::from_secs(1);
    let work = move |calls: &mut crate::Calls<'_>| {
        while Instant::now() < deadline {
            std::thread::yield_now();
        }
        tell.send(calls.map("1", "null", "null")).unwrap();
    };
    map.submit(&owner(), deadline, work, |why| panic!("{why}")).unwrap();
    assert_eq!(told.await.unwrap().unwrap_err().kind, ErrorKind::Time);
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]", "the late call was not made");
}

#[tokio::test]
async fn late_work_is_counted_and_its_owner_told() {
    let pool = pool(config());
    let hook = open(&pool, Lane::PostCommit, "function(o) {}");
    let end = occupy(&hook).await;
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let failed = move |why| tell.send(why).unwrap();
    hook.submit(&owner(), Instant::now(), |_| panic!("never runs"), failed).unwrap();
    end();
    let why = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
    assert_eq!((why, pool.counts(Lane::PostCommit).late_total), (FunctionError::Late, 1));
}

/// The stack of a thread has room for all calls within calls that a session may make.
#[tokio::test]
async fn a_deep_function_ends_on_a_thread_of_the_pool() {
    let pool = pool(config());
    let deep = open(&pool, Lane::Map, "function() { return (function f() { return f() + 1; })(); }");
    assert_eq!(kind(mapped(&deep, soon()).await), ErrorKind::Stack);
    assert_eq!(kind(mapped(&deep, soon()).await), ErrorKind::Stack);
}

/// What is at the top of a program runs while its session opens.
const ENDLESS_TOP: &str = "(function() { for (;;); })()";

#[tokio::test]
async fn the_time_of_a_call_and_the_deadline_end_the_top_of_a_program() {
    let quick = Limits { call_time_max: Duration::from_millis(20), ..Limits::default() };
    let by_time = pool(PoolConfig { limits: quick, ..config() });
    assert_eq!(kind(mapped(&open(&by_time, Lane::Map, ENDLESS_TOP), soon()).await), ErrorKind::Time);

    let slow = Limits { call_time_max: Duration::from_secs(3600), ..Limits::default() };
    let by_deadline = pool(PoolConfig { limits: slow, overdue_max: Duration::from_secs(60), ..config() });
    let top = open(&by_deadline, Lane::Map, ENDLESS_TOP);
    let late = mapped(&top, Instant::now() + Duration::from_millis(20)).await;
    assert_eq!(late, Err(FunctionError::Late));
    until(|| by_deadline.counts(Lane::Map).busy == 0).await;
    assert_eq!(by_deadline.counts(Lane::Map).ended_total, 0);
}

/// A step that the engine cannot interrupt.
const NATIVE: &str = "function() { return Array.prototype.reverse.call({ length: Math.pow(2, 53) - 1 }); }";

#[tokio::test]
async fn a_step_that_the_engine_cannot_interrupt_ends_with_its_process() {
    let limits = Limits { call_time_max: Duration::from_millis(100), ..Limits::default() };
    let pool = pool(PoolConfig { limits, ..config() });
    let (native, counter) = (open(&pool, Lane::Map, NATIVE), open(&pool, Lane::Map, COUNTER));
    assert_eq!(mapped(&counter, soon()).await.unwrap(), "[1]");
    assert_eq!(kind(mapped(&native, soon()).await), ErrorKind::Time, "as of a loop that the engine ends");
    assert_eq!(pool.counts(Lane::Map).ended_total, 1);
    assert_eq!(mapped(&counter, soon()).await.unwrap(), "[1]", "in another process");
    let late = mapped(&native, Instant::now() + Duration::from_millis(20)).await;
    assert_eq!(late, Err(FunctionError::Late));
}

#[tokio::test]
async fn a_step_at_the_top_of_a_program_ends_with_its_process() {
    let limits = Limits { call_time_max: Duration::from_millis(100), ..Limits::default() };
    let pool = pool(PoolConfig { limits, ..config() });
    let top = open(&pool, Lane::Map, &format!("({NATIVE})()"));
    assert_eq!(kind(mapped(&top, soon()).await), ErrorKind::Time);
    assert_eq!(mapped(&open(&pool, Lane::Map, COUNTER), soon()).await.unwrap(), "[1]");
}
