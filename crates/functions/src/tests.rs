//! Tests of the pool, with real threads and a real engine.

use crate::{Catalogue, Function, FunctionError, FunctionPool, Lane, LookupError, PoolConfig};
use crate::{Registered, RegisteredFunctions};
use ombak_runtime::{BoxFuture, JobQueue, NoRandomBytes, Periodic, Runtime, TokioRuntime, pauses_of_this_thread};
use ombak_script::{ErrorKind, Limits, Program, ScriptError};
use ombak_stats::{Figure, Number};
use ombak_types::time::UnixMicros;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const COUNTER: &str = "(function() { var n = 0; return function() { return [++n]; }; })()";

/// A world in which the threads of functions can be held when they look at the clock. The engine
/// looks at it in an endless loop, so a thread that is held is one in a native step that does not
/// end.
#[derive(Default)]
struct HeldRuntime {
    /// After how many looks of map functions each of their threads is held; `None`: never.
    looks_left: Mutex<Option<u32>>,
    changed: Condvar,
}

/// The looks before a call, while it is prepared, are fewer than this.
const LOOKS: u32 = 20;

impl HeldRuntime {
    fn set_looks_left(&self, looks_left: Option<u32>) {
        *self.looks_left.lock() = looks_left;
        self.changed.notify_all();
    }
}

impl Runtime for HeldRuntime {
    fn now(&self) -> Instant {
        let is_function = std::thread::current().name().is_some_and(|name| name == "function-map");
        let mut looks_left = self.looks_left.lock();
        if let Some(looks) = looks_left.as_mut().filter(|_| is_function) {
            *looks = looks.saturating_sub(1);
            while *looks_left == Some(0) {
                self.changed.wait(&mut looks_left);
            }
        }
        drop(looks_left);
        TokioRuntime.now()
    }

    fn wall_clock(&self) -> UnixMicros {
        TokioRuntime.wall_clock()
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        TokioRuntime.fill_random(bytes)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        TokioRuntime.spawn(task);
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        TokioRuntime.sleep_until(at)
    }

    fn start_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        TokioRuntime.start_pool(name, threads, jobs_max)
    }

    fn start_periodic(
        &self,
        name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        TokioRuntime.start_periodic(name, interval, round)
    }
}

fn config() -> PoolConfig {
    PoolConfig { map_threads: 1, reduce_threads: 1, hook_threads: 1, ..PoolConfig::default() }
}

fn pool(config: PoolConfig) -> FunctionPool {
    FunctionPool::new(Arc::new(TokioRuntime), config)
}

fn open(pool: &FunctionPool, lane: Lane, source: &str) -> Function {
    pool.open(lane, Program::source(source).unwrap())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// What a map function gives.
async fn mapped(function: &Function, deadline: Instant) -> Result<String, FunctionError> {
    Ok(function.run(deadline, |calls| calls.map("1", "null", "null")).await??)
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
        work.run(soon(), move |_| {
            begun.send(()).unwrap();
            let _ = ends.recv();
        })
        .await
    });
    begins.await.unwrap();
    move || end.send(()).unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_threads_of_jobs_give_way_to_those_of_hooks() {
    let pool = pool(config());
    let nice = async |lane| {
        let function = open(&pool, lane, "function() { return []; }");
        function.run(soon(), |_| rustix::process::getpriority_process(None).unwrap()).await.unwrap()
    };
    // The tests may run with any nice value.
    let here = rustix::process::getpriority_process(None).unwrap();
    assert_eq!([nice(Lane::PreCommit).await, nice(Lane::PostCommit).await], [here; 2]);
    assert_eq!([nice(Lane::Map).await, nice(Lane::Reduce).await], [19; 2]);
}

#[tokio::test]
async fn long_calls_of_jobs_pause_and_those_of_hooks_do_not() {
    // The machine may be busy.
    let limits = Limits { call_time_max: Duration::from_secs(60), ..Limits::default() };
    let pool = pool(PoolConfig { limits, ..config() });
    let pauses = async |lane| {
        let busy = open(&pool, lane, "function() { for (var n = 0; n < 1000000; n++) {} return []; }");
        let work = busy.run(soon(), |calls| {
            let before = pauses_of_this_thread();
            calls.call(&["1"]).map(|_| pauses_of_this_thread() - before)
        });
        work.await.unwrap().unwrap()
    };
    assert!(pauses(Lane::Map).await > 1);
    assert!(pauses(Lane::Reduce).await > 1);
    assert_eq!([pauses(Lane::PreCommit).await, pauses(Lane::PostCommit).await], [0; 2]);
}

