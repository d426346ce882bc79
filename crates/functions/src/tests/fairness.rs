//! How owners share a lane.

use super::{COUNTER, config, mapped, occupy, open, owner, pool, soon, until};
use crate::{Function, FunctionError, Lane, Owner, PoolConfig};
use ombak_script::Limits;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

#[tokio::test]
async fn jobs_cannot_take_the_threads_of_hooks() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, COUNTER);
    let end = occupy(&map).await;
    let hook = open(&pool, Lane::PreCommit, "function(o) { return o; }");
    hook.run(&owner(), soon(), |calls| calls.pre_commit("{}")).await.unwrap().unwrap();
    assert_eq!(pool.counts(Lane::Map).busy, 1);
    end();
}

#[tokio::test]
async fn a_full_queue_refuses_and_late_work_is_never_done() {
    let pool = pool(PoolConfig { waiting_max: 1, ..config() });
    let map = open(&pool, Lane::Map, COUNTER);
    let end = occupy(&map).await;
    assert_eq!(mapped(&map, Instant::now()).await, Err(FunctionError::Late));
    assert_eq!(pool.counts(Lane::Map).waiting, 1);
    assert_eq!(mapped(&map, soon()).await, Err(FunctionError::Busy));
    assert_eq!(pool.counts(Lane::Map).refused_total, 1);
    end();
    until(|| pool.counts(Lane::Map).waiting == 0).await;
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]", "the late call was not made");
}

#[tokio::test]
async fn a_caller_that_leaves_takes_its_work_along() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, COUNTER);
    let end = occupy(&map).await;
    let caller = tokio::spawn({
        let map = map.clone();
        async move { mapped(&map, soon()).await }
    });
    until(|| pool.counts(Lane::Map).waiting == 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    end();
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]");
}

#[tokio::test]
async fn a_lane_never_has_more_threads_than_its_size() {
    let pool = pool(PoolConfig { map_threads: 2, ..config() });
    let map = open(&pool, Lane::Map, COUNTER);
    let ends = [occupy(&map).await, occupy(&map).await];
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let map = map.clone();
            tokio::spawn(async move { mapped(&map, soon()).await })
        })
        .collect();
    until(|| pool.counts(Lane::Map).waiting == 3).await;
    assert_eq!(pool.counts(Lane::Map).threads, 2);
    ends.into_iter().for_each(|end| end());
    for waits in waiting {
        waits.await.unwrap().unwrap();
    }
}

const ENDLESS: &str = "function() { for (;;); }";

/// Limits that end no call, and slow work that is slow at once.
fn patient(slow_max: usize) -> PoolConfig {
    let limits = Limits { call_time_max: Duration::from_secs(3600), ..Limits::default() };
    let (slow_after, displaced_after) = (Duration::from_millis(1), Duration::from_millis(2));
    PoolConfig { limits, slow_max, slow_after, displaced_after, ..config() }
}

fn call_of(name: &str, function: &Function) -> JoinHandle<Result<String, FunctionError>> {
    let (owner, function) = (Owner::new(name), function.clone());
    tokio::spawn(async move { Ok(function.run(&owner, soon(), |calls| calls.map("1", "null", "null")).await??) })
}

#[tokio::test]
async fn nobody_waits_for_the_slow_function_of_another_owner() {
    let pool = pool(patient(2));
    let (endless, quick) = (open(&pool, Lane::PreCommit, ENDLESS), open(&pool, Lane::PreCommit, COUNTER));
    let hostile: Vec<_> = (0..5).map(|_| call_of("hostile", &endless)).collect();
    until(|| pool.counts(Lane::PreCommit).slow == 1).await;
    assert_eq!(call_of("other", &quick).await.unwrap().unwrap(), "[1]");
    assert_eq!(pool.counts(Lane::PreCommit).waiting, 4, "an owner has one thread at a time in a lane of one");
    pool.stop();
    for call in hostile {
        assert_eq!(call.await.unwrap(), Err(FunctionError::Stopped));
    }
}

#[tokio::test]
async fn the_longest_call_makes_room_when_all_places_are_taken() {
    let pool = pool(patient(2));
    let (endless, quick) = (open(&pool, Lane::PreCommit, ENDLESS), open(&pool, Lane::PreCommit, COUNTER));
    let mut hostile = Vec::new();
    for name in ["one", "two", "three"] {
        hostile.push(call_of(name, &endless));
        until(|| pool.counts(Lane::PreCommit).slow == hostile.len()).await;
    }
    assert_eq!(call_of("other", &quick).await.unwrap().unwrap(), "[1]");
    assert_eq!(pool.counts(Lane::PreCommit).displaced_total, 1);
    assert_eq!(hostile.remove(0).await.unwrap(), Err(FunctionError::Displaced));
    pool.stop();
    for call in hostile {
        assert_eq!(call.await.unwrap(), Err(FunctionError::Stopped));
    }
}

#[tokio::test]
async fn a_lane_gets_its_size_back_when_slow_work_has_ended() {
    let pool = pool(patient(2));
    let (endless, quick) = (open(&pool, Lane::PreCommit, ENDLESS), open(&pool, Lane::PreCommit, COUNTER));
    let slow = {
        let endless = endless.clone();
        let deadline = Instant::now() + Duration::from_millis(200);
        tokio::spawn(async move { endless.run(&Owner::new("slow"), deadline, |calls| calls.map("1", "2", "3")).await })
    };
    until(|| pool.counts(Lane::PreCommit).slow == 1).await;
    call_of("other", &quick).await.unwrap().unwrap();
    assert!(slow.await.unwrap().is_err());
    until(|| (pool.counts(Lane::PreCommit).slow, pool.counts(Lane::PreCommit).threads) == (0, 1)).await;
}
