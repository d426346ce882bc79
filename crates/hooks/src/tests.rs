//! Tests of hooks with real functions.

use crate::NodeHooks;
use ombak_functions::{Catalogue, FunctionPool, PoolConfig, Registered, RegisteredFunctions};
use ombak_kv::hooks::{CommitHooks, HookedKey};
use ombak_runtime::{Runtime, TokioRuntime};
use ombak_script::Limits;
use ombak_stats::Number;
use ombak_types::props::Hook;
use ombak_types::{Bucket, Error, Object, Sibling, VectorClock};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Functions whose source can change.
#[derive(Default)]
struct Sources {
    upper: Mutex<Option<&'static str>>,
    version: AtomicU64,
}

impl RegisteredFunctions for Sources {
    fn registered(&self, name: &str) -> Option<Registered> {
        let source = self.upper.lock().filter(|_| name == "changing")?;
        Some(Registered { source: source.into(), version: self.version.load(Ordering::SeqCst) })
    }
}

const LIBRARY: &str = r#"
function upper(object) {
    object.values[0].data = object.values[0].data.toUpperCase();
    return object;
}
function marked(object) {
    object.values[0].metadata['X-Riak-Meta']['X-Riak-Meta-Seen'] = 'yes';
    return object;
}
function silent(object) { return 'fail'; }
function speaking(object) { return { fail: 'too "old"' }; }
function counting(object) { return { fail: { left: [1, true, null, 'x'] } }; }
function broken(object) { return nothing; }
function endless(object) { for (;;); }
function greedy(object) { var a = []; for (;;) a.push('x'.repeat(1000)); }
function number(object) { return 7; }
function elsewhere(object) { object.key = 'other'; return object; }
function keeps(object) {
    return object.values[0].metadata['X-Riak-Deleted'] ? { fail: 'keep it' } : object;
}
var seen = 0;
function twice(object) { seen++; if (seen > 1) throw 'seen before'; }
"#;

ombak_functions::function_worker_of_tests!();

fn hooks_with(config: PoolConfig, sources: Arc<Sources>) -> NodeHooks {
    limited_hooks(config, sources, Duration::from_millis(200))
}

fn limited_hooks(config: PoolConfig, sources: Arc<Sources>, call_time_max: Duration) -> NodeHooks {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let limits = Limits { call_time_max, ..Limits::default() };
    let pool = FunctionPool::new(runtime.clone(), PoolConfig { hook_threads: 1, limits, ..config }, program());
    NodeHooks::new(runtime, pool, Catalogue::new(sources, vec![LIBRARY.into()], false))
}

fn hooks() -> NodeHooks {
    hooks_with(PoolConfig::default(), Arc::default())
}

fn at() -> HookedKey {
    HookedKey { bucket: Bucket::untyped("b"), key: "k".into() }
}

fn object(value: &str) -> Object {
    Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value.to_owned())] }
}

async fn put(hooks: &NodeHooks, names: &[&str], object: Object) -> Result<Object, Error> {
    let named = names.iter().map(|name| Hook::Named((*name).to_owned())).collect();
    hooks.pre_commit(at(), named, object, Some(Instant::now() + Duration::from_secs(60))).await
}

async fn refusal(names: &[&str]) -> String {
    put(&hooks(), names, object("v")).await.unwrap_err().to_string()
}

#[tokio::test]
async fn hooks_change_the_object_in_their_order() {
    let hooks = hooks();
    let done = put(&hooks, &["upper", "marked"], object("v")).await.unwrap();
    assert_eq!(done.siblings[0].value, "V");
    assert_eq!(done.siblings[0].meta.user_meta, [("X-Riak-Meta-Seen".into(), "yes".into())]);
    assert_eq!(put(&hooks, &["upper", "silent"], object("v")).await, Err(Error::PrecommitFail(None)));
}

