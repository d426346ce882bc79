//! The resources of the jobs of keys, which folds begin: erase, reap, repair, and the drop of a
//! bucket.

use super::fold::{bucket_json, checked_watch, range_of};
use super::key_decision::{Name, bytes_of};
use super::path::AdminPath;
use super::{AdminContext, AdminError};
use crate::access::Permission;
use crate::http::Part::Word;
use ombak_key_queues::{JobEnd, JobId, JobKind, JobStatus, QueueError};
use ombak_kv::UncountedMemory;
use ombak_types::Bucket;
use serde::Deserialize;
use serde_json::{Value, json};

const SHOW: Permission = Permission::named("ombak_admin.key_jobs");
const CHANGE: Permission = Permission::named("ombak_admin.change_key_jobs");
const DROP: Permission = Permission::named("ombak_admin.drop_bucket");

/// The paths of these resources.
pub(super) const PATHS: &[AdminPath] = &[
    AdminPath::get(&[Word(b"key-jobs")], SHOW, |call| Box::pin(show(call.ctx))),
    AdminPath::post(&[Word(b"key-jobs")], CHANGE, |call| Box::pin(begin(call.ctx, call.body))),
    AdminPath::post(&[Word(b"key-jobs"), Word(b"state")], CHANGE, |call| Box::pin(change(call.ctx, call.body))),
    AdminPath::post(&[Word(b"key-jobs"), Word(b"drop")], DROP, |call| Box::pin(drop_bucket(call.ctx, call.body))),
];

fn refusal(error: QueueError) -> AdminError {
    match error {
        QueueError::Disk(_) | QueueError::Fold(_) | QueueError::NothingDone => AdminError::Failed(error.to_string()),
        QueueError::NotOpen
        | QueueError::Full { .. }
        | QueueError::FoldsAreOff
        | QueueError::TooManyJobs { .. }
        | QueueError::Leaves
        | QueueError::NoSuchJob(_)
        | QueueError::PartOfDrop(..) => AdminError::Refused(error.to_string()),
    }
}

async fn show(ctx: &AdminContext) -> Result<Value, AdminError> {
    let jobs = ctx.key_queues.jobs();
    Ok(json!({ "jobs": jobs.iter().map(job_json).collect::<Vec<_>>() }))
}

/// The kinds of jobs that a fold begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Begun {
    Erase,
    Reap,
    Repair,
}

/// The body of a request that begins a job.
#[derive(Deserialize)]
struct Wanted {
    job: Begun,
    /// The word by which the caller finds its fold among those under way.
    watch: Option<String>,
}

async fn begin(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let form = r#"the body must be {"job": "erase"|"reap"|"repair", "bucket": "…", with "bucket_type", "first_key", "last_key", "since_secs" and "until_secs" if wanted}"#;
    let malformed = |why: String| AdminError::BadRequest(format!("{form}: {why}"));
    let mut members: serde_json::Map<String, Value> =
        serde_json::from_slice(body).map_err(|why| malformed(why.to_string()))?;
    let of_job = json!({ "job": members.remove("job"), "watch": members.remove("watch") });
    let Wanted { job, watch } = serde_json::from_value(of_job).map_err(|why| malformed(why.to_string()))?;
    let watch = checked_watch(watch).map_err(malformed)?;
    let (kind, name) = match job {
        Begun::Erase => (JobKind::Erase, "erase"),
        Begun::Reap => (JobKind::Reap, "reap"),
        Begun::Repair => (JobKind::Repair, "repair"),
    };
    let range = range_of(Value::Object(members)).map_err(malformed)?;
    if ctx.kv.has_empty_folds() {
        return Err(refusal(QueueError::FoldsAreOff));
    }
    let under_way = ctx.folds.begin(name, watch, ctx.kv.shared_runtime().now());
    let keys = ctx.key_queues.fill_watched(kind, range, &mut UncountedMemory, &under_way.progress).await;
    let keys = keys.map_err(refusal)?;
    Ok(json!({ "keys": keys }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Pause,
    Resume,
    Cancel,
}

/// The body of a request that changes the state of a job.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    action: Action,
    job: JobId,
}

async fn change(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let form = r#"the body must be {"action": "pause"|"resume"|"cancel", "job": NUMBER}"#;
    let malformed = |why| AdminError::BadRequest(format!("{form}: {why}"));
    let Change { action, job } = serde_json::from_slice(body).map_err(malformed)?;
    let changed = match action {
        Action::Pause => ctx.key_queues.pause(job).await,
        Action::Resume => ctx.key_queues.resume(job).await,
        Action::Cancel => ctx.key_queues.cancel(job).await,
    };
    changed.map_err(refusal)?;
    show(ctx).await
}

/// The body of a request that drops a bucket.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dropped {
    bucket_type: Option<Name>,
    bucket: Name,
}

async fn drop_bucket(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let form = r#"the body must be {"bucket": "…", with "bucket_type" if it has one}"#;
    let malformed = |why: String| AdminError::BadRequest(format!("{form}: {why}"));
    let dropped: Dropped = serde_json::from_slice(body).map_err(|why| malformed(why.to_string()))?;
    let bytes = |name| bytes_of(name).map_err(|why| malformed(why.to_string()));
    let name = bytes(Some(dropped.bucket))?.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| malformed("a bucket has a name".into()))?;
    let bucket = match bytes(dropped.bucket_type)? {
        Some(bucket_type) => Bucket::typed(bucket_type, name),
        None => Bucket::untyped(name),
    };
    let job = ctx.key_queues.drop_bucket(&bucket).await.map_err(refusal)?;
    Ok(json!({ "job": job }))
}

fn job_json(job: &JobStatus) -> Value {
    let mut shown = bucket_json(&job.bucket);
    let (state, why) = match &job.ended {
        None if job.is_paused => ("paused", None),
        None => ("working", None),
        Some((JobEnd::Done, _)) => ("done", None),
        Some((JobEnd::Cancelled, _)) => ("cancelled", None),
        Some((JobEnd::Lost(why), _)) => ("lost", Some(why.clone())),
    };
    let facts = json!({
        "job": job.id,
        "kind": job.kind,
        "began_secs": job.began_secs,
        "keys": job.keys,
        "done": job.done,
        "changed": job.changed,
        "state": state,
        "why": why.or_else(|| job.waits_for.clone()),
        "damage": job.damage,
        "part_of": job.part_of,
        "ended_secs": job.ended.as_ref().map(|(_, secs)| secs),
    });
    if let (Value::Object(shown), Value::Object(facts)) = (&mut shown, facts) {
        shown.extend(facts);
    }
    shown
}