#[tokio::test]
async fn a_function_gives_results_and_errors() {
    let pool = pool(config());
    let good = open(&pool, Lane::Map, "function(v) { return [v + 1]; }");
    assert_eq!(mapped(&good, soon()).await, Ok("[2]".to_owned()));
    assert_eq!(kind(mapped(&open(&pool, Lane::Map, "function(v) { throw 1; }"), soon()).await), ErrorKind::Exception);
    assert_eq!(kind(mapped(&open(&pool, Lane::Map, "function(v) {"), soon()).await), ErrorKind::Syntax);
    let unknown = pool.open(Lane::Map, Program::named("zork").unwrap());
    assert_eq!(kind(mapped(&unknown, soon()).await), ErrorKind::UnknownFunction);
    let builtin = pool.open(Lane::Reduce, Program::named("Riak.reduceSum").unwrap());
    let sum = builtin.run(soon(), |calls| calls.reduce("[1,2,3]", "null")).await.unwrap();
    assert_eq!(sum.as_deref(), Ok("[6]"));
    assert_eq!(builtin.run(soon(), |calls| calls.call(&["[1]"])).await.unwrap(), Ok(Some("[1]".to_owned())));
}

#[tokio::test]
async fn owners_of_one_program_share_nothing_and_each_keeps_its_session() {
    let pool = pool(config());
    let (one, two) = (open(&pool, Lane::Map, COUNTER), open(&pool, Lane::Map, COUNTER));
    assert_eq!(mapped(&one, soon()).await.unwrap(), "[1]");
    assert_eq!(mapped(&one.clone(), soon()).await.unwrap(), "[2]");
    assert_eq!(mapped(&two, soon()).await.unwrap(), "[1]");
    assert_eq!(mapped(&one, soon()).await.unwrap(), "[3]");
    one.run(soon(), |calls| calls.reset()).await.unwrap();
    assert_eq!(mapped(&one, soon()).await.unwrap(), "[1]");
}

#[tokio::test]
async fn a_thread_keeps_a_bounded_number_of_sessions() {
    let pool = pool(PoolConfig { sessions_max: 2, ..config() });
    let functions: Vec<_> = (0..3).map(|_| open(&pool, Lane::Map, COUNTER)).collect();
    for expected in ["[1]", "[1]"] {
        for function in &functions {
            assert_eq!(mapped(function, soon()).await.unwrap(), expected, "the oldest session was ended");
        }
    }
    assert_eq!(mapped(&functions[2], soon()).await.unwrap(), "[2]");
    assert_eq!(mapped(&functions[1], soon()).await.unwrap(), "[2]");
}

/// The value that a thread drops together with its sessions shows that they end.
#[tokio::test]
async fn sessions_end_with_their_owner() {
    let pool = pool(config());
    let (kept, dropped) = (open(&pool, Lane::Map, COUNTER), open(&pool, Lane::Map, COUNTER));
    mapped(&kept, soon()).await.unwrap();
    mapped(&dropped, soon()).await.unwrap();
    // A thread counts its sessions after it has answered.
    until(|| pool.open_sessions(Lane::Map) == 2).await;
    let other = dropped.clone();
    drop(dropped);
    assert_eq!(mapped(&other, soon()).await.unwrap(), "[2]", "a clone keeps the sessions");
    drop(other);
    until(|| pool.open_sessions(Lane::Map) == 1).await;
    assert_eq!(mapped(&kept, soon()).await.unwrap(), "[2]");
}

#[tokio::test]
async fn jobs_cannot_take_the_threads_of_hooks() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, COUNTER);
    let end = occupy(&map).await;
    let hook = open(&pool, Lane::PreCommit, "function(o) { return o; }");
    hook.run(soon(), |calls| calls.pre_commit("{}")).await.unwrap().unwrap();
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
async fn the_deadline_of_the_caller_ends_the_function() {
    let limits = Limits { call_time_max: Duration::from_secs(3600), ..Limits::default() };
    let pool = pool(PoolConfig { limits, ..config() });
    let endless = open(&pool, Lane::Map, "function() { for (;;); }");
    let late = mapped(&endless, Instant::now() + Duration::from_millis(20)).await;
    // Either the function ends first or the wait for it.
    assert_eq!(late, Err(FunctionError::Late));
    until(|| pool.counts(Lane::Map).busy == 0).await;
    assert_eq!(pool.counts(Lane::Map).stuck_total, 0);
}

