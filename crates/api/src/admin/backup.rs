//! Backups: begun by one request, watched by others.

use super::{AdminContext, AdminError};
use ombak_kv::Kv;
use ombak_kv::backup::{Backup, BackupError, BackupProgress, BackupReport};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The backups of a node, one at a time, and how the last one went.
#[derive(Clone, Default)]
pub struct BackupJobs(Arc<Mutex<Option<Job>>>);

struct Job {
    /// Counts backups from 1.
    number: u64,
    dir: PathBuf,
    progress: Arc<BackupProgress>,
    /// None as long as it runs.
    outcome: Option<Result<BackupReport, String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    dir: PathBuf,
    #[serde(default)]
    since: Option<PathBuf>,
}

/// Begins a backup on a thread of its own.
pub(super) fn begin(ctx: &AdminContext, body: &[u8]) -> Result<Value, AdminError> {
    let wanted: Wanted = serde_json::from_slice(body).map_err(|e| {
        AdminError::BadRequest(format!(
            r#"the body must be {{"dir": "/an/absolute/path"}}, with "since" if wanted: {e}"#
        ))
    })?;
    let (number, progress) = ctx.backups.enter(&wanted.dir)?;
    let backup = Backup { dir: wanted.dir, since: wanted.since };
    let (jobs, kv) = (ctx.backups.clone(), ctx.kv.clone());
    tokio::task::spawn_blocking(move || jobs.leave(number, run(&kv, &backup, &progress)));
    Ok(json!({ "number": number, "state": "running" }))
}

fn run(kv: &Kv, backup: &Backup, progress: &BackupProgress) -> Result<BackupReport, BackupError> {
    let dir = backup.dir.display();
    tracing::info!(%dir, "backup begun");
    let outcome = backup.run(kv, progress);
    match &outcome {
        Ok(report) => tracing::info!(%dir, files = report.files, bytes = report.bytes, "backup taken"),
        Err(error) => tracing::warn!(%dir, %error, "the backup was not completed"),
    }
    outcome
}

impl BackupJobs {
    fn enter(&self, dir: &std::path::Path) -> Result<(u64, Arc<BackupProgress>), AdminError> {
        let mut job = self.0.lock();
        if let Some(running) = job.as_ref().filter(|job| job.outcome.is_none()) {
            let dir = running.dir.display();
            return Err(AdminError::Refused(format!("a backup into {dir} is being taken: wait for its end")));
        }
        let number = job.as_ref().map_or(1, |last| last.number + 1);
        let progress = Arc::<BackupProgress>::default();
        *job = Some(Job { number, dir: dir.to_owned(), progress: progress.clone(), outcome: None });
        Ok((number, progress))
    }

    fn leave(&self, number: u64, outcome: Result<BackupReport, BackupError>) {
        if let Some(job) = self.0.lock().as_mut().filter(|job| job.number == number) {
            job.outcome = Some(outcome.map_err(|error| error.to_string()));
        }
    }
}

/// How the backup that runs, or the last one, is.
pub(super) fn describe(ctx: &AdminContext) -> Value {
    let job = ctx.backups.0.lock();
    let Some(job) = &*job else { return json!({ "state": "none" }) };
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let mut answer = json!({
        "number": job.number,
        "dir": job.dir,
        "partitions": count(&job.progress.partitions),
        "partitions_total": ctx.node.ring_size,
        "files": count(&job.progress.files),
        "bytes_read": count(&job.progress.bytes_read),
    });
    match &job.outcome {
        None => answer["state"] = json!("running"),
        Some(Ok(report)) => {
            answer["state"] = json!("done");
            answer["report"] = json!(report);
        }
        Some(Err(error)) => {
            answer["state"] = json!("failed");
            answer["error"] = json!(error);
        }
    }
    answer
}
