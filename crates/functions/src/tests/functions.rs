//! What functions give, and their sessions.

use super::{COUNTER, config, kind, mapped, open, owner, pool, soon, until};
use crate::{Catalogue, FunctionError, Lane, LookupError, PoolConfig, Registered, RegisteredFunctions};
use ombak_script::{ErrorKind, Program, ScriptError};
use std::sync::Arc;
use std::time::Instant;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_threads_of_jobs_give_way_to_those_of_hooks() {
    let pool = pool(config());
    let nice = async |lane| {
        let function = open(&pool, lane, "function() { return []; }");
        function.run(&owner(), soon(), |_| rustix::process::getpriority_process(None).unwrap()).await.unwrap()
    };
    // The tests may run with any nice value.
    let here = rustix::process::getpriority_process(None).unwrap();
    assert_eq!([nice(Lane::PreCommit).await, nice(Lane::PostCommit).await], [here; 2]);
    assert_eq!([nice(Lane::Map).await, nice(Lane::Reduce).await], [19; 2]);
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
    let sum = builtin.run(&owner(), soon(), |calls| calls.reduce("[1,2,3]", "null")).await.unwrap();
    assert_eq!(sum.as_deref(), Ok("[6]"));
    assert_eq!(builtin.run(&owner(), soon(), |calls| calls.call(&["[1]"])).await.unwrap(), Ok(Some("[1]".to_owned())));
}

#[tokio::test]
async fn owners_of_one_program_share_nothing_and_each_keeps_its_session() {
    let pool = pool(config());
    let (one, two) = (open(&pool, Lane::Map, COUNTER), open(&pool, Lane::Map, COUNTER));
    assert_eq!(mapped(&one, soon()).await.unwrap(), "[1]");
    assert_eq!(mapped(&one.clone(), soon()).await.unwrap(), "[2]");
    assert_eq!(mapped(&two, soon()).await.unwrap(), "[1]");
    assert_eq!(mapped(&one, soon()).await.unwrap(), "[3]");
    one.run(&owner(), soon(), |calls| calls.reset()).await.unwrap();
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
async fn work_that_panics_harms_nobody_else() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, COUNTER);
    mapped(&map, soon()).await.unwrap();
    let broken = map.run(&owner(), soon(), |_| panic!("on purpose")).await;
    assert_eq!(broken.unwrap_err(), FunctionError::Broken);
    assert_eq!(mapped(&map, soon()).await.unwrap(), "[1]", "in a new session");
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
    bad.submit(&owner(), soon(), |_| panic!("never runs"), failed).unwrap();
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

#[tokio::test]
async fn several_calls_give_what_each_would_give() {
    let pool = pool(config());
    let map = open(&pool, Lane::Map, "function(v, k, a) { if (v == 700) throw 'no'; return [v + k + a]; }");
    let run = async |from: u32, to: u32, until: Instant| {
        let work = move |calls: &mut crate::Calls<'_>| {
            let texts: Vec<_> = (from..to).map(|number| number.to_string()).collect();
            let inputs: Vec<_> = texts.iter().map(|text| (text.as_str(), "10")).collect();
            calls.map_each(&inputs, "100", until)
        };
        map.run(&owner(), soon(), work).await.unwrap()
    };
    let given = run(0, 600, soon()).await;
    let expected: Vec<_> = (0..600).map(|number| Ok(format!("[{}]", number + 110))).collect();
    assert_eq!(given, expected);
    let given = run(600, 1000, soon()).await;
    assert_eq!((given.len(), given.iter().filter(|result| result.is_ok()).count()), (101, 100));
    let given = run(0, 600, Instant::now()).await;
    assert!((1..600).contains(&given.len()), "time was over: {}", given.len());
    assert_eq!(run(0, 0, soon()).await, []);
}