#[tokio::test]
async fn work_that_panics_harms_nobody_else() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, COUNTER);
    mapped(&map, soon()).await.unwrap();
    let broken = map.run(soon(), |_| panic!("on purpose")).await;
    assert_eq!(broken.unwrap_err(), FunctionError::Broken);
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]", "in a new session");
}

/// A world whose threads can be held, and a pool of one map thread in it whose watcher is quick.
fn held(stuck_max: usize) -> (Arc<HeldRuntime>, FunctionPool) {
    held_with(PoolConfig { stuck_max, ..config() })
}

fn held_with(config: PoolConfig) -> (Arc<HeldRuntime>, FunctionPool) {
    let runtime = Arc::new(HeldRuntime::default());
    let limits = Limits { call_time_max: Duration::from_millis(500), ..Limits::default() };
    let config = PoolConfig { limits, overdue_max: Duration::from_millis(500), ..config };
    (runtime.clone(), FunctionPool::new(runtime, config))
}

/// Lets a thread begin a call from which it does not come back.
async fn stuck_call(runtime: &HeldRuntime, function: &Function) -> Result<String, FunctionError> {
    runtime.set_looks_left(Some(LOOKS));
    mapped(function, soon()).await
}

#[tokio::test]
async fn a_thread_that_does_not_come_back_is_replaced_up_to_a_bound() {
    let (runtime, pool) = held(1);
    let endless = open(&pool, Lane::Map, "function() { for (;;); }");
    let quick = open(&pool, Lane::Map, COUNTER);
    let hook = open(&pool, Lane::PreCommit, "function(o) { return o; }");
    assert_eq!(stuck_call(&runtime, &endless).await, Err(FunctionError::Stuck));
    assert_eq!((pool.counts(Lane::Map).stuck, pool.counts(Lane::Map).threads), (1, 0));
    // The replacement is held as well, as soon as it looks at the clock. Its work waits until its
    // own deadline.
    let late = mapped(&quick, Instant::now() + Duration::from_millis(5)).await;
    assert_eq!(late, Err(FunctionError::Late));
    hook.run(soon(), |calls| calls.pre_commit("{}")).await.unwrap().unwrap();
    runtime.set_looks_left(None);
    until(|| pool.counts(Lane::Map).stuck == 0).await;
    assert_eq!(mapped(&quick, soon()).await.unwrap(), "[1]");
    assert_eq!(pool.counts(Lane::Map).stuck_total, 1);
}

#[tokio::test]
async fn a_lane_whose_threads_are_all_stuck_refuses() {
    let (runtime, pool) = held(0);
    let endless = open(&pool, Lane::Map, "function() { for (;;); }");
    assert_eq!(stuck_call(&runtime, &endless).await, Err(FunctionError::Stuck));
    assert_eq!(mapped(&endless, soon()).await, Err(FunctionError::Refused));
    runtime.set_looks_left(None);
    until(|| pool.counts(Lane::Map).stuck == 0).await;
    assert_eq!(kind(mapped(&endless, soon()).await), ErrorKind::Time);
}

#[tokio::test]
async fn what_waits_for_threads_that_are_all_stuck_is_refused() {
    let (runtime, pool) = held(0);
    let endless = open(&pool, Lane::Map, "function() { for (;;); }");
    let end = occupy(&endless).await;
    // It waits behind the work that occupies the thread, and behind the call that will be stuck.
    runtime.set_looks_left(Some(LOOKS));
    let stuck = tokio::spawn({
        let endless = endless.clone();
        async move { mapped(&endless, soon()).await }
    });
    until(|| pool.counts(Lane::Map).waiting == 1).await;
    let hopeless = tokio::spawn({
        let endless = endless.clone();
        async move { mapped(&endless, soon()).await }
    });
    until(|| pool.counts(Lane::Map).waiting == 2).await;
    end();
    assert_eq!(stuck.await.unwrap(), Err(FunctionError::Stuck));
    assert_eq!(hopeless.await.unwrap(), Err(FunctionError::Refused));
    assert_eq!((pool.counts(Lane::Map).waiting, pool.counts(Lane::Map).refused_total), (0, 1));
    runtime.set_looks_left(None);
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
    map.submit(deadline, work, |why| panic!("{why}")).unwrap();
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
    hook.submit(Instant::now(), |_| panic!("never runs"), failed).unwrap();
    end();
    let why = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
    assert_eq!((why, pool.counts(Lane::PostCommit).late_total), (FunctionError::Late, 1));
}

