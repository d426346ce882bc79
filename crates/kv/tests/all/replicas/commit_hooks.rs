//! Commit hooks that buckets name run on the node that coordinates a put.

use crate::replicas::cluster::{Cluster, bucket, count};
use ombak_kv::hooks::{CommitHooks, HookedKey, Hooks};
use ombak_kv::{KvConfig, PutOptions};
use ombak_runtime::BoxFuture;
use ombak_types::props::Hook;
use ombak_types::{Error, Object};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Hooks that refuse the value `no`, write `!` in place of others, and note what they see.
#[derive(Default)]
struct Noted {
    takes: Duration,
    /// For each run whether it was for a delete.
    before: Mutex<Vec<bool>>,
    after: Mutex<Vec<String>>,
}

impl CommitHooks for Noted {
    fn pre_commit(
        &self,
        at: HookedKey,
        hooks: Vec<Hook>,
        mut object: Object,
        _until: Option<Instant>,
    ) -> BoxFuture<'_, Result<Object, Error>> {
        assert_eq!((at.bucket, &at.key[..], hooks), (bucket(), &b"k"[..], vec![Hook::Named("before".into())]));
        self.before.lock().push(object.siblings[0].meta.deleted);
        Box::pin(async move {
            tokio::time::sleep(self.takes).await;
            let value = &mut object.siblings[0].value;
            match &value[..] {
                b"no" => return Err(Error::PrecommitFail(None)),
                b"" => {}
                _ => *value = "!".into(),
            }
            Ok(object)
        })
    }

    fn post_commit(&self, at: HookedKey, hooks: Vec<Hook>, object: Object, failed: Arc<dyn Fn() + Send + Sync>) {
        assert_eq!((at.bucket, hooks), (bucket(), vec![Hook::Named("after".into())]));
        self.after.lock().push(String::from_utf8_lossy(&object.siblings[0].value).into_owned());
        failed();
    }
}

fn with(hooks: &Arc<Noted>, config: &mut KvConfig) {
    config.hooks = Hooks { commit: Some(hooks.clone()), ..Hooks::default() };
    config.default_props.insert("precommit".into(), json!([{"name": "before"}]));
    config.default_props.insert("postcommit".into(), json!([{"name": "after"}]));
}

#[tokio::test]
async fn hooks_run_once_for_each_put_whichever_node_it_entered() {
    let hooks: Arc<Noted> = Arc::default();
    let cluster = Cluster::configured(5, |config| with(&hooks, config));
    for through in 0..5 {
        let refused = cluster.put(through, "k", "no", PutOptions::default()).await;
        assert_eq!(refused, Err(Error::PrecommitFail(None)));
    }
    assert_eq!((hooks.before.lock().len(), hooks.after.lock().len()), (5, 0));
    assert_eq!(cluster.holders("k"), [] as [usize; 0]);
    for through in 0..5 {
        let options = PutOptions { w: count(3), ..PutOptions::default() };
        cluster.put_object(through, "k", changed(&cluster, through).await, options).await.unwrap();
        assert_eq!(cluster.values(through, "k").await, ["!"]);
    }
    assert_eq!((hooks.before.lock().len(), hooks.after.lock().len()), (10, 5));
    assert_eq!(*hooks.after.lock(), ["!"; 5]);
    cluster.delete(2, "k").await;
    assert_eq!(hooks.before.lock().last(), Some(&true), "a delete is a put of a tombstone");
    assert_eq!(cluster.values(1, "k").await, [] as [&str; 0]);
}

/// An object that replaces what the key has.
async fn changed(cluster: &Cluster, through: usize) -> Object {
    let clock = if through == 0 { Default::default() } else { cluster.clock(through, "k").await };
    Object { clock, siblings: vec![ombak_types::Sibling::new("v")] }
}

/// A node that has not begun a put within a second is taken for too slow. The time of hooks does
/// not count as such.
#[tokio::test]
async fn a_slow_hook_runs_on_one_node() {
    let hooks = Arc::new(Noted { takes: Duration::from_millis(1200), ..Noted::default() });
    let cluster = Cluster::configured(5, |config| with(&hooks, config));
    for through in [0, 1] {
        hooks.before.lock().clear();
        cluster.put(through, "k", "v", PutOptions::default()).await.unwrap();
        assert_eq!(hooks.before.lock().len(), 1, "through node {through}");
    }
    for through in 0..5 {
        hooks.before.lock().clear();
        let options = PutOptions { timeout: Some(Duration::from_millis(100)), ..PutOptions::default() };
        assert_eq!(cluster.put(through, "k", "v", options).await, Err(Error::Timeout), "the client's own limit holds");
    }
}