#[tokio::test]
async fn what_a_hook_says_is_what_the_client_gets() {
    assert_eq!(refusal(&["silent"]).await, "precommit_fail");
    assert_eq!(refusal(&["speaking"]).await, r#"{precommit_fail,<<"too \"old\"">>}"#);
    let term = r#"{precommit_fail,{struct,[{<<"left">>,[1,true,null,<<"x">>]}]}}"#;
    assert_eq!(refusal(&["counting"]).await, term);
    assert_eq!(refusal(&["number"]).await, r#"{precommit_fail,{invalid_return,<<"number">>}}"#);
    assert_eq!(refusal(&["elsewhere"]).await, r#"{precommit_fail,{invalid_return,<<"elsewhere">>}}"#);
}

#[tokio::test]
async fn a_hook_that_breaks_down_fails_its_put_and_nothing_else() {
    let hooks = hooks();
    for name in ["broken", "endless", "greedy"] {
        assert_eq!(put(&hooks, &[name], object("v")).await, Err(Error::PrecommitFail(None)), "{name}");
        assert!(put(&hooks, &["upper"], object("v")).await.is_ok(), "after {name}");
    }
    let bytes = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(vec![0xff])] };
    assert_eq!(put(&hooks, &["upper"], bytes).await, Err(Error::PrecommitFail(None)), "a value without JSON");
}

#[tokio::test]
async fn a_hook_that_does_not_exist_refuses() {
    assert_eq!(refusal(&["zork"]).await, "{precommit_fail,{hook_crashed,{zork,error,undef}}}");
    assert_eq!(refusal(&["not a name"]).await, "{precommit_fail,{hook_crashed,{not a name,error,undef}}}");
    let erlang = vec![Hook::ModFun { module: "m".into(), function: "f".into() }];
    let refused = hooks().pre_commit(at(), erlang, object("v"), None).await;
    assert_eq!(refused.unwrap_err().to_string(), "{precommit_fail,{hook_crashed,{m,f,error,undef}}}");
}

#[tokio::test]
async fn a_hook_sees_that_a_key_is_deleted() {
    let tombstone = Object { clock: VectorClock::new(), siblings: vec![Sibling::tombstone()] };
    let hooks = hooks();
    assert_eq!(
        put(&hooks, &["keeps"], tombstone.clone()).await.unwrap_err().to_string(),
        r#"{precommit_fail,<<"keep it">>}"#
    );
    assert!(put(&hooks, &["keeps"], object("v")).await.is_ok());
    let kept = put(&hooks, &["marked"], tombstone).await.unwrap();
    assert!(kept.siblings[0].meta.deleted, "a hook does not bring a key back");
}

#[tokio::test]
async fn a_hook_has_the_time_of_its_client() {
    let late = hooks().pre_commit(at(), vec![Hook::Named("upper".into())], object("v"), Some(Instant::now())).await;
    assert_eq!(late, Err(Error::Timeout));
    // The deadline ends the call of the hook and the put at the same time.
    for _ in 0..10 {
        let until = Some(Instant::now() + Duration::from_millis(30));
        let late = hooks().pre_commit(at(), vec![Hook::Named("endless".into())], object("v"), until).await;
        assert_eq!(late, Err(Error::Timeout));
    }
}

#[tokio::test]
async fn a_new_source_counts_from_the_next_put_on() {
    let sources: Arc<Sources> = Arc::default();
    let hooks = hooks_with(PoolConfig::default(), sources.clone());
    assert!(put(&hooks, &["changing"], object("v")).await.is_err());
    for (version, source) in [(1, "function(o) { return 'fail'; }"), (2, "function(o) { return o; }")] {
        *sources.upper.lock() = Some(source);
        sources.version.store(version, Ordering::SeqCst);
        assert_eq!(put(&hooks, &["changing"], object("v")).await.is_ok(), version == 2);
    }
}

/// Queues hooks, and waits until as many have failed as are expected.
async fn fails(hooks: &NodeHooks, names: Vec<Hook>, object: Object, expected: usize) {
    let failed = Arc::new(AtomicUsize::new(0));
    let count = failed.clone();
    let counted = move || {
        count.fetch_add(1, Ordering::SeqCst);
    };
    hooks.post_commit(at(), names, object, Arc::new(counted));
    let deadline = Instant::now() + Duration::from_secs(60);
    while failed.load(Ordering::SeqCst) < expected {
        assert!(Instant::now() < deadline, "{} of {expected} hooks have failed", failed.load(Ordering::SeqCst));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn post_commit_hooks_run_and_their_failures_are_counted() {
    let hooks = hooks();
    let named = |name: &str| Hook::Named(name.to_owned());
    let erlang = Hook::ModFun { module: "m".into(), function: "f".into() };
    fails(&hooks, vec![erlang, named("broken"), named("zork"), named("endless")], object("v"), 4).await;
    // The first call is seen by the second one, which fails because of it. On a busy machine a call
    // that reaches its limit would replace the engine in between.
    let hooks = limited_hooks(PoolConfig::default(), Arc::default(), Duration::from_secs(30));
    fails(&hooks, vec![named("twice")], object("v"), 0).await;
    fails(&hooks, vec![named("twice")], object("v"), 1).await;
}

#[tokio::test]
async fn what_waits_for_post_commit_hooks_is_bounded() {
    let hooks = hooks_with(PoolConfig { waiting_max: 2, ..PoolConfig::default() }, Arc::default());
    let large = "x".repeat(33 << 20);
    fails(&hooks, vec![Hook::Named("upper".into())], object(&large), 1).await;
    let endless = || Hook::Named("endless".into());
    // At most one runs and two wait.
    fails(&hooks, vec![endless(), endless(), endless(), endless(), endless()], object("v"), 2).await;
}

#[tokio::test]
async fn a_hook_that_keeps_reaching_its_limit_is_suspended_in_its_bucket() {
    let hooks = hooks();
    let endless = || vec![Hook::Named("endless".into())];
    for _ in 0..3 {
        assert_eq!(put(&hooks, &["endless"], object("v")).await, Err(Error::PrecommitFail(None)));
    }
    assert_eq!(put(&hooks, &["endless"], object("v")).await, Err(Error::Overload));
    let elsewhere = HookedKey { bucket: Bucket::untyped("other"), key: "k".into() };
    let refused = hooks.pre_commit(elsewhere, endless(), object("v"), None).await;
    assert_eq!(refused, Err(Error::PrecommitFail(None)), "the hook of another bucket is called");
    assert!(put(&hooks, &["upper"], object("v")).await.is_ok(), "another hook of the bucket, too");
    // The same holds for hooks after a put.
    fails(&hooks, endless(), object("v"), 1).await;
    let feature = hooks.feature().unwrap();
    let number = |name: &str| {
        let figures = feature.figures();
        let figure = figures.iter().find(|figure| figure.name == name).unwrap();
        match figure.number {
            Number::Gauge(number) | Number::Total(number) => number,
            _ => panic!("{name} has another kind"),
        }
    };
    assert_eq!(number("ombak_hooks_suspended"), 1);
    assert_eq!(number("ombak_hook_suspensions"), 1);
    assert_eq!(number("ombak_hooks_refused_suspended"), 2);
}

#[tokio::test]
async fn a_put_that_waits_for_a_hook_is_refused_when_the_hook_is_suspended() {
    let hooks = hooks();
    let puts = (0..8).map(|_| put(&hooks, &["endless"], object("v")));
    let answers = futures_util::future::join_all(puts).await;
    let refused = |with: &Error| answers.iter().filter(|answer| answer.as_ref() == Err(with)).count();
    assert_eq!((refused(&Error::PrecommitFail(None)), refused(&Error::Overload)), (3, 5));
}