/// The threads refer to the pool, and must not keep it alive.
#[tokio::test]
async fn threads_end_with_the_last_user_of_the_pool() {
    let runtime = Arc::new(HeldRuntime::default());
    let pool = FunctionPool::new(runtime.clone(), config());
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
            let done = endless.run(soon(), |calls| {
                begun.send(()).unwrap();
                calls.map("1", "null", "null")
            });
            done.await
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
    let by_deadline = pool(PoolConfig { limits: slow, ..config() });
    let top = open(&by_deadline, Lane::Map, ENDLESS_TOP);
    let late = mapped(&top, Instant::now() + Duration::from_millis(20)).await;
    assert_eq!(late, Err(FunctionError::Late));
    until(|| by_deadline.counts(Lane::Map).busy == 0).await;
    assert_eq!(by_deadline.counts(Lane::Map).stuck_total, 0);
}

#[tokio::test]
async fn a_thread_that_does_not_come_back_from_the_top_of_a_program_is_given_up() {
    let (runtime, pool) = held(1);
    let top = open(&pool, Lane::Map, ENDLESS_TOP);
    assert_eq!(stuck_call(&runtime, &top).await, Err(FunctionError::Stuck));
    runtime.set_looks_left(None);
    until(|| pool.counts(Lane::Map).stuck == 0).await;
}

/// Queues a call behind work that occupies the only thread.
async fn queued(pool: &FunctionPool, function: &Function) -> tokio::task::JoinHandle<Result<String, FunctionError>> {
    let before = pool.counts(Lane::Map).waiting;
    let function = function.clone();
    let call = tokio::spawn(async move { mapped(&function, soon()).await });
    until(|| pool.counts(Lane::Map).waiting == before + 1).await;
    call
}

#[tokio::test]
async fn what_waits_for_a_thread_that_is_stuck_gets_another_one() {
    let (runtime, pool) = held(1);
    let (endless, quick) = (open(&pool, Lane::Map, "function() { for (;;); }"), open(&pool, Lane::Map, COUNTER));
    let end = occupy(&endless).await;
    let stuck = queued(&pool, &endless).await;
    let waits = queued(&pool, &quick).await;
    runtime.set_looks_left(Some(LOOKS));
    end();
    assert_eq!(stuck.await.unwrap(), Err(FunctionError::Stuck));
    // The other thread is held as soon as it looks at the clock.
    until(|| (pool.counts(Lane::Map).threads, pool.counts(Lane::Map).stuck) == (1, 1)).await;
    runtime.set_looks_left(None);
    assert_eq!(waits.await.unwrap().unwrap(), "[1]");
}

