//! Administration asks the policy of the node as every other request does.

use super::{Answer, Server};
use crate::access::{AccessPolicy, NotedAccesses, Proof};
use crate::admin::{
    AdminContext, AdminError, AdminToken, BackupJobs, BackupPlace, ClusterAdmin, ClusterCommand, FunctionAdmin,
    FunctionTest, LiveConfig, NodeInfo,
};
use crate::http::HttpLimits;
use crate::{JobSwitches, MemoryLimits};
use ombak_kv::{KvConfig, head_terms};
use ombak_runtime::BoxFuture;
use ombak_storage::{MemoryConfig, MemoryFactory};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::watch;

const TOKEN: &str = "Authorization: Bearer secret\r\n";

/// A node that does nothing.
struct Idle;

impl ClusterAdmin for Idle {
    fn run(&self, command: ClusterCommand) -> BoxFuture<'static, Result<Value, AdminError>> {
        Box::pin(async move { Ok(json!({ "command": format!("{command:?}") })) })
    }

    fn summary(&self) -> Value {
        Value::Null
    }
}

impl FunctionAdmin for Idle {
    fn compile(&self, _source: String) -> BoxFuture<'static, Result<(), AdminError>> {
        Box::pin(async { Ok(()) })
    }

    fn test(&self, name: String, _test: FunctionTest) -> BoxFuture<'static, Result<Value, AdminError>> {
        Box::pin(async move { Ok(json!({ "tested": name })) })
    }
}

pub(crate) fn admin_context(kv: ombak_kv::Kv, dir: &TempDir) -> AdminContext {
    let node = NodeInfo { data_dir: dir.path().display().to_string(), ..NodeInfo::sample(Vec::new(), Vec::new()) };
    AdminContext {
        key_queues: ombak_key_queues::KeyQueues::new(&kv, Default::default()),
        folds: Default::default(),
        search: None,
        kv,
        node,
        config: LiveConfig::new(Vec::new(), Box::new(|key, _| Err(format!("{key} stays as it is")))),
        stop: watch::channel(false).0,
        token: AdminToken::new("secret"),
        backups: BackupJobs::default(),
        backup_place: BackupPlace { root: dir.path().to_owned(), node_dirs: Vec::new() },
        cluster: Arc::new(Idle),
        functions: Arc::new(Idle),
        security: None,
        audit: ombak_audit::AuditLog::default(),
    }
}

async fn administered(policy: Option<Arc<dyn AccessPolicy>>) -> Server {
    let dir = TempDir::new().expect("a directory");
    let backups = TempDir::new().expect("a directory");
    let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
    let config = KvConfig { ring_size: 8, ..KvConfig::new("riak@127.0.0.1", dir.path(), stores) };
    let (limits, jobs) = (HttpLimits::default(), JobSwitches::default());
    Server::changed(config, dir, MemoryLimits::default(), limits, jobs, |mut ctx| {
        ctx.admin = Some(admin_context(ctx.kv.clone(), &backups));
        match policy {
            Some(policy) => ctx.with_policy(policy),
            None => ctx,
        }
    })
    .await
}

async fn ask(server: &Server, method: &str, path: &str, headers: &str) -> Answer {
    server.request(method, &format!("/admin/v1/{path}"), &format!("X-Ombak-Admin: 1\r\n{headers}"), "").await
}

fn kind(answer: &Answer) -> String {
    answer.json()["error"]["kind"].as_str().unwrap_or("none").to_owned()
}

#[tokio::test]
async fn without_a_policy_the_token_opens_administration() {
    let server = administered(None).await;
    for path in ["node", "config", "cluster/status", "nonesuch", "cluster/nonesuch"] {
        let refused = ask(&server, "GET", path, "").await;
        assert_eq!((refused.status, &*kind(&refused)), (403, "no_token"), "{path}");
        let wrong = ask(&server, "GET", path, "Authorization: Bearer other\r\n").await;
        assert_eq!((wrong.status, &*kind(&wrong)), (401, "bad_token"), "{path}");
    }
    assert_eq!(ask(&server, "GET", "node", TOKEN).await.json()["name"], "riak@127.0.0.1");
    assert_eq!(ask(&server, "GET", "cluster/ring-ready", TOKEN).await.json()["command"], "RingReady");
    assert_eq!(ask(&server, "POST", "cluster/leave", TOKEN).await.json()["command"], "Leave(None)");
    assert_eq!(ask(&server, "GET", "bucket-types/none", TOKEN).await.status, 404);
    for (method, path) in
        [("GET", "nonesuch"), ("PUT", "node"), ("POST", "cluster/status"), ("POST", "functions/f/run")]
    {
        let unknown = ask(&server, method, path, TOKEN).await;
        assert_eq!((unknown.status, &*kind(&unknown)), (404, "no_such_resource"), "{method} {path}");
    }
    for (path, what) in [
        ("functions/f/run", "function action 'run'"),
        ("bucket-types/t/make", "bucket type action 'make'"),
        ("cluster/explode", "POST /admin/v1/cluster/explode"),
    ] {
        let unknown = ask(&server, "POST", path, TOKEN).await;
        assert_eq!(unknown.json()["error"]["message"], format!("there is no administration resource {what}"));
    }
}

#[tokio::test]
async fn a_policy_decides_about_each_path_by_its_permission() {
    let policy = Arc::new(NotedAccesses::refusing());
    let server = administered(Some(policy.clone())).await;
    for (method, path, permission) in [
        ("GET", "node", "ombak_admin.node"),
        ("POST", "stop", "ombak_admin.stop"),
        ("POST", "backup", "ombak_admin.take_backup"),
        ("GET", "cluster/status", "ombak_admin.cluster"),
        ("POST", "cluster/commit", "ombak_admin.change_cluster"),
        ("POST", "bucket-types/t/create", "ombak_admin.change_bucket_types"),
        ("POST", "functions/f/test", "ombak_admin.test_functions"),
        ("GET", "nonesuch", "ombak_admin.node"),
    ] {
        let refused = ask(&server, method, path, TOKEN).await;
        assert_eq!((refused.status, &*kind(&refused)), (403, "not_permitted"), "{method} {path}");
        assert_eq!(refused.json()["error"]["message"], format!("no {permission}"));
        assert_eq!(policy.take(), [(permission, "-/-".to_owned())], "{method} {path}");
        assert_eq!(policy.take_session().map(|session| session.proof), Some(Proof::AdminToken));
    }
    let allowing = administered(Some(Arc::new(NotedAccesses::default()))).await;
    let unproved = ask(&allowing, "GET", "node", "").await;
    assert_eq!((unproved.status, &*kind(&unproved)), (403, "no_token"), "no policy opens it to everybody");
    assert_eq!(ask(&allowing, "GET", "node", TOKEN).await.json()["name"], "riak@127.0.0.1");
}