#[tokio::test]
async fn a_thread_that_comes_back_makes_room_for_another_one() {
    let (runtime, pool) = held_with(PoolConfig { map_threads: 2, stuck_max: 0, ..config() });
    let (endless, quick) = (open(&pool, Lane::Map, "function() { for (;;); }"), open(&pool, Lane::Map, COUNTER));
    let end = occupy(&quick).await;
    assert_eq!(stuck_call(&runtime, &endless).await, Err(FunctionError::Stuck));
    let waits = queued(&pool, &quick).await;
    assert_eq!(pool.counts(Lane::Map).threads, 1);
    runtime.set_looks_left(None);
    assert_eq!(waits.await.unwrap().unwrap(), "[1]", "beside the thread that is occupied");
    end();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_thread_that_does_not_come_back() {
    let (runtime, pool) = held(1);
    let endless = open(&pool, Lane::Map, "function() { for (;;); }");
    runtime.set_looks_left(Some(LOOKS));
    let call = tokio::spawn(async move { mapped(&endless, soon()).await });
    until(|| *runtime.looks_left.lock() == Some(0)).await;
    let stopping = tokio::task::spawn_blocking({
        let pool = pool.clone();
        move || pool.stop()
    });
    stopping.await.unwrap();
    runtime.set_looks_left(None);
    let ended = call.await.unwrap();
    assert!(matches!(ended, Err(FunctionError::Stuck | FunctionError::Stopped)), "{ended:?}");
}

#[tokio::test]
async fn the_owner_of_work_that_waits_hears_of_a_stop() {
    let pool = pool(config());
    let hook = open(&pool, Lane::PostCommit, "function(o) {}");
    let end = occupy(&hook).await;
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    hook.submit(soon(), |_| panic!("never runs"), move |why| tell.send(why).unwrap()).unwrap();
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
    map.submit(soon(), work, |why| panic!("{why}")).unwrap();
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

/// The system gives no thread with a stack of this size.
#[tokio::test]
async fn work_is_told_that_no_thread_could_be_started() {
    let limits = Limits { stack_bytes_max: 1 << 60, ..Limits::default() };
    let pool = pool(PoolConfig { limits, ..config() });
    let map = open(&pool, Lane::Map, COUNTER);
    for _ in 0..2 {
        let refused = mapped(&map, soon()).await;
        assert!(matches!(refused, Err(FunctionError::NoThread(_))), "{refused:?}");
        assert_eq!((pool.counts(Lane::Map).threads, pool.counts(Lane::Map).waiting), (0, 0));
    }
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

/// No lane is without threads, and no thread without a session, whatever the configuration says.
#[tokio::test]
async fn a_pool_of_nothing_has_one_thread_and_one_session() {
    let nothing = PoolConfig { map_threads: 0, sessions_max: 0, ..config() };
    let pool = pool(nothing);
    let map = open(&pool, Lane::Map, COUNTER);
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]");
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[2]");
}

#[tokio::test]
async fn work_without_a_waiter_tells_why_it_failed() {
    let pool = pool(config());
    let (give, take) = std::sync::mpsc::sync_channel(2);
    let bad = open(&pool, Lane::PostCommit, "function(");
    let failed = move |why| give.send(why).unwrap();
    bad.submit(soon(), |_| panic!("never runs"), failed).unwrap();
    let why = tokio::task::spawn_blocking(move || take.recv().unwrap()).await.unwrap();
    assert!(matches!(why, FunctionError::Script(ScriptError { kind: ErrorKind::Syntax, .. })));
}

struct OneFunction;

impl RegisteredFunctions for OneFunction {
    fn registered(&self, name: &str) -> Option<Registered> {
        (name == "twice").then(|| Registered { source: "function(v) { return [two() * v]; }".into(), version: 7 })
    }
}

#[tokio::test]
async fn the_catalogue_finds_registered_functions_then_libraries_and_built_in_ones() {
    let pool = pool(config());
    let library: Arc<str> = "function two() { return 2; } function twice() { return [0]; }".into();
    let catalogue = Catalogue::new(Arc::new(OneFunction), vec![library.clone()], false);
    let run = |program| {
        let function = pool.open(Lane::Map, program);
        async move { mapped(&function, soon()).await }
    };
    assert_eq!(run(catalogue.named("twice").unwrap()).await.unwrap(), "[2]");
    assert_eq!((catalogue.version("twice"), catalogue.version("two")), (Some(7), None));
    let builtin = catalogue.named("Riak.mapByFields").unwrap();
    assert_eq!(kind(run(builtin).await), ErrorKind::Exception);
    assert_eq!(kind(run(catalogue.named("zork").unwrap()).await), ErrorKind::UnknownFunction);
    assert!(matches!(catalogue.named("a b"), Err(LookupError::Script(_))));
    assert_eq!(catalogue.anonymous("function() { return [3]; }"), Err(LookupError::AnonymousNotAllowed));
    let open = Catalogue::new(Arc::new(OneFunction), vec![library], true);
    assert_eq!(run(open.anonymous("function() { return [two()]; }").unwrap()).await.unwrap(), "[2]");
    assert_eq!(run(open.anonymous("function() { return twice(); }").unwrap()).await.unwrap(), "[0]");
}
